# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Hosts that are late, silent, wrong or gone, and what becomes of their guest."""

import re
import time

import pytest
from bed import MIB, PAGE, wait_for
from moves import (DRIVER, balloon_pages, empty, frag, free_memory, rebind, resize,
                   sampled_actual, touch_all, wait_free_memory)
from uml import UmlGuest


def said(guest: UmlGuest, words: str) -> int:
    """How often the driver said something."""
    return len(re.findall(rf'virtio_balloon virtio\d+: .*{words}', guest.console))


def wait_said(guest: UmlGuest, words: str, timeout: float = 30) -> None:
    """Wait for the driver to say it."""
    guest.wait_console(rf'virtio_balloon virtio\d+: .*{words}', timeout)


# Late --------------------------------------------------------------------------

def test_a_slow_host_has_little_in_flight():
    """F6: with three seconds an answer the guest misses a few MiB at a time."""
    with UmlGuest(mem_mib=256, balloon='deflate-on-oom=on') as guest:
        guest.misbehave('delay', queue='inflate', ms=3000, serial=True)
        guest.target(64)
        wait_for(lambda: guest.debugfs()['inflated_pages'], 40, 'the first answer')
        end = time.monotonic() + 10
        while time.monotonic() < end:
            assert guest.debugfs()['in_flight_pages'] * PAGE <= 4 * MIB
            time.sleep(0.1)


@pytest.mark.parametrize('must_tell', ['on', 'off'])
def test_oom_while_the_host_sits_on_an_answer(must_tell):
    """F6: who needs memory gets it, though the host answers no inflation meanwhile."""
    with UmlGuest(mem_mib=256, balloon='deflate-on-oom=on',
                  options=[f'--must-tell-host={must_tell}']) as guest:
        resize(guest, 128)
        guest.misbehave('hold', queue='inflate')
        guest.target(96)
        wait_for(lambda: guest.debugfs()['in_flight_pages'], 10, 'pages in flight')
        free = guest.meminfo()['MemFree'] // MIB
        guest.run(f'memload hog {free + 50} 0', timeout=60)
        assert guest.vmstat()['oom_kill'] == 0
        counters = guest.debugfs()
        assert counters['oom_calls'] > 0 and counters['in_flight_pages'] > 0
        guest.misbehave('off')
        empty(guest)


def test_late_answers_reach_the_target():
    """Each answer is 20 ms late, on both queues: slow, but nothing is lost."""
    with UmlGuest(balloon='') as guest:
        before = free_memory(guest)
        for queue in ('inflate', 'deflate'):
            guest.misbehave('delay', queue=queue, ms=20)
        resize(guest, 320)
        empty(guest)
        wait_free_memory(guest, before)


# Out of order, twice, unannounced ------------------------------------------------

@pytest.mark.parametrize('options', [(), ('--must-tell-host',)], ids=' '.join)
def test_answers_in_reverse_order(options):
    """The order of answers says nothing."""
    with UmlGuest(balloon='', options=options) as guest:
        before = free_memory(guest)
        for queue in ('inflate', 'deflate'):
            guest.misbehave('reorder', queue=queue)
        for _ in range(3):
            resize(guest, 320)
            empty(guest)
        wait_free_memory(guest, before)


@pytest.mark.parametrize('queue', ['inflate', 'deflate'])
def test_an_answer_that_comes_twice(queue):
    """The queue breaks, by the kernel's own word; the guest and its memory do not."""
    with UmlGuest(balloon='', allow_splats=['is not a head']) as guest:
        before = free_memory(guest)
        resize(guest, 400)
        guest.misbehave('duplicate', queue=queue)
        guest.target(300 if queue == 'inflate' else 450)
        guest.wait_console('is not a head', 20)
        guest.misbehave('off')
        guest.run('echo alive')
        rebind(guest)
        guest.target(512)
        wait_free_memory(guest, before)
        assert balloon_pages(guest) == 0


@pytest.mark.parametrize('options', [(), ('--must-tell-host',), ('--page-bitmap=off',)],
                         ids=' '.join)
def test_answers_before_the_notification(options):
    """A host that polls answers what it was not notified of yet."""
    with UmlGuest(balloon='', options=options) as guest:
        for queue in ('inflate', 'deflate'):
            guest.misbehave('poll', queue=queue)
        for _ in range(6):
            resize(guest, 200)
            empty(guest)


@pytest.mark.parametrize('queue', ['inflate', 'deflate'])
def test_answers_without_an_interrupt(queue):
    """The driver looks for itself, or says that it waits; rebinding mends it."""
    with UmlGuest(balloon='') as guest:
        before = free_memory(guest)
        resize(guest, 400)
        guest.misbehave('silent', queue=queue)
        mib = 300 if queue == 'inflate' else 450
        guest.target(mib)
        wait_for(lambda: guest.actual() == mib * MIB or said(guest, 'does not answer'),
                 60, 'the target or a complaint')
        guest.misbehave('off')
        rebind(guest)
        guest.wait_actual(mib * MIB)
        empty(guest)
        wait_free_memory(guest, before)


