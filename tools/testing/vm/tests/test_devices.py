# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Variants of the device that hosts in the field offer."""

import pytest
from bed import MIB, wait_for
from moves import balloon_pages, resize
from qemu import Guest
from test_unplug import plug, unplug

pytestmark = pytest.mark.xdist_group('devices')  # they share a guest

VARIANTS = {
    'legacy': {'disable-legacy': 'off', 'disable-modern': True},
    'modern': {'disable-legacy': 'on'},
    'packed ring': {'packed': True},
    'plain ring': {'event_idx': False, 'indirect_desc': False},
    'old config space': {'qemu-4-0-config-size': True},
    'all features': {'deflate-on-oom': True, 'free-page-reporting': True},
}


@pytest.fixture(scope='module', name='guest')
def guest_to_plug_into():
    """A guest without a balloon as yet."""
    with Guest(mem_mib=512, machine='pc', balloon=None) as guest:
        yield guest


@pytest.mark.parametrize('variant', VARIANTS)
def test_variant(guest, variant):
    """The balloon works whatever transport, ring and config space it has."""
    plug(guest, **VARIANTS[variant])
    try:
        resize(guest, 320)
        assert balloon_pages(guest) * 4096 == 192 * MIB
        resize(guest, 512)
    finally:
        unplug(guest)


def test_translated_addresses_are_refused():
    """A device that wants its addresses translated is left alone, loudly."""
    with Guest(mem_mib=512, balloon='disable-legacy=on,iommu_platform=on') as guest:
        guest.target(300)
        guest.wait_console(r'virtio_balloon virtio\d+: .*(ACCESS_PLATFORM|refuse)', 10)
        assert guest.run('echo alive').strip() == 'alive'
        assert guest.actual() == 512 * MIB
        assert balloon_pages(guest) == 0


def test_target_set_before_boot():
    """A target that the guest finds when it boots is reached."""
    with Guest(mem_mib=512, load=False) as guest:
        guest.target(300)
        guest.run('insmod /modules/virtio_balloon.ko')
        guest.wait_actual(300 * MIB)
        wait_for(lambda: balloon_pages(guest) * 4096 == 212 * MIB, 5, 'the counters')
