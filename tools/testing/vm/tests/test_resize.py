# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""A guest reaches its target and comes back with nothing lost."""

import random
import re
import time
from pathlib import Path

import pytest
from bed import MIB, PAGE, host_available
from moves import (balloon_pages, empty, frag, free_memory, resize, sampled_actual,
                   wait_free_memory)
from qemu import Guest

#: The base driver kicks once for 256 PFNs: 1024 times a GiB. A 32nd of it:
KICKS_PER_GIB = 32
#: Kicks before the driver knows how much the host takes at once.
RAMP = 8


@pytest.mark.long
@pytest.mark.parametrize('mem_mib, keep_mib', [(128, 96), (512, 128), (2048, 256)])
def test_reaches_target_and_comes_back(boot, mem_mib, keep_mib):
    """Size by size: target, counters, host memory, kicks, and all of it back."""
    taken = (mem_mib - keep_mib) * MIB
    with boot(mem_mib=mem_mib, backed=True, balloon='') as guest:
        before, rss, kicks = free_memory(guest), guest.host_rss(), guest.kicks()

        resize(guest, keep_mib)
        assert balloon_pages(guest) * PAGE == taken
        assert rss - guest.host_rss() > 0.7 * taken
        assert guest.kicks() - kicks <= KICKS_PER_GIB * taken / 2**30 + RAMP

        kicks = guest.kicks()
        empty(guest)
        assert guest.kicks() - kicks <= KICKS_PER_GIB * taken / 2**30 + RAMP
        stat = guest.vmstat()
        assert stat['balloon_inflate'] == stat['balloon_deflate'] == taken // PAGE
        most = 4096 if guest.has_feature(20) else 256 * 4
        assert guest.debugfs()['max_buffer_bytes'] <= most
        wait_free_memory(guest, before)


@pytest.mark.long
def test_twelve_gib_guest():
    """A large guest, without the debug kernel's cost a page."""
    if host_available() < 6 << 30:
        pytest.skip('less than 6 GiB of host memory available')
    with Guest(stock=True, mem_mib=12288) as guest:
        before = free_memory(guest)
        resize(guest, 1536, timeout=240)
        assert balloon_pages(guest) * PAGE == (12288 - 1536) * MIB
        resize(guest, 12288, timeout=240)
        stat = guest.vmstat()
        assert stat['balloon_inflate'] == stat['balloon_deflate']
        wait_free_memory(guest, before)


def huge_pages(guest):
    """Bytes of the guest's memory that the host has in huge pages."""
    text = Path(f'/proc/{guest.pid}/smaps_rollup').read_text(encoding='ascii')
    return int(re.search(r'^AnonHugePages:\s+(\d+) kB', text, re.M)[1]) * 1024


@pytest.mark.long
def test_the_hosts_huge_pages_last():
    """F8: no more of them go than what was taken, though the guest is fragmented."""
    with Guest(mem_mib=1024, backed=True, balloon='') as guest:
        frag(guest, 300)
        before = huge_pages(guest)
        if before < 600 * MIB:
            pytest.skip(f'the host gave QEMU {before // MIB} MiB of huge pages')
        resize(guest, 1024 - 300)
        assert before - huge_pages(guest) <= 330 * MIB


def test_thousand_random_targets(boot):
    """One thousand in a row, most of which replace one that is being reached."""
    rng = random.Random(2)
    with boot(mem_mib=512) as guest:
        before = free_memory(guest)
        for _ in range(1000):
            guest.target(rng.randrange(144, 513))
            time.sleep(rng.choice((0, 0, 0.01, 0.02)))
        resize(guest, 300)
        assert balloon_pages(guest) * PAGE == 212 * MIB
        empty(guest)
        wait_free_memory(guest, before)


def test_actual_is_never_untrue():
    """F19: `actual` only moves towards the target, and never beyond it."""
    with Guest(mem_mib=512) as guest:
        for goal in (160, 400, 200, 512):
            start = guest.actual()
            written = len(guest.actual_writes())
            with sampled_actual(guest) as samples:
                resize(guest, goal)
            samples += [512 * MIB - w for w in guest.actual_writes()[written:]]
            low, high = sorted((start, goal * MIB))
            assert all(low <= s <= high for s in samples)
            writes = guest.actual_writes()[written:]
            assert writes == sorted(writes, reverse=goal * MIB > start)
            # It is written every 20 ms, and 112 MiB take little more than that.
            assert len(writes) > 1, 'an operator must see it move'
            assert balloon_pages(guest) * PAGE == (512 - goal) * MIB
