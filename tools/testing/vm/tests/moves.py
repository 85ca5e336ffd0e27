# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Steps that several tests take."""

import contextlib
import re
import threading
import time
from typing import Any, Callable, Iterator, NamedTuple

from bed import MIB, PAGE, Job, Machine, wait_for

TRACING = '/sys/kernel/tracing'
DRIVER = '/sys/bus/virtio/drivers/virtio_balloon'


def balloon_pages(guest: Machine) -> int:
    """Pages in the balloon, by the guest's counters."""
    stat = guest.vmstat()
    return stat['balloon_inflate'] - stat['balloon_deflate']


def resize(guest: Machine, mib: int, timeout: float = 120) -> float:
    """Set a target and wait for it; the seconds that took."""
    start = time.monotonic()
    guest.target(mib)
    guest.wait_actual(mib * MIB, timeout=timeout)
    return time.monotonic() - start


def free_memory(guest: Machine) -> int:
    """Bytes free without caches, per-processor lists included.

    MemFree leaves those lists out, and after a resize they are long. Shrinking the
    slabs empties KASAN's quarantine.
    """
    guest.run('echo 3 > /proc/sys/vm/drop_caches;'
              'for slab in /sys/kernel/slab/*/shrink; do echo 1 > $slab; done')
    listed = re.findall(r'^\s+count: (\d+)', guest.read('/proc/zoneinfo'), re.M)
    return guest.meminfo()['MemFree'] + sum(map(int, listed)) * PAGE


def wait_free_memory(guest: Machine, before: int, timeout: float = 20) -> None:
    """Wait until as much memory is free as before, to within 1 %."""
    last = 0

    def back() -> bool:
        nonlocal last
        last = free_memory(guest)
        return last >= before * 0.99

    try:
        wait_for(back, timeout, 'memory free as before')
    except TimeoutError as error:
        raise AssertionError(f'{error}: {before >> 10} KiB before, '
                             f'{last >> 10} KiB after') from None


def wait_after_sleep(guest: Machine, mib: int) -> None:
    """Wait for a target, by the guest too: to the host it may look as if the balloon had
    never been away."""
    wait_for(lambda: balloon_pages(guest) * PAGE == (guest.mem_mib - mib) * MIB, 60,
             f'the balloon that leaves {mib} MiB')
    guest.wait_actual(mib * MIB)


def empty(guest: Machine) -> None:
    """Take the target back and wait; nothing may stay in the balloon."""
    resize(guest, guest.mem_mib)
    assert balloon_pages(guest) == 0


class Work(NamedTuple):
    """What the driver's work items did: how often they ran, for how many seconds."""
    runs: int
    seconds: float


def traced_work(guest: Machine, seconds: float,
                cause: Callable[[], Any] = lambda: None) -> Work:
    """Have the guest's kernel trace the driver's work for a while after its cause.

    Accounting by ticks would not do: what a timer starts runs as the tick counts.
    """
    guest.run(f'cd {TRACING}; echo mono > trace_clock; echo > trace;'
              'echo 1 > events/workqueue/workqueue_execute_start/enable;'
              'echo 1 > events/workqueue/workqueue_execute_end/enable')
    cause()
    time.sleep(seconds)  # what is measured is what happens meanwhile
    lines = guest.run(f'cd {TRACING}; echo 0 > events/workqueue/enable;'
                      'grep virtio_balloon trace || true').splitlines()
    starts: dict = {}
    took = []
    for line in lines:
        match = re.search(r' ([\d.]+): workqueue_execute_(\w+): work struct (\w+)', line)
        if match and match[2] == 'start':
            starts[match[3]] = float(match[1])
        elif match and match[3] in starts:
            took.append(float(match[1]) - starts.pop(match[3]))
    return Work(len(took), sum(took))


def rebind(guest: Machine) -> None:
    """Take the driver off the device and put it back."""
    guest.run(f'cd {DRIVER}; d=$(ls -d virtio*); echo $d > unbind; echo $d > bind')


def touch_all(guest: Machine) -> None:
    """Use almost all free memory once."""
    guest.fill(guest.meminfo()['MemFree'] * 9 // 10 // MIB - 8)


def frag(guest: Machine, mib: int) -> Job:
    """Use so much memory but for every other page of it; the job holds the rest."""
    job = guest.start(f'memload frag {mib}')
    wait_for(lambda: job.done() or 'touched' in job.output, 120, 'memory to be fragmented')
    assert not job.done(), job.output
    return job


def fragment(guest: Machine, mib: int) -> Job:
    """Leave that much free memory, hardly any two pages of it neighbours; the job holds
    as much in between."""
    spare = guest.meminfo()['MemFree'] // MIB - 2 * mib - 48
    if spare > 0:
        guest.run(f'dd if=/dev/zero of=/tmp/spare bs=1M count={spare}')
    return frag(guest, 2 * mib)


@contextlib.contextmanager
def sampled_actual(guest: Machine) -> Iterator[list]:
    """Collects what query-balloon answers meanwhile, as often as it does."""
    samples: list = []
    stop = threading.Event()

    def sample() -> None:
        while not stop.is_set():
            samples.append(guest.actual())
            stop.wait(0.005)

    thread = threading.Thread(target=sample)
    thread.start()
    try:
        yield samples
    finally:
        stop.set()
        thread.join()


__all__ = ['DRIVER', 'MIB', 'PAGE', 'TRACING', 'Work', 'balloon_pages', 'empty', 'frag',
           'fragment', 'free_memory', 'rebind', 'resize', 'sampled_actual', 'touch_all',
           'traced_work', 'wait_after_sleep', 'wait_free_memory']
