# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""What the driver itself takes: memory and processor time."""

import re

from bed import MIB
from moves import DRIVER, TRACING, resize, traced_work
from qemu import Guest

#: What the driver may keep for a device that rests.
IDLE_KIB = 64


def slots(guest: Guest) -> int:
    """Pages that the driver has for requests."""
    counters = guest.debugfs()
    return sum(counters[f'{queue}_slots'] for queue in ('inflate', 'deflate', 'report'))


def test_idle_memory():
    """What a device's probe allocates, by the kernel's own trace, and keeps."""
    with Guest(mem_mib=256) as guest:
        name = guest.run(f'cd {DRIVER}; ls -d virtio*').strip()
        guest.run(f'echo {name} > {DRIVER}/unbind; cd {TRACING};'
                  'echo 1 > events/kmem/kmalloc/enable;'
                  'echo 1 > events/kmem/kfree/enable;'
                  f'echo {name} > {DRIVER}/bind; echo 0 > tracing_on')
        trace = guest.run(f'grep -E "virtio_balloon|kfree" {TRACING}/trace')
        kept = {}
        for line in trace.splitlines():
            pointer = re.search(r'ptr=(\S+)', line)
            size = re.search(r'\[virtio_balloon\].* bytes_alloc=(\d+)', line)
            if pointer and size:
                kept[pointer.group(1)] = int(size.group(1))
            elif pointer:
                kept.pop(pointer.group(1), None)
        assert kept, trace
        assert sum(kept.values()) + slots(guest) * 4096 <= IDLE_KIB * 1024


def test_buffers_while_resizing():
    """Buffers are single pages, at most 1 MiB of them, and gone at rest."""
    with Guest(mem_mib=1024) as guest:
        most = 0
        for mib in (300, 1024, 300):
            guest.target(mib)
            while guest.actual() != mib * MIB:
                most = max(most, slots(guest))
        assert 0 < most * 4096 <= MIB
        resize(guest, 1024)
        assert slots(guest) <= 16


def test_idle_driver_never_runs():
    """At its target the driver does nothing at all: none of its works is run."""
    with Guest(mem_mib=512, balloon='deflate-on-oom=on') as guest:
        work = traced_work(guest, 5, lambda: guest.target(256))
        assert work.runs > 0, 'the trace does not see the driver'
        guest.wait_actual(256 * MIB)
        counters = guest.debugfs()
        assert traced_work(guest, 10).runs == 0
        assert guest.debugfs() == counters
