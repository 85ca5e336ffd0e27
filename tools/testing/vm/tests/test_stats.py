# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Statistics: which are there, in which unit, and when."""

import time

import pytest
from bed import MIB, Machine, wait_for
from moves import rebind, resize
from qemu import Guest

pytestmark = pytest.mark.xdist_group('stats')  # they share a guest

#: What QEMU may call a statistic, by the UAPI header's name of its tag; a QEMU
#: that does not know a tag drops it.
NAMES = {
    'stat-swap-in': 'swap-in',
    'stat-swap-out': 'swap-out',
    'stat-major-faults': 'major-faults',
    'stat-minor-faults': 'minor-faults',
    'stat-free-memory': 'free-memory',
    'stat-total-memory': 'total-memory',
    'stat-available-memory': 'available-memory',
    'stat-disk-caches': 'disk-caches',
    'stat-htlb-pgalloc': 'hugetlb-allocations',
    'stat-htlb-pgfail': 'hugetlb-failures',
    'stat-oom-kills': 'oom-kills',
    'stat-alloc-stalls': 'alloc-stalls',
    'stat-async-scans': 'async-scans',
    'stat-direct-scans': 'direct-scans',
    'stat-async-reclaims': 'async-reclaims',
    'stat-direct-reclaims': 'direct-reclaims',
}

#: Sizes at rest still move by what the measurement itself needs.
SLACK = {'free-memory': 2 * MIB, 'available-memory': 2 * MIB,
         'disk-caches': MIB // 4, 'minor-faults': 0}

#: What QEMU shows for a tag that never came.
ABSENT = 2**64 - 1


@pytest.fixture(scope='module', name='guest')
def shared_guest():
    """A guest that has swapped a little, so that no counter is just 0.

    Without reporting, which takes free memory out of MemFree while the host has it.
    """
    with Guest(mem_mib=256, swap_mib=256, balloon='deflate-on-oom=on') as guest:
        free = guest.meminfo()['MemFree'] // MIB
        guest.run(f'memload hog {free + 16} 0', timeout=120)
        guest.run('echo 8 > /proc/sys/vm/nr_hugepages; echo 0 > /proc/sys/vm/nr_hugepages')
        yield guest


def fresh_stats(guest: Machine) -> dict:
    """Statistics that the guest gave after this call."""
    seen = guest.guest_stats()['last-update']
    return wait_for(lambda: (s := guest.guest_stats())['last-update'] > seen and s,
                    20, 'statistics')['stats']


def expected(guest: Machine) -> dict:
    """What /proc says each should be."""
    lines = guest.run('balloon_units').splitlines()
    return {name: int(value) for _, stat, name, value in
            (line.split() for line in lines if line.startswith('# stat '))
            if stat == 'stat'}


def test_units_and_values(guest):
    """F16: every statistic beside /proc, in bytes or events, at rest."""
    guest.stats_interval(1)
    before = expected(guest)
    stats = fresh_stats(guest)
    after = expected(guest)
    assert len(before) == 16
    assert before['swap-out'] > 0 and before['hugetlb-allocations'] > 0
    known = [n for n in NAMES if n in stats]
    assert len(known) >= 10
    for qemu_name in known:
        name = NAMES[qemu_name]
        low, high = sorted((before[name], after[name]))
        slack = SLACK.get(name, 0)
        assert stats[qemu_name] != ABSENT, f'{name} did not come'
        assert low - slack <= stats[qemu_name] <= high + slack, name
    guest.stats_interval(0)


def test_total_follows_the_balloon(boot):
    """MemTotal rule in statistics: without deflate-on-oom the host has it."""
    with boot(mem_mib=256, balloon='') as guest:
        guest.stats_interval(1)
        total = fresh_stats(guest)['stat-total-memory']
        resize(guest, 160)
        wait_for(lambda: guest.guest_stats()['stats']['stat-total-memory']
                 == total - 96 * MIB, 20, 'total memory to shrink')


def test_interval_changes_and_stops(guest):
    """The host polls as often as told, also while the guest resizes; then not."""
    guest.stats_interval(1)
    fresh_stats(guest)
    start = time.monotonic()
    guest.target(160)
    for _ in range(3):
        fresh_stats(guest)
    assert time.monotonic() - start < 15
    guest.stats_interval(0)
    seen = guest.guest_stats()['last-update']
    time.sleep(3)  # nothing must happen for that long
    # One that was asked for before may have been under way.
    assert guest.guest_stats()['last-update'] - seen <= 1
    resize(guest, 256)


def test_survives_rebind(guest):
    """F15 in part: statistics come back when the driver starts anew."""
    guest.stats_interval(1)
    fresh_stats(guest)
    rebind(guest)
    fresh_stats(guest)
    guest.stats_interval(0)
