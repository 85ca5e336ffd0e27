# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Compaction moves the balloon's pages while it is resized, and while it is not."""

import time

import pytest
from bed import MIB
from moves import (balloon_pages, empty, frag, fragment, free_memory, resize,
                   sampled_actual, wait_free_memory)
from qemu import Guest
from uml import UmlGuest


@pytest.mark.long
def test_compaction_against_resizing(soak):
    """F21: four processors, compaction in a loop, targets up and down."""
    with Guest(mem_mib=512, smp=4, balloon='') as guest:
        before = free_memory(guest)
        migrated = guest.vmstat()['balloon_migrate']
        # Holes of one page each: what inflation takes are single pages.
        spare = free_memory(guest) // MIB - 40
        holes = frag(guest, spare)
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


def test_moved_pages_stay_in_actual():
    """A page that takes the place of another one changes nothing for the operator,
    however late the host answers."""
    with UmlGuest(balloon='free-page-reporting=off') as guest:
        between = fragment(guest, 96)
        resize(guest, 448)
        for queue in ('inflate', 'deflate'):
            guest.misbehave('delay', queue=queue, ms=20)
        migrated = guest.vmstat()['balloon_migrate']
        with sampled_actual(guest) as samples:
            # From here on there are holes; the kernel may fill them unasked.
            between.kill()
            between.wait()
            guest.run('echo 1 > /proc/sys/vm/compact_memory')
            time.sleep(0.5)
        assert guest.vmstat()['balloon_migrate'] > migrated
        assert set(samples) == {448 * MIB}
