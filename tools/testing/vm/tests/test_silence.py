# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""A host that does not answer.

QEMU's device reads no queue while its PCI function may not be bus master, and the
guest's root can forbid that: requests are made, and no answer comes. A reset ends it
where QEMU is old, and allowing it again, before a reset, where it is not.
"""

import re
import time

import pytest
from bed import MIB, wait_for
from moves import DRIVER, balloon_pages, free_memory, resize, wait_free_memory
from qemu import Guest

#: Memory that a host may be handed beyond what it has shown that it takes.
UNSHOWN_MIB = 4


#: The first bytes of the PCI configuration: identity, which cannot be written, and
#: a command that lets the function answer, but not be master, or both.
NOT_MASTER = r"printf '\364\032\002\020\003\001' > $config"
MASTER = r"printf '\364\032\002\020\007\001' > $config"
FIND = (f'cd {DRIVER}; d=$(ls -d virtio*);'
        'config=$(readlink -f $d/..)/config;')


def silence(guest: Guest) -> None:
    """Have QEMU read no queue of the balloon until the next reset."""
    guest.run(FIND + NOT_MASTER)


@pytest.fixture(name='guest')
def guest_with_a_silent_host():
    """A guest on the way to its target, whose host has stopped to answer."""
    with Guest(mem_mib=512, balloon='deflate-on-oom=on') as guest:
        guest.target(200)
        guest.wait_actual(200 * MIB)

        def caught() -> bool:
            # Binding starts towards the target. The shell needs no other process to
            # go on from there, so that the host falls silent before that is reached.
            guest.run(FIND + 'echo $d > unbind; echo $d > bind;' + NOT_MASTER)
            time.sleep(0.2)  # for answers that were under way
            return guest.debugfs()['in_flight_pages'] > 0

        wait_for(caught, 30, 'the host to fall silent in time')
        yield guest


def test_guest_stays_usable(guest):
    """The guest loses little, works on, and says once what it waits for."""
    guest.wait_console(r'virtio_balloon virtio\d+: .*does not answer', 30)
    counters = guest.debugfs()
    shown = counters['inflated_pages'] * 4096
    assert counters['in_flight_pages'] * 4096 <= shown + UNSHOWN_MIB * MIB
    assert guest.state().startswith('waiting')
    free = guest.meminfo()['MemFree'] // MIB
    guest.run(f'memload hog {free - 30} 0', timeout=120)
    assert guest.vmstat()['oom_kill'] == 0
    lines = re.findall('does not answer', guest.console)
    assert len(lines) == 1


def test_host_that_is_back(guest):
    """Once the host answers again, binding anew is all that it takes."""
    guest.wait_console(r'virtio_balloon virtio\d+: .*does not answer', 30)
    guest.run(f'{FIND} {MASTER}; echo $d > unbind; echo $d > bind')
    guest.wait_actual(200 * MIB)
    assert balloon_pages(guest) * 4096 == 312 * MIB
    resize(guest, 512)


@pytest.mark.parametrize('how', ['rmmod virtio_balloon', 'poweroff -f'])
def test_removal_does_not_wait(guest, how):
    """Removal and shutdown end within five seconds, whatever is in flight."""
    start = time.monotonic()
    if how.startswith('rmmod'):
        guest.run(how)
        assert balloon_pages(guest) == 0
    else:
        guest.start(how)
        guest.wait_exit(20)
    assert time.monotonic() - start < 5


def test_memory_comes_back_after_removal():
    """What the host never acknowledged is the guest's again."""
    with Guest(mem_mib=512) as guest:
        guest.run('rmmod virtio_balloon')
        before = free_memory(guest)
        guest.run('insmod /modules/virtio_balloon.ko')
        resize(guest, 400)
        silence(guest)
        guest.run('rmmod virtio_balloon')
        wait_free_memory(guest, before)


@pytest.mark.long
def test_reporting_does_not_hang():
    """F12: nobody waits for ever for a report's answer."""
    with Guest(mem_mib=512) as guest:
        silence(guest)
        guest.run('memload hog 200 0')
        # The kernel looks that often for tasks that hang, and complains.
        guest.run('echo 5 > /proc/sys/kernel/hung_task_timeout_secs')
        time.sleep(15)
        guest.run('memload hog 200 0')
        guest.run('rmmod virtio_balloon', timeout=10)
