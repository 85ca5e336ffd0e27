# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Compaction moves the balloon's pages while it is resized."""

import time

from bed import MIB, wait_for
from moves import balloon_pages, empty, free_memory, wait_free_memory
from qemu import Guest


def test_compaction_against_resizing(soak):
    """F21: four processors, compaction in a loop, targets up and down."""
    with Guest(mem_mib=512, smp=4, balloon='') as guest:
        before = free_memory(guest)
        migrated = guest.vmstat()['balloon_migrate']
        # Holes of one page each: what inflation takes are single pages.
        spare = free_memory(guest) // MIB - 40
        holes = guest.start(f'memload frag {spare}')
        wait_for(lambda: 'touched' in holes.output, 120, 'memory to be fragmented')
        compaction = guest.start(
            'while :; do echo 1 > /proc/sys/vm/compact_memory; done')
        churn = guest.start('memload churn 16')
        end = time.monotonic() + (600 if soak else 12)
        while time.monotonic() < end:
            for mib in (380, 440, 400, 500):
                guest.target(mib)
                time.sleep(0.5)
        for job in (holes, compaction, churn):
            job.kill()
            job.wait()
        assert guest.vmstat()['balloon_migrate'] > migrated
        empty(guest)
        wait_free_memory(guest, before)
        assert balloon_pages(guest) == 0
