# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""The device goes away and comes back, by the host's hand and by the guest's."""

import time

import pytest
from bed import MIB, wait_for
from moves import DRIVER, balloon_pages, free_memory, resize, wait_free_memory
from qemu import Guest

#: Devices on the root bus of this machine can be unplugged.
MACHINE = 'pc'


def plug(guest: Guest, **properties) -> None:
    """Plug a balloon in and wait until its driver has it."""
    guest.qmp('device_add', driver='virtio-balloon-pci', id='balloon0', **properties)
    wait_for(lambda: guest.try_run(f'ls -d {DRIVER}/virtio*')[0] == 0, 20,
             'the balloon to be bound')


def unplug(guest: Guest) -> None:
    """Pull it out and wait until it is gone."""
    start = time.monotonic()
    guest.qmp('device_del', id='balloon0')
    guest.wait_event('DEVICE_DELETED', 60, after=start)
    wait_for(lambda: guest.try_run(f'ls -d {DRIVER}/virtio*')[0], 20,
             'the driver to let go')


def test_unplug_half_ballooned(soak):
    """F23: unplugged at rest, with half of the guest in the balloon."""
    with Guest(mem_mib=512, machine=MACHINE) as guest:
        unplug(guest)
        before = free_memory(guest)
        for _ in range(50 if soak else 4):
            plug(guest, **{'deflate-on-oom': True, 'free-page-reporting': True})
            resize(guest, 256)
            unplug(guest)
            assert balloon_pages(guest) == 0
        wait_free_memory(guest, before)


def test_unplug_mid_resize(soak):
    """Unplugged while it inflates, and while it deflates."""
    with Guest(mem_mib=512, machine=MACHINE) as guest:
        unplug(guest)
        before = free_memory(guest)
        for _ in range(20 if soak else 2):
            plug(guest)
            guest.target(160)
            wait_for(lambda: guest.actual() < 500 * MIB, 20, 'the first pages')
            unplug(guest)
            assert balloon_pages(guest) == 0
            plug(guest)
            resize(guest, 160)
            guest.target(512)
            unplug(guest)
            assert balloon_pages(guest) == 0
        wait_free_memory(guest, before)


def test_unbind_and_bind_mid_resize():
    """The driver lets go of all memory, and takes it again when it is back."""
    with Guest(mem_mib=512) as guest:
        before = free_memory(guest)
        name = guest.run(f'cd {DRIVER}; ls -d virtio*').strip()
        for _ in range(3):
            guest.target(160)
            wait_for(lambda: guest.actual() < 500 * MIB, 20, 'the first pages')
            guest.run(f'echo {name} > {DRIVER}/unbind')
            assert balloon_pages(guest) == 0
            guest.run(f'echo {name} > {DRIVER}/bind')
            guest.wait_actual(160 * MIB)
            assert balloon_pages(guest) * 4096 == 352 * MIB
            resize(guest, 512)
        wait_free_memory(guest, before)


@pytest.mark.parametrize('mib', [512, 256])
def test_reboot_and_poweroff(mib):
    """Shutting down a guest, ballooned or not, takes no time."""
    with Guest(mem_mib=512) as guest:
        resize(guest, mib)
        start = time.monotonic()
        guest.start('poweroff -f')
        guest.wait_exit(20)
        assert time.monotonic() - start < 5
