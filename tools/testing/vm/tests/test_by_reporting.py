# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Large chunks that go to the host by the reporting queue: inflate_by_reporting."""

import random
import time

import pytest
from bed import MIB, PAGE, wait_for
from moves import (DRIVER, balloon_pages, empty, fragment, free_memory, resize,
                   wait_after_sleep, wait_free_memory)
from qemu import Guest
from test_hotplug import BLOCKS, ballooned, unplug
from uml import UmlGuest

PARAMS = 'inflate_by_reporting=1'
REPORTING = 'deflate-on-oom=on,free-page-reporting=on'


def guest_of(bed, balloon=REPORTING, options=(), **more):
    """A guest whose host has no bitmap, as most have none."""
    if bed is UmlGuest:
        more['options'] = ('--page-bitmap=off', *options)
    return bed(balloon=balloon, params=PARAMS, **more)


def taken(guest):
    """Bytes that the host has that way."""
    return guest.debugfs()['inflated_by_report_pages'] * PAGE


def test_every_resize_is_exact(boot):
    """Also those that end inside of a large chunk."""
    with guest_of(boot, mem_mib=512) as guest:
        before = free_memory(guest)
        guest.fill(256)
        resize(guest, 200)
        assert taken(guest) > 256 * MIB
        assert guest.host_rss() < 300 * MIB
        rng = random.Random(6)
        for _ in range(30):
            guest.target(rng.randrange(200, 513))
        for mib in (200, 512, 203, 333, 511, 201):
            resize(guest, mib)
            assert balloon_pages(guest) * PAGE == (512 - mib) * MIB
        empty(guest)
        assert taken(guest) == 0
        wait_free_memory(guest, before)


def test_single_pages_go_the_usual_way():
    """Where no block is whole, PFNs name what is taken."""
    with guest_of(UmlGuest) as guest:
        fragment(guest, 96)
        resize(guest, 512 - 80)
        stat = guest.debugfs()
        assert stat['inflate_pfns'] > 4096
        assert stat['actual_pages'] * PAGE == 80 * MIB
        assert taken(guest) < 80 * MIB
        empty(guest)


@pytest.mark.parametrize('must_tell', ['on', 'off'])
def test_taking_back_needs_no_answer(must_tell):
    """A host that answers nothing any more cannot keep what it has that way."""
    with guest_of(UmlGuest, options=[f'--must-tell-host={must_tell}']) as guest:
        resize(guest, 200)
        assert taken(guest) > 256 * MIB
        for queue in ('inflate', 'deflate', 'report'):
            guest.misbehave('hold', queue=queue)
        resize(guest, 448)
        assert guest.debugfs()['deflate_buffers'] == 0


@pytest.mark.parametrize('balloon, options', [
    ('free-page-reporting=off', ('--page-bitmap=off',)), (REPORTING, ())])
def test_only_where_it_is_needed_and_can_be(balloon, options):
    """Neither without reporting nor beside the bitmap."""
    with UmlGuest(balloon=balloon, options=options, params=PARAMS) as guest:
        resize(guest, 300)
        assert taken(guest) == 0
        empty(guest)


def test_not_by_default():
    """It bends the specification, so it has to be asked for."""
    with UmlGuest(balloon=REPORTING, options=['--page-bitmap=off']) as guest:
        resize(guest, 300)
        assert taken(guest) == 0


def test_not_where_reports_are_kept():
    """A host that was told that free pages are poisoned discards none of them."""
    with Guest(mem_mib=256, append='page_poison=1', params=PARAMS,
               balloon='free-page-reporting=on,page-poison=on') as guest:
        resize(guest, 192)
        assert taken(guest) == 0


def test_free_pages_are_reported_meanwhile():
    """Both uses of the queue at once, and neither starves."""
    with guest_of(UmlGuest) as guest:
        before = free_memory(guest)
        churn = guest.start('while :; do dd if=/dev/zero of=/tmp/churn bs=1M count=64;'
                            'rm /tmp/churn; done 2>/dev/null')
        end = time.monotonic() + 8
        while time.monotonic() < end:
            for mib in (256, 320, 280, 400):
                resize(guest, mib)
        churn.kill()
        churn.wait()
        guest.run('rm -f /tmp/churn')
        assert guest.debugfs()['reports'] > 0
        empty(guest)
        wait_free_memory(guest, before)
        assert not any(guest.device()['rejects'].values())


@pytest.mark.parametrize('mib', [400, 512])
def test_a_host_that_is_silent_there(mib):
    """Little is in flight, it takes the rest by the inflate queue, and the device can go."""
    with guest_of(UmlGuest) as guest:
        resize(guest, 400)
        guest.misbehave('hold', queue='report')
        # Free pages are reported: of that the host says nothing either.
        resize(guest, 512)
        before = free_memory(guest)
        time.sleep(3)
        guest.target(400)
        wait_for(lambda: guest.actual() <= 408 * MIB, 30, 'the rest to be taken')
        assert guest.debugfs()['inflate_pfns']
        assert guest.debugfs()['in_flight_pages'] * PAGE <= 8 * MIB
        guest.target(mib)
        start = time.monotonic()
        guest.run(f'echo virtio0 > {DRIVER}/unbind')
        assert time.monotonic() - start < 5
        wait_free_memory(guest, before)


def test_oom_takes_it_first():
    """No message is needed, so it is the quickest to give back."""
    with guest_of(UmlGuest, mem_mib=256) as guest:
        resize(guest, 96)
        free = guest.meminfo()['MemFree'] // MIB
        guest.run(f'memload hog {free + 60} 0', timeout=60)
        assert guest.vmstat()['oom_kill'] == 0
        stat = guest.debugfs()
        assert stat['oom_pages'] > 0 and stat['deflate_buffers'] == 0


def test_sleep():
    """It is told again after a sleep, and nothing is lost."""
    with guest_of(Guest, mem_mib=512) as guest:
        before = free_memory(guest)
        for mib in (200, 257, 256):
            resize(guest, mib)
        # Pieces of a chunk are named the usual way.
        by_reporting = taken(guest) - 4 * MIB
        assert by_reporting > 192 * MIB
        guest.run('echo 0 > /sys/module/suspend/parameters/pm_test_delay;'
                  'echo devices > /sys/power/pm_test; echo mem > /sys/power/state', timeout=60)
        wait_after_sleep(guest, 256)
        assert taken(guest) >= by_reporting
        # With the queue full of what is being taken, too.
        guest.target(160)
        guest.run('echo mem > /sys/power/state', timeout=60)
        wait_after_sleep(guest, 160)
        empty(guest)
        wait_free_memory(guest, before)


def test_it_makes_way_for_unplugging():
    """A chunk in memory that is unplugged is released."""
    with guest_of(Guest, mem_mib=2048) as guest:
        resize(guest, 1024)
        block = next(b for b in range(16) if ballooned(guest, b) > 0.95)
        unplug(guest, block)
        guest.run(f'echo online > {BLOCKS}/memory{block}/state')
        wait_for(lambda: balloon_pages(guest) * PAGE == 1024 * MIB, 60, 'the target again')
        empty(guest)
