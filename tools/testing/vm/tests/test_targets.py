# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Targets that cannot be reached, make no sense, or do not stay."""

import re
import time

import pytest
from bed import MIB, Machine, QMPError, wait_for
from moves import (balloon_pages, empty, free_memory, resize, traced_work,
                   wait_free_memory)
from qemu import Guest

#: What a guest may say about a target that it cannot reach.
BALLOON_LINES = r'virtio_balloon virtio\d+: .*'


def balloon_lines(guest: Machine) -> list:
    """Lines of the driver on the console."""
    return re.findall(BALLOON_LINES, guest.console)


def wait_stalled(guest: Machine) -> int:
    """Wait until `actual` has not moved for two seconds; it."""
    last, since = 0, time.monotonic()

    def stalled() -> bool:
        nonlocal last, since
        now = guest.actual()
        if now != last:
            last, since = now, time.monotonic()
        return time.monotonic() - since > 2

    wait_for(stalled, 120, 'the balloon to stop')
    return last


def take_everything(guest: Machine) -> None:
    """All of RAM is wanted: the guest gives what it can spare and lives."""
    before = free_memory(guest)
    lines = len(balloon_lines(guest))
    guest.qmp('balloon', value=1)
    rest = wait_stalled(guest)
    assert rest < 200 * MIB
    assert guest.run('echo alive').strip() == 'alive'
    assert guest.vmstat()['oom_kill'] == 0
    # The first inflation, and that the target is out of reach.
    assert len(balloon_lines(guest)) - lines <= 2
    empty(guest)
    wait_free_memory(guest, before)


def test_target_of_everything(boot):
    """It may have some of it back when it has nothing left."""
    with boot(mem_mib=512, balloon='deflate-on-oom=on') as guest:
        take_everything(guest)


def test_target_of_everything_for_good():
    """What is left must do for what runs.

    Not under KASAN, which keeps more of it in quarantine than the driver leaves.
    """
    with Guest(mem_mib=512, balloon='deflate-on-oom=off') as guest:
        take_everything(guest)


def test_garbage_targets():
    """QEMU refuses what is no size, and cuts the rest to RAM."""
    with Guest(mem_mib=512) as guest:
        for value in (0, -1, -2**63):
            with pytest.raises(QMPError):
                guest.qmp('balloon', value=value)
        for value in (2**63 - 1, 2**40, 512 * MIB + 1):
            guest.qmp('balloon', value=value)
        assert guest.actual() == 512 * MIB
        guest.qmp('balloon', value=400 * MIB + 1)
        guest.wait_actual(400 * MIB, tolerance=4096)
        empty(guest)


@pytest.mark.long
def test_unreachable_target_is_quiet(soak):
    """F3: no busy retries, no log flood, and memory freed later is taken."""
    seconds = 600 if soak else 75
    with Guest(mem_mib=512, balloon='') as guest:
        guest.run('head -c 67108864 /dev/zero > /tmp/held')
        guest.target(40)
        rest = wait_stalled(guest)
        assert rest > 40 * MIB
        lines = len(balloon_lines(guest))
        assert traced_work(guest, seconds).seconds < 0.01 * seconds
        assert len(balloon_lines(guest)) - lines <= 1 + seconds / 60
        assert guest.vmstat()['oom_kill'] == 0

        before = guest.actual()
        guest.run('rm /tmp/held')
        wait_for(lambda: guest.actual() < before - 48 * MIB, 5,
                 'freed memory to be taken')
        assert 'cannot' in guest.state() or 'inflating' in guest.state()
        empty(guest)


def test_flipping_target(boot, soak):
    """F4: a target that flips 190 times a second ends at its last value."""
    seconds = 25 if soak else 6
    with boot(mem_mib=1024) as guest:
        before = free_memory(guest)
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for mib in (200, 1000):
                guest.target(mib)
                time.sleep(1 / 190)
        resize(guest, 600)
        assert balloon_pages(guest) * 4096 == 424 * MIB
        empty(guest)
        wait_free_memory(guest, before)
