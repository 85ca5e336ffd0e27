# SPDX-License-Identifier: GPL-2.0-or-later
# Copyright (C) the project's developers
"""The daemon with a VMM and a driver that are good, bad, or come by chance."""

import contextlib
import fcntl
import os
import random
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
# pylint: disable=wrong-import-position,wildcard-import,unused-wildcard-import
from rig import DAEMON, MIB, PAGE, Daemon, QMPError, wait_for
from vmm import *

SANITIZED = 'VUB_SANITIZED' in os.environ
#: Sanitizers need system calls that the sandbox does not give.
SANDBOX = ['--sandbox=off'] if SANITIZED else []
ALL = ['--free-page-hint', '--page-bitmap=off', '--test-commands', '--reconnect']


@contextlib.contextmanager
def pair(*options, features=None, rings=5, mib=64):
    """A daemon and a VMM that is set up."""
    with Daemon(*ALL, *SANDBOX, *options) as daemon:
        with daemon.qmp() as qmp, Vmm(daemon.socket, mib) as vmm:
            vmm.set_up(features, rings)
            yield daemon, qmp, vmm


def rejects(qmp):
    """Kinds of rejects that were counted."""
    return {k for k, v in qmp.device()['rejects'].items() if v}


def breaches(qmp):
    """Kinds of breaches that were counted."""
    return {k for k, v in qmp.device()['breaches'].items() if v}


# A good guest ----------------------------------------------------------------

def test_inflate_releases_exactly_what_was_named():
    with pair() as (_, qmp, vmm):
        vmm.touch(FIRST_DATA, 1000)
        vmm.inflate(list(range(FIRST_DATA + 10, FIRST_DATA + 266)))
        assert vmm.held(FIRST_DATA + 9) and vmm.held(FIRST_DATA + 266)
        assert not vmm.held(FIRST_DATA + 10) and not vmm.held(FIRST_DATA + 265)
        release = qmp.device()['release']
        assert release['bytes'] == 256 * PAGE and release['punches'] == 1


def test_neighbours_are_merged_across_buffers_and_order():
    with pair() as (_, qmp, vmm):
        vmm.touch(FIRST_DATA, 512)
        ring = vmm.rings[0]
        # The second half comes first, and backwards.
        for first in (256, 0):
            pages = list(range(FIRST_DATA + first, FIRST_DATA + first + 256))
            ring.send(vmm.pfns(pages[::-1]), kick=False)
        ring.kick()
        ring.wait_used(2)
        device = qmp.device()
        assert device['release']['punches'] == 1
        assert device['traffic']['inflate']['pfns'] == 512
        assert device['traffic']['inflate']['runs'] == 1
        assert not vmm.held(FIRST_DATA) and not vmm.held(FIRST_DATA + 511)


def test_page_by_page_for_comparison():
    with pair('--release=page') as (_, qmp, vmm):
        vmm.touch(FIRST_DATA, 64)
        vmm.inflate(list(range(FIRST_DATA, FIRST_DATA + 64)))
        assert qmp.device()['release']['punches'] == 64
        assert not vmm.held(FIRST_DATA + 63)


def test_grain_keeps_what_is_smaller():
    with pair('--release-grain=64K') as (_, qmp, vmm):
        vmm.touch(FIRST_DATA, 64)
        vmm.inflate(list(range(FIRST_DATA + 1, FIRST_DATA + 40)))
        assert vmm.held(FIRST_DATA + 1) and not vmm.held(FIRST_DATA + 16)
        release = qmp.device()['release']
        assert release['bytes'] == 16 * PAGE
        assert release['bytes-kept'] == (39 - 16) * PAGE


def test_deflate_touches_nothing():
    with pair() as (_, qmp, vmm):
        vmm.touch(FIRST_DATA, 16)
        vmm.inflate(list(range(FIRST_DATA, FIRST_DATA + 16)), ring=1)
        assert vmm.held(FIRST_DATA)
        assert qmp.device()['traffic']['deflate']['pfns'] == 16
        assert qmp.device()['release']['punches'] == 0


def test_reporting_releases_and_poison_keeps():
    # Rings: inflate, deflate, statistics, hints, reporting.
    with pair() as (_, qmp, vmm):
        ring = vmm.rings[4]
        vmm.touch(FIRST_DATA, 64)
        ring.desc(0, GUEST + FIRST_DATA * PAGE, 32 * PAGE, WRITE | NEXT, 1)
        ring.desc(1, GUEST + (FIRST_DATA + 40) * PAGE, 8 * PAGE, WRITE)
        ring.offer(0)
        ring.kick()
        ring.wait_used()
        assert not vmm.held(FIRST_DATA) and vmm.held(FIRST_DATA + 32)
        assert not vmm.held(FIRST_DATA + 40)
        vmm.touch(FIRST_DATA, 64)
        assert vmm.set_config(12, struct.pack('<I', 0xaaaaaaaa))
        ring.offer(0)
        ring.kick()
        ring.wait_used()
        assert vmm.held(FIRST_DATA)
        assert qmp.device()['release']['pages-poisoned'] == 40


