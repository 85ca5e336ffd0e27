# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""vhost-user-balloon serves a guest: all features, many guests, no growth."""

import random
import time

import pytest
from bed import MIB, PAGE, wait_for
from moves import (DRIVER, balloon_pages, empty, free_memory, resize,
                   wait_free_memory)
from uml import UmlGuest


def daemon_memory(guest: UmlGuest) -> int:
    """Bytes of the daemon's own, not the guest's, memory."""
    return guest.daemon.memory()


def quiet(guest: UmlGuest) -> None:
    """The device has nothing to complain about."""
    device = guest.device()
    assert not any(device['rejects'].values()), device['rejects']
    assert not any(device['breaches'].values()), device['breaches']
    assert device['release']['failures'] == 0


@pytest.mark.parametrize('options', [
    (), ('--in-band',), ('--must-tell-host',), ('--event-idx=off', '--indirect-desc=off'),
    ('--release=page',), ('--page-bitmap=off',), ('--page-bitmap=off', '--must-tell-host')],
    ids=' '.join)
def test_takes_and_gives(options):
    """Pages are named once, merged to runs, freed on the host, and come back."""
    with UmlGuest(backed=True, balloon='',
                  options=('--free-page-reporting=off', *options)) as guest:
        before, used = free_memory(guest), guest.host_rss()
        resize(guest, 320)
        assert balloon_pages(guest) * PAGE == 192 * MIB
        wait_for(lambda: used - guest.host_rss() > 0.9 * 192 * MIB, 10,
                 'memory to be free on the host')
        device = guest.device()
        traffic = device['traffic']['inflate']
        assert traffic['pfns'] == 192 * MIB // PAGE
        assert traffic['runs'] < traffic['pfns'] // 100
        page_by_page = '--release=page' in options
        assert (device['release']['punches'] == traffic['pfns']) == page_by_page
        empty(guest)
        wait_free_memory(guest, before)
        quiet(guest)


def test_statistics():
    """They come as often as asked for, and are the guest's."""
    with UmlGuest(options=['--poll-interval=1']) as guest:
        first = wait_for(lambda: guest.guest_stats()['last-update'], 10, 'statistics')
        wait_for(lambda: guest.guest_stats()['last-update'] > first, 10, 'more of them')
        stats = guest.guest_stats()['stats']
        assert stats['stat-total-memory'] == guest.meminfo()['MemTotal']
        assert 0 < stats['stat-free-memory'] < stats['stat-total-memory']
        quiet(guest)


def test_hints():
    """A round of hints ends and gives all of it back."""
    with UmlGuest(balloon='free-page-hint=on') as guest:
        before = free_memory(guest)
        guest.qmp('balloon-free-page-hint', action='start')
        wait_for(lambda: guest.device()['hints']['state'] == 'ended', 30, 'hints')
        assert guest.device()['hints']['bytes'] > before // 2
        guest.qmp('balloon-free-page-hint', action='done')
        wait_free_memory(guest, before)
        quiet(guest)


def test_unbind_leaves_nothing_with_the_device():
    """A driver that goes takes its queues along; the next one starts anew."""
    with UmlGuest(options=['--poll-interval=1']) as guest:
        resize(guest, 320)
        guest.run(f'echo virtio0 > {DRIVER}/unbind')
        assert guest.actual() == 512 * MIB
        assert not any(q['taken'] or q['enabled'] for q in guest.device()['queues'])
        # The next poll must not write into a ring that is no more.
        updates = guest.device()['stats-updates']
        time.sleep(1.5)
        assert guest.device()['stats-updates'] == updates
        guest.run(f'echo virtio0 > {DRIVER}/bind')
        guest.wait_actual(320 * MIB)


@pytest.mark.long
def test_a_guest_never_uses_what_it_gave_away():
    """MUST_TELL_HOST: what was ballooned is untouched until the host is told."""
    with UmlGuest(balloon='free-page-reporting=off',
                  options=['--must-tell-host']) as guest:
        guest.misbehave('fill', value=0x5a)
        for _ in range(3):
            resize(guest, 320)
            guest.fill(64)
            resize(guest, 512)
        fill = guest.device()['fill']
        assert fill['checked'] == 3 * 192 * MIB // PAGE and fill['damaged'] == 0
        quiet(guest)


def test_resizes_without_pause_leave_the_daemon_as_it_was(soak):
    """The daemon's own memory stays flat, and small."""
    with UmlGuest(balloon='free-page-reporting=off') as guest:
        resize(guest, 320)
        before = daemon_memory(guest)
        end = time.monotonic() + (60 if soak else 10)
        while time.monotonic() < end:
            for mib in (512, 320):
                guest.target(mib)
                time.sleep(0.05)
        empty(guest)
        assert daemon_memory(guest) < min(16 * MIB, before + MIB)
        quiet(guest)


def test_guests_that_die_in_a_row(soak):
    """The daemon serves the next guest, at whatever point the last one died."""
    rng = random.Random(3)
    count = 100 if soak else 15
    with UmlGuest(mem_mib=256) as guest:
        for _ in range(count):
            guest.target(128)
            time.sleep(rng.random() * 0.4)
            guest.kill()
            guest.target(256)
            guest.boot()
            assert guest.actual() == 256 * MIB
        assert guest.device()['guests'] == count + 1
        resize(guest, 160)
