# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""Memory is unplugged from under the balloon."""

import pytest
from bed import MIB
from moves import balloon_pages, empty, resize
from qemu import Guest

BLOCKS = '/sys/devices/system/memory'
#: The size of a block in such a guest, and what /proc/kpageflags says of a page there.
BLOCK_PAGES = 128 * MIB // 4096
OFFLINE = '0000000000800000'


def ballooned(guest: Guest, block: int) -> float:
    """How much of a block of memory is in the balloon, from 0 to 1."""
    return int(guest.run(
        f'dd if=/proc/kpageflags bs={BLOCK_PAGES * 8} skip={block} count=1 2>/dev/null |'
        f'od -A n -v -t x8 -w8 | grep -c {OFFLINE} || true')) / BLOCK_PAGES


def unplug(guest: Guest, block: int) -> None:
    """Take a block of memory from under whoever has it."""
    guest.run(f'echo offline | timeout 150 tee {BLOCKS}/memory{block}/state', timeout=180)
    assert guest.read(f'{BLOCKS}/memory{block}/state').strip() == 'offline'


@pytest.mark.long
def test_large_chunks_make_way():
    """Blocks of memory that are the balloon's, in whole pageblocks, can be unplugged, and
    so they can on their way into it."""
    with Guest(mem_mib=2048, balloon='deflate-on-oom=on') as guest:
        resize(guest, 1024)
        first, second = [b for b in range(16) if ballooned(guest, b) > 0.95][:2]
        unplug(guest, first)
        assert balloon_pages(guest) * 4096 == 1024 * MIB
        resize(guest, 1792)
        guest.target(900)
        unplug(guest, second)
        guest.wait_actual(900 * MIB)
        assert balloon_pages(guest) * 4096 == (2048 - 900) * MIB
        for block in (first, second):
            guest.run(f'echo online > {BLOCKS}/memory{block}/state')
        empty(guest)