def test_bitmap_windows():
    with pair('--page-bitmap') as (_, qmp, vmm):
        vmm.touch(FIRST_DATA, 512)
        window = struct.pack('<QIBBH', GUEST // PAGE + FIRST_DATA, 64, 0, 0, 0)
        window += struct.pack('<Q', 0xff | 1 << 63)
        large = struct.pack('<QIBBH', GUEST // PAGE + FIRST_DATA + 64, 2, 6, 0, 0)
        large += struct.pack('<Q', 3)
        vmm.rings[0].send(window + large)
        vmm.rings[0].wait_used()
        assert not vmm.held(FIRST_DATA + 7) and vmm.held(FIRST_DATA + 8)
        assert not vmm.held(FIRST_DATA + 63) and not vmm.held(FIRST_DATA + 191)
        assert vmm.held(FIRST_DATA + 192)
        traffic = qmp.device()['traffic']['inflate']
        assert traffic['windows'] == 2 and traffic['bits'] == 11
        assert traffic['runs'] == 2 and traffic['pfns'] == 9 + 128
        # One stray bit, and nothing of the buffer is done.
        bad = struct.pack('<QIBBH', GUEST // PAGE + FIRST_DATA + 256, 63, 0, 0, 0)
        vmm.rings[0].send(window + bad + struct.pack('<Q', 1 << 63))
        vmm.rings[0].wait_used()
        assert rejects(qmp) == {'window-stray-bit'}
        assert qmp.device()['traffic']['inflate']['pfns'] == 9 + 128


def test_indirect_tables():
    with pair() as (_, qmp, vmm):
        vmm.touch(FIRST_DATA, 4)
        table, data = BUFFERS, BUFFERS + PAGE
        vmm.put(data, vmm.pfns([FIRST_DATA, FIRST_DATA + 2]))
        vmm.put(table, struct.pack('<QIHHQIHH', GUEST + data, 4, NEXT, 1,
                                   GUEST + data + 4, 4, 0, 0))
        vmm.rings[0].desc(0, GUEST + table, 32, INDIRECT_TABLE)
        vmm.rings[0].offer(0)
        vmm.rings[0].kick()
        vmm.rings[0].wait_used()
        assert not vmm.held(FIRST_DATA) and not vmm.held(FIRST_DATA + 2)
        assert vmm.held(FIRST_DATA + 1)
        assert not breaches(qmp)


@pytest.mark.parametrize('event_idx', ('on', 'off'))
def test_calls_and_kicks(event_idx):
    with pair(f'--event-idx={event_idx}') as (_, qmp, vmm):
        ring = vmm.rings[0]
        for round_ in range(3 * RING_SIZE):
            if event_idx == 'on':
                # Call with the next one.
                vmm.put(ring.avail_at + 4 + 2 * RING_SIZE,
                        struct.pack('<H', round_))
            vmm.inflate([FIRST_DATA + round_])
            assert ring.called()
        # Nobody asks for a call any more.
        if event_idx == 'off':
            vmm.put(ring.avail_at, struct.pack('<H', 1))
        vmm.inflate([FIRST_DATA])
        assert not ring.called(0.2)
        inflate = qmp.device()['queues'][0]
        assert inflate['calls'] == 3 * RING_SIZE and inflate['taken'] == 0


def stats_buffer(values):
    """A buffer of statistics."""
    return b''.join(struct.pack('<HQ', tag, value) for tag, value in values)


def test_statistics():
    with pair('--poll-interval=1') as (_, qmp, vmm):
        assert qmp.stats()['last-update'] == 0
        assert qmp.stats()['stats']['stat-free-memory'] == 2**64 - 1
        ring = vmm.rings[2]
        ring.send(stats_buffer([(4, 1234), (5, 5678), (10, 3), (99, 1)]))
        # The device keeps it until it wants new ones.
        wait_for(lambda: qmp.stats()['last-update'], 5, 'statistics')
        stats = qmp.stats()['stats']
        assert stats['stat-free-memory'] == 1234 and stats['stat-oom-kills'] == 3
        assert stats['stat-swap-in'] == 2**64 - 1
        assert rejects(qmp) == {'statistic'}
        ring.wait_used(timeout=5)
        qmp('qom-set', path='/machine/peripheral/balloon0',
            property='guest-stats-polling-interval', value=0)
        ring.send(stats_buffer([(4, 99)]))
        wait_for(lambda: qmp.stats()['stats']['stat-free-memory'] == 99, 5, 'more')
        time.sleep(1.2)
        assert ring.used() == []


def test_statistics_end_with_their_guest():
    with Daemon(*ALL, *SANDBOX) as daemon, daemon.qmp() as qmp:
        for end in (lambda vmm: vmm.tell(RESET_DEVICE), Vmm.close):
            with Vmm(daemon.socket) as vmm:
                vmm.set_up()
                vmm.rings[2].send(stats_buffer([(4, 1234)]))
                wait_for(lambda: qmp.stats()['last-update'], 5, 'statistics')
                end(vmm)
                wait_for(lambda: not qmp.stats()['last-update'], 5, 'the end of them')
                assert qmp.stats()['stats']['stat-free-memory'] == 2**64 - 1


def test_free_page_hints():
    with pair() as (_, qmp, vmm):
        ring = vmm.rings[3]
        qmp('balloon-free-page-hint', action='start')
        assert vmm.config_changes()
        cmd_id, = struct.unpack('<I', vmm.get_config(8, 4))
        assert cmd_id > 1
        ring.send(struct.pack('<I', cmd_id))
        ring.wait_used()
        slot = ring.next_desc
        ring.desc(slot, GUEST + FIRST_DATA * PAGE, 1 << 22, WRITE)
        ring.offer(slot)
        ring.kick()
        assert ring.wait_used() == [slot]
        ring.next_desc = slot + 1
        assert qmp.device()['hints'] == {'state': 'running', 'rounds': 1,
                                         'blocks': 1, 'bytes': 1 << 22}
        ring.send(struct.pack('<I', 0))
        ring.wait_used()
        assert qmp.device()['hints']['state'] == 'ended'
        qmp('balloon-free-page-hint', action='done')
        assert struct.unpack('<I', vmm.get_config(8, 4))[0] == 1
        ring.send(struct.pack('<I', 77))
        ring.wait_used()
        assert rejects(qmp) == {'hint-id'}


def test_target_and_actual():
    with pair() as (_, qmp, vmm):
        assert qmp('query-balloon')['actual'] == 64 * MIB
        qmp('balloon', value=48 * MIB)
        assert vmm.config_changes()
        assert vmm.num_pages() == 16 * MIB // PAGE
        vmm.set_actual(1000)
        assert qmp('query-balloon')['actual'] == 64 * MIB - 1000 * PAGE
        # A VMM that writes all of it writes an old num_pages as well.
        assert vmm.set_config(0, struct.pack('<IIII', 7, 2000, 9, 0))
        assert vmm.num_pages() == 16 * MIB // PAGE
        assert qmp('query-balloon')['actual'] == 64 * MIB - 2000 * PAGE
        qmp('balloon', value=1 << 40)
        assert vmm.num_pages() == 0


def test_the_next_guest_is_given_what_the_operator_asked_for():
    with Daemon(*ALL, *SANDBOX) as daemon, daemon.qmp() as qmp:
        for mib in (64, 32, 8, 128):
            with Vmm(daemon.socket, mib=mib) as vmm:
                vmm.negotiate()
                assert vmm.num_pages() == 0
                assert vmm.mem_table()
                if mib == 64:
                    qmp('balloon', value=16 * MIB)
                give_up = max(mib - 16, 0) * MIB // PAGE
                assert vmm.num_pages() == give_up
                assert qmp.device()['config']['num-pages'] == give_up
                # Whoever has read it before the memory came reads it again.
                assert vmm.config_changes(5 if give_up else 0.1) == bool(give_up)


def test_a_balloon_larger_than_ram_is_refused():
    with pair() as (_, qmp, vmm):
        vmm.set_actual(64 * MIB // PAGE + 1)
        assert rejects(qmp) == {'actual'}
        assert qmp('query-balloon')['actual'] == 0


def test_a_stopped_queue_continues_where_it_was():
    with pair() as (_, qmp, vmm):
        ring = vmm.rings[2]
        ring.send(stats_buffer([(4, 1)]))
        wait_for(lambda: qmp.stats()['last-update'], 5, 'statistics')
        # The buffer that the device keeps is offered again.
        index, base = struct.unpack('<II', vmm.ask(
            GET_VRING_BASE, struct.pack('<II', 2, 0)))
        assert (index, base) == (2, 0)
        updates = qmp.device()['stats-updates']
        vmm.set_up_ring(2)
        wait_for(lambda: qmp.device()['stats-updates'] > updates, 5, 'once more')


def test_a_reset_forgets_the_guest_and_keeps_the_target():
    with pair() as (_, qmp, vmm):
        qmp('balloon', value=32 * MIB)
        vmm.set_actual(100)
        assert vmm.tell(RESET_DEVICE)
        assert qmp('query-balloon')['actual'] == 64 * MIB
        assert vmm.num_pages() == 32 * MIB // PAGE
        assert not any(q['enabled'] for q in qmp.device()['queues'])


def test_memory_that_moves_takes_the_rings_along():
    with pair() as (_, qmp, vmm):
        vmm.inflate([FIRST_DATA])
        assert vmm.mem_table([(GUEST, vmm.size, USER, 0)])
        vmm.inflate([FIRST_DATA + 1])
        assert not breaches(qmp)


def test_a_ring_that_is_lost_takes_no_other_along():
    with pair() as (_, qmp, vmm):
        assert not vmm.mem_table([(GUEST + RING_BYTES, vmm.size - RING_BYTES,
                                   USER + RING_BYTES, RING_BYTES)])
        vmm.inflate([FIRST_DATA], ring=1)
        vmm.rings[0].send(vmm.pfns([FIRST_DATA]))
        settle()
        assert vmm.rings[0].used() == []
        assert vmm.mem_table()
        assert vmm.rings[0].wait_used() and not breaches(qmp)


def test_memory_may_come_after_the_rings():
    with Daemon(*ALL, *SANDBOX) as daemon, Vmm(daemon.socket) as vmm:
        vmm.negotiate()
        vmm.set_up_ring(0)
        assert vmm.mem_table()
        vmm.inflate([FIRST_DATA])


def test_two_regions_of_one_file():
    with Daemon(*ALL, *SANDBOX) as daemon:
        with daemon.qmp() as qmp, Vmm(daemon.socket) as vmm:
            vmm.negotiate()
            half = vmm.size // 2
            assert vmm.mem_table([(GUEST, half, USER, 0),
                                  (1 << 32, half, USER + half, half)])
            for index in range(5):
                vmm.set_up_ring(index)
            vmm.touch(half // PAGE, 16)
            payload = struct.pack('<16I', *range(1 << 20, (1 << 20) + 16))
            vmm.rings[0].send(payload)
            vmm.rings[0].wait_used()
            assert not vmm.held(half // PAGE) and not vmm.held(half // PAGE + 15)
            assert qmp.device()['ram'] == vmm.size


def test_queues_are_dense_or_by_the_letter():
    with Daemon('--stats=off', *SANDBOX) as daemon, daemon.qmp() as qmp:
        assert [(q['role'], q['index']) for q in qmp.device()['queues']] == [
            ('inflate', 0), ('deflate', 1), ('report', 2)]
    with Daemon('--stats=off', '--queue-layout=spec', *SANDBOX) as daemon:
        with daemon.qmp() as qmp:
            assert [(q['role'], q['index']) for q in qmp.device()['queues']] == [
                ('inflate', 0), ('deflate', 1), ('report', 4)]


def test_without_protocol_features_a_kick_descriptor_starts_a_ring():
    with pair(features=1 << VERSION_1) as (_, qmp, vmm):
        assert vmm.tell(SET_VRING_ENABLE, struct.pack('<II', 0, 0))
        assert vmm.tell(SET_VRING_KICK, struct.pack('<Q', 0),
                        (vmm.rings[0].kick_fd,))
        vmm.inflate([FIRST_DATA])
        # UML says nothing but this before it frees its rings.
        vmm.ask(GET_FEATURES)
        assert not any(q['enabled'] for q in qmp.device()['queues'])


# A bad driver ----------------------------------------------------------------

def test_pages_outside_memory_are_left_out():
    with pair() as (_, qmp, vmm):
        vmm.touch(FIRST_DATA, 4)
        vmm.rings[0].send(struct.pack(
            '<IIII', 0, GUEST // PAGE + FIRST_DATA, 0xffffffff,
            (GUEST + vmm.size) // PAGE))
        vmm.rings[0].wait_used()
        device = qmp.device()
        assert device['rejects']['pfn'] == 3
        assert device['traffic']['inflate']['pfns'] == 1
        assert not vmm.held(FIRST_DATA) and vmm.held(FIRST_DATA + 1)


@pytest.mark.parametrize('kind, descs', (
    ('length', [(GUEST + BUFFERS, 6, 0)]),
    ('length', [(GUEST + BUFFERS, 0, 0)]),
    ('too-long', [(GUEST, 0xffffffff, 0)]),
    ('direction', [(GUEST + BUFFERS, 64, WRITE)]),
    ('address', [(GUEST - 8, 64, 0)]),
    ('address', [(GUEST + (64 << 20) - 32, 64, 0)]),
    ('address', [(2**64 - 32, 64, 0)])))
def test_bad_buffers_are_given_back_undone(kind, descs):
    with pair() as (_, qmp, vmm):
        ring = vmm.rings[0]
        for slot, (addr, length, flags) in enumerate(descs):
            ring.desc(slot, addr, length, flags)
        ring.offer(0)
        ring.kick()
        assert ring.wait_used() == [0]
        assert rejects(qmp) == {kind}
        assert qmp.device()['release']['punches'] == 0
        # And the queue still works.
        ring.next_desc = 5
        vmm.inflate([FIRST_DATA])


@pytest.mark.parametrize('kind, addr, length, flags', (
    ('address', GUEST - PAGE, PAGE, WRITE),
    ('address', GUEST + (64 << 20) - PAGE, 2 * PAGE, WRITE),
    ('length', GUEST + 1, PAGE, WRITE),
    ('length', GUEST, 100, WRITE),
    ('length', GUEST, 0, WRITE),
    ('direction', GUEST + BUFFERS, PAGE, 0)))
def test_bad_reports_are_given_back_undone(kind, addr, length, flags):
    with pair() as (_, qmp, vmm):
        ring = vmm.rings[4]
        ring.desc(0, addr, length, flags)
        ring.offer(0)
        ring.kick()
        assert ring.wait_used() == [0]
        assert rejects(qmp) == {kind}
        assert qmp.device()['release']['punches'] == 0


def too_many(ring):
    ring.publish(RING_SIZE + 1)


def bad_head(ring):
    ring.offer(RING_SIZE)


def bad_next(ring):
    ring.desc(0, GUEST, 4, NEXT, 9999)
    ring.offer(0)


def endless(ring):
    ring.desc(0, GUEST, 4, NEXT, 0)
    ring.offer(0)


def bad_order(ring):
    ring.desc(0, GUEST, 4, WRITE | NEXT, 1)
    ring.desc(1, GUEST, 4)
    ring.offer(0)


def bad_indirect(ring):
    ring.desc(0, GUEST, 17, INDIRECT_TABLE)
    ring.offer(0)


def far_indirect(ring):
    ring.desc(0, 0x1000, 16, INDIRECT_TABLE)
    ring.offer(0)


@pytest.mark.parametrize('kind, act', (
    ('avail-index', too_many), ('head', bad_head), ('next', bad_next),
    ('long-chain', endless), ('order', bad_order), ('indirect', bad_indirect),
    ('memory', far_indirect)))
@pytest.mark.parametrize('index', (0, 2, 3, 4))
def test_a_breach_breaks_its_queue_and_no_other(kind, act, index):
    with pair() as (daemon, qmp, vmm):
        ring = vmm.rings[index]
        act(ring)
        ring.kick()
        wait_for(lambda: breaches(qmp) == {kind}, 5, kind)
        assert struct.unpack('<Q', os.read(ring.err_fd, 8))[0] == 1
        assert qmp.device()['queues'][index]['broken']
        assert 'is broken' in daemon.log()
        assert ring.used() == []
        # Kicks of a broken ring cost nothing; others work.
        ring.kick()
        vmm.inflate([FIRST_DATA], ring=1)
        # Set up again, it is as good as new.
        ring.__init__(vmm, index)
        vmm.memory[ring.start:ring.start + RING_BYTES] = bytes(RING_BYTES)
        vmm.set_up_ring(index)
        assert not qmp.device()['queues'][index]['broken']


def processor_time(daemon):
    """Seconds that the daemon has run for; on a busy machine it also waits."""
    schedstat = Path(f'/proc/{daemon.process.pid}/schedstat').read_text()
    return int(schedstat.split()[0]) / 1e9


def test_the_operator_is_heard_while_a_guest_keeps_the_daemon_busy():
    with pair('--release=page', mib=512) as (daemon, qmp, vmm):
        ring = vmm.rings[0]
        size = vmm.size // PAGE - 2 * FIRST_DATA
        # All pages but the first ones, in a few long buffers among those.
        pages = vmm.pfns(list(range(2 * FIRST_DATA, 2 * FIRST_DATA + size)))
        vmm.put(FIRST_DATA * PAGE, pages)
        for slot, at in enumerate(range(0, len(pages), 65536)):
            ring.desc(slot, GUEST + FIRST_DATA * PAGE + at,
                      min(65536, len(pages) - at))
            ring.offer(slot, publish=False)
        ring.publish()
        ring.kick()
        slowest = 0
        while ring.used_idx() != ring.avail_idx:
            begin = processor_time(daemon)
            qmp('query-balloon')
            slowest = max(slowest, processor_time(daemon) - begin)
        assert qmp.device()['release']['punches'] == size
        assert slowest < 0.1, f'{slowest * 1000:.0f} ms'


@contextlib.contextmanager
def long_batch():
    """A daemon with a batch that takes it long, of so many pages."""
    with pair('--release=page', '--page-bitmap', mib=4096) as (_, qmp, vmm):
        def punches():
            return qmp.device()['release']['punches']

        # One small buffer, a bit for 2 MiB; the first ones have the rings.
        blocks = vmm.size // (2 * MIB)
        window = struct.pack('<QIBBH', GUEST // PAGE, blocks, 9, 0, 0)
        bits = (1 << blocks) - (1 << 2)
        vmm.rings[0].send(window + bits.to_bytes(blocks // 8, 'little'))
        wait_for(punches, 5, 'the batch', 0)
        yield qmp, vmm, punches, (blocks - 2) * 512


@pytest.mark.parametrize('request_, payload', (
    (SET_VRING_ENABLE, struct.pack('<II', 1, 1)),
    (SET_FEATURES, struct.pack('<Q', 1 << PROTOCOL)),
    (SET_VRING_NUM, struct.pack('<II', 7, 4))))
def test_the_operator_is_heard_while_a_message_waits_for_a_batch(request_, payload):
    with long_batch() as (_, vmm, punches, pages):
        vmm.send(request_, payload, flags=1 | NEED_REPLY)
        # Three answers from the middle of the batch, before the message's own.
        heard = [punches() for _ in range(3)]
        assert heard[2] < pages
        assert vmm.rings[0].used() == []
        assert vmm.receive()[2] == bytes(8)
        assert vmm.rings[0].used() and punches() == pages


def test_what_nobody_waits_for_is_dropped():
    for end in (lambda vmm: vmm.tell(RESET_DEVICE), Vmm.close,
                lambda vmm: vmm.send(SET_VRING_ENABLE, struct.pack('<II', 1, 1))):
        with long_batch() as (qmp, vmm, punches, pages):
            end(vmm)
            vmm.close()
            wait_for(lambda: not qmp.device()['connected'], 5, 'the end')
            assert punches() < pages


def test_bad_buffers_count_for_the_length_of_a_batch():
    with pair() as (_, qmp, vmm):
        ring = vmm.rings[0]
        # Long ones whose last bytes are nowhere: no page is ever named.
        ring.desc(0, GUEST + BUFFERS, 65532, NEXT, 1)
        ring.desc(1, 0, 4)
        for _ in range(RING_SIZE):
            ring.offer(0, publish=False)
        ring.publish()
        ring.kick()
        ring.wait_used(RING_SIZE)
        assert qmp.device()['rejects']['address'] == RING_SIZE
        assert qmp.device()['traffic']['inflate']['batches'] >= RING_SIZE // 16


def test_memory_of_the_daemon_stays_small():
    with pair(mib=256) as (daemon, _, vmm):
        ring = vmm.rings[0]
        pages = list(range(FIRST_DATA, FIRST_DATA + 2 * RING_SIZE * 256, 2))
        for _ in range(50):
            for start in range(0, len(pages), 256):
                ring.send(vmm.pfns(pages[start:start + 256]), kick=False)
            ring.kick()
            ring.wait_used(RING_SIZE)
        if not SANITIZED:
            assert daemon.memory() < 16 * MIB


def test_guests_by_chance():
    """Random rings; whatever they are, the daemon lives and answers."""
    seed = int(os.environ.get('VUB_SEED', time.time()))
    print(f'VUB_SEED={seed}')
    rand = random.Random(seed)
    flags = (0, NEXT, WRITE, INDIRECT_TABLE, NEXT | WRITE, NEXT | INDIRECT_TABLE)
    addrs = (0, GUEST, GUEST + BUFFERS, GUEST + (64 << 20) - 64, 2**64 - 1)
    end = time.monotonic() + float(os.environ.get('VUB_RANDOM_SECONDS', 10))
    with Daemon(*ALL, *SANDBOX, '--page-bitmap', '--log-level=error') as daemon:
        with daemon.qmp() as qmp:
            while time.monotonic() < end:
                with Vmm(daemon.socket) as vmm:
                    vmm.set_up()
                    for _ in range(200):
                        ring = vmm.rings[rand.randrange(5)]
                        for _ in range(rand.randrange(6)):
                            ring.desc(rand.randrange(8),
                                      (rand.choice(addrs) + rand.randrange(256))
                                      % 2**64,
                                      rand.choice((4, 16, 32, 64, PAGE, 2**32 - 1)),
                                      rand.choice(flags), rand.randrange(9))
                        at = rand.randrange(BUFFERS // 8) * 8
                        if rand.random() < 0.3:
                            vmm.put(at, rand.randbytes(rand.randrange(64)))
                        vmm.put(BUFFERS + rand.randrange(128), rand.randbytes(32))
                        ring.offer(rand.randrange(8))
                        ring.kick()
                    assert qmp('query-balloon')
            assert daemon.alive()


# A bad VMM -------------------------------------------------------------------

def refused(vmm, request, payload=b'', fds=()):
    """Whether a message is refused with an answer."""
    return not vmm.tell(request, payload, fds)


def test_messages_of_a_wrong_size_are_refused():
    with Daemon(*ALL, *SANDBOX) as daemon, Vmm(daemon.socket) as vmm:
        vmm.negotiate()
        for request, size in ((SET_FEATURES, 8), (SET_VRING_NUM, 8),
                              (SET_VRING_ADDR, 40), (SET_VRING_BASE, 8),
                              (GET_VRING_BASE, 8), (SET_VRING_KICK, 8),
                              (SET_VRING_CALL, 8), (SET_PROTOCOL_FEATURES, 8),
                              (SET_VRING_ENABLE, 8), (SET_MEM_TABLE, 8),
                              (GET_CONFIG, 12), (SET_CONFIG, 12)):
            assert refused(vmm, request, bytes(size - 1)), request
        for request in (0, 4, 6, 23, 36, 77, 0xffffffff):
            assert refused(vmm, request), request


def test_messages_that_ask_for_nonsense_are_refused():
    with Daemon(*ALL, *SANDBOX) as daemon, Vmm(daemon.socket) as vmm:
        vmm.negotiate()
        assert vmm.mem_table()
        for nr in (0, 3, 2048, 0xffffffff):
            assert refused(vmm, SET_VRING_NUM, struct.pack('<II', 0, nr))
        for index in (8, 255, 0xffffffff):
            state = struct.pack('<II', index, 8)
            assert refused(vmm, SET_VRING_NUM, state)
            assert refused(vmm, SET_VRING_BASE, state)
            assert refused(vmm, GET_VRING_BASE, state)
            assert refused(vmm, SET_VRING_ENABLE, state)
            assert refused(vmm, SET_VRING_ADDR,
                           struct.pack('<IIQQQQ', index, 0, 0, 0, 0, 0))
        assert refused(vmm, SET_VRING_BASE, struct.pack('<II', 0, 0x10000))
        assert refused(vmm, SET_VRING_ENABLE, struct.pack('<II', 0, 2))
        assert refused(vmm, SET_FEATURES, struct.pack('<Q', 1 << 33))
        assert refused(vmm, SET_PROTOCOL_FEATURES, struct.pack('<Q', 1 << 20))
        assert refused(vmm, VRING_KICK, struct.pack('<II', 0, 0))
        # A descriptor where there is none, and none where there is one.
        assert refused(vmm, SET_VRING_KICK, struct.pack('<Q', 0))
        assert refused(vmm, SET_VRING_CALL, struct.pack('<Q', NO_FD),
                       (vmm.memory_fd,))
        assert refused(vmm, SET_BACKEND_REQ_FD)
        assert refused(vmm, GET_FEATURES, fds=(vmm.memory_fd,))
        # What cannot be watched is no source of kicks.
        assert refused(vmm, SET_VRING_KICK, struct.pack('<Q', 0),
                       (vmm.memory_fd,))
        vmm.set_up_ring(0)
        vmm.inflate([FIRST_DATA])


def test_config_space_has_an_end():
    with pair() as (_, _, vmm):
        for offset, size in ((0, 17), (16, 1), (15, 2), (0xffffffff, 1), (17, 0)):
            assert vmm.ask(GET_CONFIG, struct.pack('<III', offset, size, 0)
                           + bytes(size)) == b'', (offset, size)
            assert not vmm.set_config(offset, bytes(size))
        assert not vmm.tell(SET_CONFIG, struct.pack('<III', 0, 4, 0))
        assert not vmm.tell(SET_CONFIG, struct.pack('<III', 0, 0xfffffff8, 0))
        assert len(vmm.get_config(8, 8)) == 8


def test_memory_tables_are_checked():
    with Daemon(*ALL, *SANDBOX) as daemon, Vmm(daemon.socket) as vmm:
        vmm.negotiate()
        size = vmm.size
        for regions in (
                [(GUEST, 0, USER, 0)], [(GUEST, size + PAGE, USER, 0)],
                [(GUEST, size, USER, PAGE)], [(GUEST + 1, PAGE, USER, 0)],
                [(GUEST, PAGE + 1, USER, 0)], [(GUEST, PAGE, USER, 5)],
                [(GUEST, 2**64 - PAGE, USER, 0)], [(2**64 - PAGE, PAGE, USER, 0)],
                [(GUEST, PAGE, USER, 2**64 - PAGE)],
                [(GUEST, PAGE, 2**64 - 1, 0)],
                [(GUEST, 2 * PAGE, USER, 0), (GUEST + PAGE, PAGE, USER, 0)]):
            assert not vmm.mem_table(regions), regions
        one = (GUEST, PAGE, USER, 0)
        assert not vmm.mem_table([one], [])
        assert not vmm.mem_table([one], [vmm.memory_fd] * 2)
        with open('/dev/zero', 'rb') as zero:
            assert not vmm.mem_table([one], [zero.fileno()])
        read_end, write_end = os.pipe()
        assert not vmm.mem_table([one], [read_end])
        os.close(read_end)
        os.close(write_end)
        assert refused(vmm, SET_MEM_TABLE, struct.pack('<II', 9, 0) + bytes(256))
        assert refused(vmm, SET_MEM_TABLE, struct.pack('<II', 1, 0),
                       (vmm.memory_fd,))
        assert vmm.mem_table()


def test_rings_outside_memory_are_refused():
    with Daemon(*ALL, *SANDBOX) as daemon, Vmm(daemon.socket) as vmm:
        vmm.negotiate()
        assert vmm.mem_table()
        assert vmm.tell(SET_VRING_NUM, struct.pack('<II', 0, 256))
        good = USER, USER + 2 * PAGE, USER + PAGE
        for i in range(3):
            for bad in (0, USER - PAGE, USER + vmm.size - 8, 2**64 - 16, USER + 1):
                addrs = list(good)
                addrs[i] = bad
                assert refused(vmm, SET_VRING_ADDR,
                               struct.pack('<IIQQQQ', 0, 0, *addrs, 0)), addrs


@pytest.mark.parametrize('more', (0, 65536))
@pytest.mark.parametrize('data', (
    struct.pack('<III', 1, 0, 0),           # no version
    struct.pack('<III', 1, 2, 0),           # another version
    struct.pack('<III', 1, 5, 0),           # a reply
    struct.pack('<III', 1, 1, 0xffffffff),  # a payload without end
    struct.pack('<III', 1, 1, 269),         # one that is a byte too long
    struct.pack('<III', 99, 1, 0)))         # nobody would answer
def test_a_broken_header_ends_the_connection(data, more):
    with Daemon(*ALL, *SANDBOX) as daemon:
        with Vmm(daemon.socket) as vmm:
            with contextlib.suppress(BrokenPipeError):
                vmm.sock.sendall(data + b'\xff' * more)
            assert vmm.gone()
        with daemon.qmp() as qmp, Vmm(daemon.socket) as vmm:
            vmm.set_up()
            vmm.inflate([FIRST_DATA])
            assert qmp.device()['bad-messages'] == 1


def test_what_is_a_bad_message_and_what_is_not():
    with Daemon(*ALL, *SANDBOX) as daemon, daemon.qmp() as qmp:
        with Vmm(daemon.socket) as vmm:
            vmm.negotiate()
            assert refused(vmm, 99)
            assert qmp.device()['bad-messages'] == 1
            qmp.misbehave('disconnect')
            assert vmm.gone()
        with Vmm(daemon.socket) as vmm:
            vmm.send(SET_MEM_TABLE, bytes(8), (vmm.memory_fd,) * 20)
            assert vmm.gone()
        assert qmp.device()['bad-messages'] == 2


def test_messages_may_come_in_pieces():
    with Daemon(*ALL, *SANDBOX) as daemon, Vmm(daemon.socket) as vmm:
        for byte in struct.pack('<III', GET_FEATURES, 1, 0):
            vmm.sock.sendall(bytes([byte]))
            settle(0.01)
        assert len(vmm.receive()[2]) == 8


def open_fds(daemon):
    """Descriptors of the daemon."""
    return len(os.listdir(f'/proc/{daemon.process.pid}/fd'))


def test_no_descriptor_leaks():
    with Daemon(*ALL, *SANDBOX) as daemon:
        before = open_fds(daemon)
        for _ in range(3):
            with Vmm(daemon.socket) as vmm:
                vmm.set_up()
                fd = vmm.memory_fd
                refused(vmm, SET_VRING_KICK, struct.pack('<Q', 77), (fd,))
                refused(vmm, GET_FEATURES, fds=(fd,) * 8)
                refused(vmm, 99, fds=(fd,))
                refused(vmm, SET_MEM_TABLE, struct.pack('<II', 2, 0) + bytes(64),
                        (fd, fd))
                for _ in range(5):
                    vmm.set_up_ring(0)
                    assert vmm.mem_table()
                # Half a message, with descriptors, and gone.
                vmm.sock.sendmsg([b'\x05\0\0'], [(
                    socket.SOL_SOCKET, socket.SCM_RIGHTS,
                    struct.pack('2i', fd, fd))])
            wait_for(lambda: open_fds(daemon) <= before, 5,
                     f'{before} descriptors, not {open_fds(daemon)}')


def test_more_descriptors_than_any_message_has():
    with Daemon(*ALL, *SANDBOX) as daemon:
        before = open_fds(daemon)
        with Vmm(daemon.socket) as vmm:
            vmm.send(SET_MEM_TABLE, bytes(8), (vmm.memory_fd,) * 20)
            assert vmm.gone()
        wait_for(lambda: open_fds(daemon) <= before, 5, 'descriptors')


def test_a_vmm_that_does_not_read_is_disconnected():
    with Daemon(*ALL, *SANDBOX) as daemon:
        with Vmm(daemon.socket) as vmm:
            message = struct.pack('<III', GET_FEATURES, 1, 0)
            with pytest.raises(OSError):
                for _ in range(100000):
                    vmm.sock.sendall(message)
        with Vmm(daemon.socket) as vmm:
            vmm.set_up()


def test_memory_that_is_truncated_ends_the_connection():
    with Daemon(*ALL, *SANDBOX) as daemon:
        with daemon.qmp() as qmp:
            with Vmm(daemon.socket) as vmm:
                vmm.set_up()
                ring = vmm.rings[0]
                ring.desc(0, GUEST + vmm.size - PAGE, 64)
                ring.offer(0)
                os.ftruncate(vmm.memory_fd, vmm.size - PAGE)
                ring.kick()
                assert vmm.gone()
            assert not qmp.device()['connected']
            assert qmp.device()['bad-messages'] == 0
            assert 'was truncated' in daemon.log()
        with Vmm(daemon.socket) as vmm:
            vmm.set_up()
            vmm.inflate([FIRST_DATA])


def test_memory_that_the_host_has_no_page_for_ends_the_connection():
    with Daemon(*ALL, *SANDBOX) as daemon, Vmm(daemon.socket) as vmm:
        vmm.set_up()
        pools = Path('/sys/kernel/mm/hugepages/hugepages-2048kB')
        try:
            fd = os.memfd_create('huge', os.MFD_HUGETLB | os.MFD_HUGE_2MB)
            os.ftruncate(fd, 2 * MIB)
            free = int((pools / 'free_hugepages').read_text())
        except OSError as error:
            pytest.skip(f'no hugetlbfs: {error}')
        if free:
            pytest.skip('there are huge pages')
        assert vmm.mem_table([(GUEST, vmm.size, USER, 0),
                              (1 << 32, 2 * MIB, USER + vmm.size, 0)],
                             [vmm.memory_fd, fd])
        os.close(fd)
        ring = vmm.rings[0]
        ring.desc(0, 1 << 32, 64)
        ring.offer(0)
        ring.kick()
        assert vmm.gone()
        assert 'no page for its memory' in daemon.log()
        assert 'truncated' not in daemon.log()


def test_a_failing_discard_is_counted_and_said():
    with Daemon(*ALL, *SANDBOX) as daemon, daemon.qmp() as qmp:
        with Vmm(daemon.socket) as vmm:
            vmm.set_up()
            # A descriptor that can be mapped shared for reading only would be
            # refused; a seal against writing comes too late for that.
            import fcntl  # pylint: disable=import-outside-toplevel
            fd = os.memfd_create('sealed', os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, vmm.size)
            assert vmm.mem_table([(GUEST, vmm.size, USER, 0),
                                  (1 << 32, vmm.size, USER + vmm.size, 0)],
                                 [vmm.memory_fd, fd])
            future_write = 0x10
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, future_write)
            vmm.rings[0].send(struct.pack('<I', 1 << 20))
            vmm.rings[0].wait_used()
            release = qmp.device()['release']
            assert release['failures'] == 1 and release['bytes-failed'] == PAGE
            assert release['last-error']
            assert 'is not released' in daemon.log()
            os.close(fd)


def test_hugetlb_releases_whole_huge_pages():
    huge = 2 * MIB
    with Daemon(*ALL, *SANDBOX) as daemon, daemon.qmp() as qmp:
        with Vmm(daemon.socket) as vmm:
            vmm.negotiate()
            try:
                fd = os.memfd_create('huge', os.MFD_HUGETLB | os.MFD_HUGE_2MB)
                os.ftruncate(fd, 8 * huge)
            except OSError as error:
                pytest.skip(f'no hugetlbfs: {error}')
            assert vmm.mem_table([(GUEST, vmm.size, USER, 0),
                                  (1 << 32, 8 * huge, USER + vmm.size, 0)],
                                 [vmm.memory_fd, fd])
            vmm.set_up_ring(0)
            assert 'hugetlb' in daemon.log()
            # From the middle of the first page to the middle of the fourth.
            for start in range(256, 1792, 256):
                vmm.rings[0].send(struct.pack(
                    '<256I', *range((1 << 20) + start, (1 << 20) + start + 256)),
                    kick=False)
            vmm.rings[0].kick()
            vmm.rings[0].wait_used(6)
            release = qmp.device()['release']
            assert release['punches'] == 1 and release['failures'] == 0
            assert release['bytes'] == 2 * huge and release['bytes-kept'] == huge
            os.close(fd)


def test_many_guests_in_a_row_die_at_random_moments():
    rand = random.Random(7)
    with Daemon(*ALL, *SANDBOX, '--log-level=error') as daemon:
        for _ in range(100):
            with Vmm(daemon.socket, mib=16) as vmm:
                steps = rand.randrange(10)
                if steps > 0:
                    vmm.negotiate()
                if steps > 2:
                    assert vmm.mem_table()
                for index in range(max(0, min(steps - 3, 5))):
                    vmm.set_up_ring(index)
                if steps > 8:
                    vmm.rings[0].send(vmm.pfns(list(range(2500, 2700))))
        assert daemon.alive()


# Sockets ---------------------------------------------------------------------

def test_without_reconnect_the_daemon_ends_with_its_guest():
    with Daemon(*SANDBOX, check=False) as daemon:
        with Vmm(daemon.socket) as vmm:
            vmm.set_up()
        assert daemon.process.wait(10) == 0
        # What it leaves behind is dead.
        for path in (daemon.socket, daemon.qmp_socket):
            with pytest.raises(ConnectionRefusedError):
                socket.socket(socket.AF_UNIX).connect(str(path))


def test_sockets_are_for_the_user_alone():
    with Daemon(*SANDBOX) as daemon:
        for path in (daemon.socket, daemon.qmp_socket):
            assert path.stat().st_mode & 0o777 == 0o600


def test_dead_sockets_are_replaced_and_live_ones_are_not():
    with Daemon(*SANDBOX, check=False) as daemon:
        other = subprocess.run([DAEMON, f'--socket-path={daemon.socket}', *SANDBOX],
                               capture_output=True, text=True, check=False)
        assert other.returncode and 'another daemon' in other.stderr
        # Nor does one that fails take a socket away that is not its own.
        other = subprocess.run([DAEMON, f'--socket-path={daemon.socket}',
                                f'--qmp={daemon.qmp_socket}', *SANDBOX],
                               capture_output=True, text=True, check=False)
        assert other.returncode and 'another daemon' in other.stderr
        assert daemon.socket.exists() and daemon.qmp_socket.exists()
        daemon.process.kill()
        daemon.process.wait()
        assert daemon.socket.exists()
        daemon.start()
        with daemon.qmp() as qmp:
            assert qmp('query-version')
        plain = daemon.dir / 'plain'
        plain.write_text('precious')
        other = subprocess.run([DAEMON, f'--socket-path={plain}', *SANDBOX],
                               capture_output=True, text=True, check=False)
        assert other.returncode and plain.read_text() == 'precious'


def test_daemons_that_start_together_look_one_after_the_other():
    """What one has made but does not listen on yet looks dead to the next, so it locks
    the directory meanwhile."""
    with Daemon(*SANDBOX, check=False) as daemon:
        daemon.process.kill()
        daemon.process.wait()
        directory = os.open(daemon.dir, os.O_RDONLY)
        fcntl.flock(directory, fcntl.LOCK_EX)
        with subprocess.Popen([DAEMON, f'--socket-path={daemon.socket}', *SANDBOX]) as other:
            try:
                time.sleep(0.3)
                with pytest.raises(ConnectionRefusedError), socket.socket(socket.AF_UNIX) as vmm:
                    vmm.connect(str(daemon.socket))
                os.close(directory)
                wait_for(lambda: not socket.socket(socket.AF_UNIX).connect_ex(
                    str(daemon.socket)), 5, 'the other daemon to listen')
            finally:
                other.kill()


def test_an_inherited_descriptor():
    near, far = socket.socketpair()
    with far:
        process = subprocess.Popen([DAEMON, f'--fd={far.fileno()}', *SANDBOX],
                                   pass_fds=(far.fileno(),))
    near.sendall(struct.pack('<III', GET_FEATURES, 1, 0))
    assert len(near.recv(64)) == 20
    near.close()
    assert process.wait(10) == 0


@pytest.mark.skipif(SANITIZED, reason='sanitizers cannot be confined')
def test_the_daemon_is_confined():
    with Daemon() as daemon:
        status = Path(f'/proc/{daemon.process.pid}/status').read_text()
        assert 'NoNewPrivs:\t1' in status and 'Seccomp:\t2' in status


# Misbehaviour ----------------------------------------------------------------

def test_delay_drop_hold_reorder_duplicate():
    with pair() as (_, qmp, vmm):
        ring = vmm.rings[0]
        page = vmm.pfns([FIRST_DATA])

        qmp.misbehave('delay', queue='inflate', ms=300)
        begin = time.monotonic()
        head = ring.send(page)
        assert ring.wait_used() == [head]
        assert time.monotonic() - begin >= 0.29
        qmp.misbehave('delay', queue='inflate', ms=200, serial=True)
        begin = time.monotonic()
        heads = [ring.send(page) for _ in range(3)]
        assert ring.wait_used(3) == heads
        assert time.monotonic() - begin >= 0.59
        qmp.misbehave('off')

        qmp.misbehave('drop', queue='inflate', count=2)
        lost = [ring.send(page), ring.send(page)]
        head = ring.send(page)
        assert ring.wait_used() == [head] and head not in lost
        assert qmp.device()['queues'][0]['taken'] == 2

        qmp.misbehave('hold', queue='inflate')
        heads = [ring.send(page) for _ in range(2)]
        settle()
        assert ring.used() == []
        qmp.misbehave('off')
        assert ring.wait_used(2) == heads

        qmp.misbehave('reorder', queue='inflate')
        heads = [ring.send(page, kick=False) for _ in range(3)]
        ring.kick()
        assert ring.wait_used(3) == heads[::-1]
        qmp.misbehave('off')

        qmp.misbehave('duplicate', queue='inflate')
        head = ring.send(page)
        assert ring.wait_used(2) == [head, head]
        assert qmp.device()['queues'][0]['taken'] == 2
        qmp.misbehave('off')
        assert not breaches(qmp)


def test_silence_lies_and_broken_queues():
    with pair('--event-idx=off') as (_, qmp, vmm):
        qmp.misbehave('silent', queue='inflate')
        vmm.inflate([FIRST_DATA])
        assert not vmm.rings[0].called(0.2)
        qmp.misbehave('poll', queue='deflate')
        head = vmm.rings[1].send(vmm.pfns([FIRST_DATA]), kick=False)
        assert vmm.rings[1].wait_used() == [head]
        qmp.misbehave('config', field='num_pages', value=0xfffffff0)
        assert vmm.config_changes() and vmm.num_pages() == 0xfffffff0
        qmp.misbehave('off')
        assert vmm.config_changes() and vmm.num_pages() == 0
        qmp.misbehave('break-queue', queue='inflate')
        assert vmm.rings[0].wait_used() == [RING_SIZE]
        assert vmm.rings[0].called()
        qmp.misbehave('break-queue', queue='inflate', value=0xffffffff)
        assert vmm.rings[0].wait_used() == [0xffffffff]
        qmp.misbehave('disconnect')
        assert vmm.gone()


def test_ballooned_memory_is_filled_and_checked():
    with pair() as (_, qmp, vmm):
        qmp.misbehave('fill', value=0xa5)
        vmm.touch(FIRST_DATA, 8)
        vmm.inflate(list(range(FIRST_DATA, FIRST_DATA + 8)))
        assert vmm.get(FIRST_DATA * PAGE, 8 * PAGE) == b'\xa5' * 8 * PAGE
        vmm.inflate(list(range(FIRST_DATA, FIRST_DATA + 4)), ring=1)
        assert qmp.device()['fill'] == {'on': True, 'filled': 8, 'checked': 4,
                                        'damaged': 0}
        vmm.put((FIRST_DATA + 5) * PAGE + 100, b'used')
        vmm.inflate(list(range(FIRST_DATA + 4, FIRST_DATA + 8)), ring=1)
        assert qmp.device()['fill']['damaged'] == 1


def test_no_orders_without_the_option():
    with Daemon(*SANDBOX) as daemon, daemon.qmp() as qmp:
        with pytest.raises(QMPError) as error:
            qmp.misbehave('off')
        assert error.value.error_class == 'CommandNotFound'
