# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""vhost-user-balloon is a host for guests of QEMU too, where that can have it."""

import random
import time

import pytest
from bed import MIB, PAGE, BedError, host_available, wait_for
from moves import balloon_pages, empty, free_memory, rebind, resize, wait_free_memory
from qemu_next import VhostGuest, qemu_next_path
from test_reporting import use_and_free
from test_stats import ABSENT, fresh_stats

pytestmark = [pytest.mark.long, pytest.mark.xdist_group('qemu_next')]  # they share a guest


@pytest.fixture(scope='module', autouse=True)
def qemu_or_skip():
    """Nothing here can be tested with an old QEMU."""
    try:
        qemu_next_path()
    except BedError as error:
        pytest.skip(str(error))


@pytest.fixture(scope='module', name='guest')
def shared_guest():
    """A guest with all features."""
    with VhostGuest(stock=True, mem_mib=512) as guest:
        yield guest


def test_reaches_target_and_comes_back():
    """Host memory and counters, and what the guest keeps is intact.

    QEMU has a third of this guest's memory above 4 GiB, at addresses that are not
    the places in the memory file. The guest uses that part first.
    """
    if host_available() < 2048 * MIB:
        pytest.skip('less than 2 GiB of host memory available')
    with VhostGuest(stock=True, mem_mib=3072,
                    balloon='deflate-on-oom=off,free-page-reporting=off') as guest:
        guest.run('dd if=/dev/urandom of=/tmp/kept bs=1M count=32')
        digest = guest.run('sha256sum /tmp/kept')
        guest.run('memload hog 1024 0', timeout=180)
        before, rss = free_memory(guest), guest.host_rss()

        resize(guest, 1536)
        assert balloon_pages(guest) * PAGE == 1536 * MIB
        assert guest.device()['release']['bytes'] >= 1536 * MIB
        assert rss - guest.host_rss() > 0.7 * 1024 * MIB

        empty(guest)
        wait_free_memory(guest, before)
        guest.run('memload hog 1024 0', timeout=180)
        assert guest.run('sha256sum /tmp/kept') == digest


def test_newest_target_counts(guest):
    """QEMU writes the config space whole: an old target in it replaces no new one."""
    rng = random.Random(5)
    for _ in range(10):
        for _ in range(20):
            guest.target(rng.randrange(200, 513))
            time.sleep(rng.choice((0, 0.01, 0.03)))
        resize(guest, 300, timeout=20)
        assert balloon_pages(guest) * PAGE == 212 * MIB
    empty(guest)


def test_statistics(guest):
    """All sixteen come, and the guest's memory is as large as it says itself."""
    guest.stats_interval(1)
    stats = fresh_stats(guest)
    guest.stats_interval(0)
    assert stats['stat-total-memory'] == guest.meminfo()['MemTotal']
    assert 0 < stats['stat-free-memory'] < stats['stat-total-memory']
    came = [name for name, value in stats.items()
            if name.startswith('stat-') and value != ABSENT]
    assert len(came) == 16, came


def test_freed_memory_reaches_host(guest):
    """What a program used is the host's again soon after its end."""
    peak = use_and_free(guest, 256)
    wait_for(lambda: guest.host_rss() < peak - 224 * MIB, 60,
             'freed memory to reach the host')


def test_deflates_on_oom(guest):
    """A program that needs what the balloon holds gets it; nobody is killed."""
    resize(guest, 200)
    guest.run('memload hog 300 0', timeout=180)
    assert guest.vmstat()['oom_kill'] == 0
    assert guest.actual() > 300 * MIB
    empty(guest)


def test_survives_rebind(guest):
    """A driver that starts anew finds the device and its target as they were."""
    resize(guest, 400)
    rebind(guest)
    wait_for(lambda: balloon_pages(guest) * PAGE == 112 * MIB, 20, 'the target')
    guest.wait_actual(400 * MIB)
    empty(guest)


@pytest.mark.parametrize('size', [1, 2, 4, 8])
@pytest.mark.parametrize('bitmap', ['on', 'off'])
def test_small_rings(size, bitmap):
    """Whatever the ring has room for, the target is reached, and memory comes back."""
    with VhostGuest(stock=True, mem_mib=512, ring_size=size,
                    balloon='deflate-on-oom=on,free-page-reporting=off',
                    options=[f'--page-bitmap={bitmap}']) as guest:
        before = free_memory(guest)
        resize(guest, 300)
        guest.run('memload hog 300 0', timeout=180)
        assert guest.vmstat()['oom_kill'] == 0
        empty(guest)
        wait_free_memory(guest, before)


def test_a_report_does_not_wait_for_a_whole_inflation():
    """Free pages that find the queue full of large chunks are reported before the next
    batch."""
    with VhostGuest(stock=True, mem_mib=1024, smp=1, ring_size=32,
                    params='inflate_by_reporting=1',
                    options=['--page-bitmap=off']) as guest:
        for queue in ('inflate', 'report'):
            guest.misbehave('delay', queue=queue, ms=500)
        guest.fill(64)
        reports = guest.debugfs()['reports']
        guest.target(300)
        # One was under way.
        wait_for(lambda: guest.debugfs()['reports'] > reports + 1, 20, 'a report')
        assert guest.actual() > 400 * MIB
