# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) the project's developers
"""The daemon, as it ships, with a User-Mode Linux guest."""

import contextlib
import os
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# pylint: disable=wrong-import-position
import uml
from rig import MIB, Daemon, wait_for

pytestmark = pytest.mark.skipif(bool(uml.missing()), reason=str(uml.missing()))

#: A balloon that takes this much is something to see.
GIVE = 192 * MIB
BOUND = '/sys/bus/virtio/drivers/virtio_balloon'


@contextlib.contextmanager
def guest(*options, mem_mib=512):
    """A daemon and a guest that is up."""
    with Daemon('--reconnect', '--test-commands', *options) as daemon:
        with uml.Uml(daemon.socket, mem_mib) as machine, daemon.qmp() as qmp:
            yield daemon, qmp, machine


def resize(qmp, size, timeout=60):
    """Set a target and wait until the guest is there."""
    qmp('balloon', value=size)
    wait_for(lambda: abs(qmp('query-balloon')['actual'] - size) < MIB, timeout,
             f'{size >> 20} MiB; {qmp.device()["config"]}')


def touch(machine, mib):
    """Have the guest use memory and free it again: the host keeps it."""
    machine.run(f'dd if=/dev/zero of=/tmp/x bs=1M count={mib} && rm /tmp/x')


@pytest.mark.parametrize('options', ((), ('--in-band',), ('--must-tell-host',),
                                     ('--event-idx=off', '--indirect-desc=off')))
def test_inflate_and_deflate(options):
    with guest('--free-page-reporting=off', *options) as (_, qmp, machine):
        touch(machine, 256)
        used, free = machine.used(), machine.free()
        ram = qmp.device()['ram']
        assert used > 256 * MIB
        resize(qmp, ram - GIVE)
        # Nearly all memory was touched, so nearly all of it comes free.
        wait_for(lambda: machine.used() < used - GIVE // 2, 10, 'less memory used')
        assert machine.free() < free - GIVE * 9 // 10
        traffic = qmp.device()['traffic']['inflate']
        assert traffic['pfns'] == GIVE // 4096
        assert traffic['runs'] < traffic['pfns'] // 100
        assert qmp.device()['release']['failures'] == 0
        resize(qmp, ram)
        wait_for(lambda: machine.free() > free - 48 * MIB, 10, 'memory to be free')
        assert not any(qmp.device()['rejects'].values())
        assert not any(qmp.device()['breaches'].values())


def test_statistics():
    with guest('--poll-interval=1') as (_, qmp, machine):
        first = wait_for(lambda: qmp.stats()['last-update'], 10, 'statistics')
        wait_for(lambda: qmp.stats()['last-update'] > first, 10, 'more of them')
        stats = qmp.stats()['stats']
        total = int(machine.run("sed -n 's/^MemTotal: *\\([0-9]*\\) kB/\\1/p' "
                                '/proc/meminfo')) * 1024
        assert stats['stat-total-memory'] == total
        assert 0 < stats['stat-free-memory'] < total
        assert qmp.device()['rejects']['statistic'] == 0


def test_reporting():
    with guest() as (_, qmp, machine):
        touch(machine, 256)
        assert machine.used() > 256 * MIB
        wait_for(lambda: machine.used() < 192 * MIB, 60, 'memory to be reported')
        assert qmp.device()['traffic']['report']['pfns'] > 64 * MIB // 4096


def test_hints():
    with guest('--free-page-hint') as (_, qmp, machine):
        free = machine.free()
        qmp('balloon-free-page-hint', action='start')
        wait_for(lambda: qmp.device()['hints']['state'] == 'ended', 30, 'hints')
        assert qmp.device()['hints']['bytes'] > 0
        qmp('balloon-free-page-hint', action='done')
        wait_for(lambda: machine.free() > free - 32 * MIB, 30, 'memory to be free')


def test_unbind_leaves_nothing_with_the_device():
    with guest('--poll-interval=1') as (_, qmp, machine):
        resize(qmp, qmp.device()['ram'] - GIVE)
        machine.run(f'echo virtio0 >{BOUND}/unbind')
        assert qmp('query-balloon')['actual'] == qmp.device()['ram']
        queues = qmp.device()['queues']
        assert not any(q['taken'] or q['enabled'] for q in queues)
        # The next poll must not write into a ring that is no more.
        updates = qmp.device()['stats-updates']
        time.sleep(1.5)
        assert qmp.device()['stats-updates'] == updates
        machine.run(f'echo virtio0 >{BOUND}/bind')
        wait_for(lambda: qmp('query-balloon')['actual'] < qmp.device()['ram'] - GIVE
                 + MIB, 30, 'the balloon to come back')


def test_a_guest_never_uses_what_it_gave_away():
    with guest('--must-tell-host', '--free-page-reporting=off') as (_, qmp, machine):
        qmp.misbehave('fill', value=0x5a)
        ram = qmp.device()['ram']
        for _ in range(3):
            resize(qmp, ram - GIVE)
            touch(machine, 64)
            resize(qmp, ram)
        fill = qmp.device()['fill']
        assert fill['checked'] == 3 * GIVE // 4096 and fill['damaged'] == 0


def test_resizes_without_pause_leave_the_daemon_as_it_was():
    seconds = float(os.environ.get('VUB_RESIZE_SECONDS', 5))
    with guest('--free-page-reporting=off') as (daemon, qmp, machine):
        ram = qmp.device()['ram']
        resize(qmp, ram - GIVE)
        before = daemon.memory()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            qmp('balloon', value=ram)
            time.sleep(0.05)
            qmp('balloon', value=ram - GIVE)
            time.sleep(0.05)
        resize(qmp, ram)
        assert daemon.memory() < 16 * MIB
        assert daemon.memory() < before + MIB
        assert machine.run('echo alive') == 'alive'


def test_guests_that_die_in_a_row():
    count = int(os.environ.get('VUB_GUESTS', 5))
    with Daemon('--reconnect') as daemon:
        with uml.Uml(daemon.socket, 512) as machine, daemon.qmp() as qmp:
            for number in range(count):
                ram = wait_for(lambda: qmp.device()['ram'], 10, 'guest')
                qmp('balloon', value=ram - GIVE)
                time.sleep(0.02 * number)
                machine.kill()
                wait_for(lambda: not qmp.device()['connected'], 10, 'its end')
                machine.restart()
            assert qmp.device()['guests'] == count + 1
            resize(qmp, qmp.device()['ram'] - GIVE)
