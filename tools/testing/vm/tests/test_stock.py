# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Our driver as a module for the distribution's kernel."""

from bed import MIB
from moves import balloon_pages, empty, free_memory, resize, wait_free_memory
from qemu import Guest


def test_resizes_under_stock_kernel():
    """It loads into a kernel that knows nothing of it, and works."""
    with Guest(stock=True, mem_mib=512) as guest:
        assert 'debian' in guest.run('uname -v').lower()
        before = free_memory(guest)
        resize(guest, 256)
        assert balloon_pages(guest) * 4096 == 256 * MIB
        assert guest.state().splitlines()[0] == 'at target'
        empty(guest)
        wait_free_memory(guest, before)
        guest.run('rmmod virtio_balloon')