def test_reporting_without_an_interrupt():
    """F12: reports go on, or stop with one line; nobody hangs."""
    with UmlGuest(balloon='free-page-reporting=on') as guest:
        guest.misbehave('silent', queue='report')
        touch_all(guest)
        used = guest.host_rss()
        wait_for(lambda: guest.host_rss() < used // 2, 90, 'memory to be reported')
        assert said(guest, 'reporting') <= 1
        guest.run(f'cd {DRIVER}; echo virtio0 > unbind', timeout=10)


# Wrong --------------------------------------------------------------------------

def test_queue_numbers_of_the_specification():
    """F13: reporting is at index 4 only: said once, and the guest lives."""
    with UmlGuest(balloon='free-page-reporting=on',
                  options=['--queue-layout=spec', '--stats=off',
                           '--free-page-hint=off']) as guest:
        before = free_memory(guest)
        guest.run('memload hog 64 0')
        wait_said(guest, 'reporting queue', 60)
        resize(guest, 400)
        empty(guest)
        time.sleep(3)  # for a second line, which must not come
        assert said(guest, 'reporting queue') == 1
        guest.run(f'cd {DRIVER}; echo virtio0 > unbind', timeout=10)
        wait_free_memory(guest, before)


@pytest.mark.parametrize('value', [0xffffffff, 0xffffff, 1 << 20])
def test_garbage_in_num_pages(value):
    """The balloon stops at what can be spared, and the guest lives."""
    with UmlGuest(balloon='deflate-on-oom=on') as guest:
        before = free_memory(guest)
        lines = said(guest, '')
        guest.misbehave('config', field='num_pages', value=value)
        time.sleep(4)  # as long as a guest may be out of sorts
        assert guest.run('echo alive').strip() == 'alive'
        assert guest.vmstat()['oom_kill'] == 0
        assert balloon_pages(guest) * PAGE < 512 * MIB
        assert said(guest, '') - lines <= 2
        guest.misbehave('off')
        wait_free_memory(guest, before)


def test_garbage_in_other_fields():
    """What the driver alone writes is not believed when read."""
    with UmlGuest(balloon='free-page-hint=on') as guest:
        for field in ('actual', 'poison_val', 'free_page_hint_cmd_id'):
            guest.misbehave('config', field=field, value=0xdeadbeef)
        resize(guest, 400)
        assert balloon_pages(guest) * PAGE == 112 * MIB
        guest.misbehave('off')
        empty(guest)


def test_actual_is_always_true():
    """F19: it moves towards the target only, and is never above RAM."""
    with UmlGuest(balloon='') as guest:
        for goal in (320, 450, 360, 512):
            start = guest.actual()
            with sampled_actual(guest) as samples:
                resize(guest, goal)
            steps = [start, *samples, goal * MIB]
            assert steps == sorted(steps, reverse=goal * MIB < start)
        assert guest.device()['rejects']['actual'] == 0


def yielded(guest: UmlGuest) -> int:
    """Bytes that the host has got."""
    return guest.device()['release']['bytes']


def test_yield_of_a_host_with_large_pages():
    """F9: a host that frees whole 2 MiB only gets nearly all of what it is given."""
    with UmlGuest(mem_mib=1024, backed=True, balloon='',
                  options=['--free-page-reporting=off', '--release-grain=2M']) as guest:
        resize(guest, 512)
        assert yielded(guest) >= 0.95 * 512 * MIB


def test_yield_where_half_is_fragmented():
    """F9: what is whole goes first. A driver that takes page after page begins with
    the single ones, and such a host gets nothing of them."""
    with UmlGuest(mem_mib=1024, backed=True, balloon='',
                  options=['--free-page-reporting=off', '--release-grain=2M']) as guest:
        frag(guest, 512)
        resize(guest, 1024 - 256)
        assert yielded(guest) >= 0.95 * 256 * MIB


# Gone ---------------------------------------------------------------------------

def test_lost_statistics_come_back():
    """F15: the host keeps the buffer; a reset brings statistics back."""
    with UmlGuest(options=['--poll-interval=1']) as guest:
        wait_for(lambda: guest.guest_stats()['last-update'], 10, 'statistics')
        guest.misbehave('drop', queue='stats', count=1)
        time.sleep(2.5)  # the next poll is lost
        lost = guest.device()['stats-updates']
        time.sleep(2.5)
        assert guest.device()['stats-updates'] == lost
        resize(guest, 400)
        rebind(guest)
        wait_for(lambda: guest.device()['stats-updates'] > lost, 10, 'statistics')


@pytest.mark.parametrize('how', ['break-queue', 'disconnect', 'death'])
def test_device_breaks_in_a_large_deflate(how):
    """F20: every wait ends at once, and the pages are the guest's again."""
    with UmlGuest(mem_mib=1024, balloon='', options=['--must-tell-host'],
                  allow_splats=['id .* out of range', 'virtio_uml', 'Call Trace']) as guest:
        before = free_memory(guest)
        resize(guest, 300)
        guest.misbehave('delay', queue='deflate', ms=500, serial=True)
        guest.target(1024)
        wait_for(lambda: guest.debugfs()['returning_pages'], 10, 'a deflate under way')
        if how == 'death':
            guest.lose_daemon()
        elif how == 'disconnect':
            guest.misbehave('disconnect')
        else:
            guest.misbehave('break-queue', queue='deflate')
        start = time.monotonic()
        # A device whose peer is gone is removed by its bus.
        guest.run(f'cd {DRIVER}; echo virtio0 > unbind || ! test -e virtio0', timeout=20)
        assert time.monotonic() - start < 5
        wait_free_memory(guest, before)
        assert balloon_pages(guest) == 0


def test_half_of_the_answers_never_come():
    """Lost answers cost what they named, and removal brings that back."""
    with UmlGuest(balloon='') as guest:
        before = free_memory(guest)
        resize(guest, 420)
        guest.misbehave('drop', queue='inflate', count=3)
        guest.target(320)
        wait_said(guest, 'does not answer')
        guest.run(f'echo virtio0 > {DRIVER}/unbind', timeout=10)
        wait_free_memory(guest, before)
