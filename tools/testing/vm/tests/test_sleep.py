# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Suspend and hibernation with memory in the balloon."""

import tempfile
from pathlib import Path

import pytest
from bed import MIB
from moves import balloon_pages, free_memory, resize, wait_free_memory
from qemu import Guest


@pytest.mark.parametrize('oom', ['on', 'off'])
def test_suspend(oom):
    """Each level of the kernel's own test; the balloon is as before after it."""
    with Guest(mem_mib=512, balloon=f'deflate-on-oom={oom}') as guest:
        before = free_memory(guest)
        resize(guest, 256)
        guest.run('echo 0 > /sys/module/suspend/parameters/pm_test_delay')
        for level in ('freezer', 'devices', 'platform'):
            guest.run(f'echo {level} > /sys/power/pm_test;'
                      'echo mem > /sys/power/state', timeout=60)
            guest.wait_actual(256 * MIB)
            assert balloon_pages(guest) * 4096 == 256 * MIB
        guest.target(300)
        guest.wait_actual(300 * MIB)
        resize(guest, 512)
        wait_free_memory(guest, before)


def test_hibernation_and_restore():
    """Written to disk and restored into another QEMU, which starts from nothing."""
    with tempfile.TemporaryDirectory(prefix='balloon-vm-') as where:
        disk = Path(where) / 'disk'
        with open(disk, 'wb') as image:
            image.truncate(512 * MIB)
        config = {'mem_mib': 512, 'disks': (disk,)}
        with Guest(**config) as guest:
            resize(guest, 256)
            guest.run('mkswap /dev/vda; swapon /dev/vda;'
                      'head -c 16777216 /dev/urandom > /tmp/data')
            digest = guest.run('sha256sum /tmp/data')
            guest.run('echo 0 > /sys/module/suspend/parameters/pm_test_delay;'
                      'echo shutdown > /sys/power/disk')
            guest.start('echo disk > /sys/power/state')
            guest.wait_exit(120)
        with Guest(append='resume=/dev/vda', **config) as guest:
            assert guest.run('sha256sum /tmp/data') == digest
            # The new host wants nothing yet, so the memory comes back.
            guest.wait_actual(512 * MIB)
            assert balloon_pages(guest) == 0
            resize(guest, 256)
            resize(guest, 512)
