# SPDX-License-Identifier: GPL-2.0
# Copyright (C) the project's developers
"""What benchmarks on User-Mode Linux share: memory that the host has or has not, and where
the time of a resize goes."""

import ctypes
import os
import signal
import time

from bench import MIB, UmlGuest, resize

FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE = 1, 2

#: Kinds of tmpfs that the guest's memory is in, by their mount option.
HUGE = {'never': '4 KiB pages', 'always': 'huge pages'}
PHASES = ('inflate', 'deflate')
STAGES = ('allocate', 'tell', 'translate', 'release')


def touch(guest: UmlGuest) -> None:
    """Use nearly all memory once."""
    guest.back()
    guest.fill(guest.meminfo()['MemFree'] // MIB - 256, timeout=600)


def floor(guest: UmlGuest, mib: int) -> float:
    """Seconds that one hole of so much touched memory takes. The guest stands still from
    here on: its memory is not what it was."""
    touch(guest)
    os.kill(guest.pid, signal.SIGSTOP)
    size = mib * MIB
    with open(guest.memory_file(), 'r+b') as memory:
        start = time.monotonic()
        punch_hole(memory.fileno(), os.fstat(memory.fileno()).st_size - size, size)
        return time.monotonic() - start


def punch_hole(fd: int, offset: int, size: int) -> None:
    """fallocate(2), of which Python knows less."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.fallocate64(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                        ctypes.c_int64(offset), ctypes.c_int64(size)):
        raise OSError(ctypes.get_errno(), 'no hole in a memory file')


def stages(guest: UmlGuest, target: int, phase: str) -> dict:
    """Resize, and tell where the time went."""
    def host() -> dict:
        return guest.device()['traffic'][phase]

    before, cpu = host(), guest.host_cpu()
    seconds = resize(guest, target)
    cpu = guest.host_cpu() - cpu
    after = host()
    spent = {key: (after[f'{key}-ns'] - before[f'{key}-ns']) / 1e9
             for key in ('decode', 'translate', 'release')}
    device = sum(spent.values())
    return {'s': seconds, 'allocate_s': cpu, 'tell_s': max(0, seconds - max(cpu, device)),
            'translate_s': spent['decode'] + spent['translate'],
            'release_s': spent['release'],
            'batches': after['batches'] - before['batches'],
            'runs': after['runs'] - before['runs']}
