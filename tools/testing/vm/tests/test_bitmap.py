# SPDX-License-Identifier: GPL-2.0
# Copyright the project's developers
"""The page bitmap: what the driver writes is what the device reads, whatever memory
looks like."""

import random

import pytest
from bed import MIB, PAGE, wait_for
from moves import (balloon_pages, empty, fragment, free_memory, resize, sampled_actual,
                   wait_free_memory)
from uml import UmlGuest

PAGE_BITMAP = 20
#: Memory in windows of a bit each: header and word for every page.
WORST_BYTES_PER_GIB = 24 << 18


def agree(guest: UmlGuest) -> None:
    """Driver and device have counted the same, and the device nothing bad."""
    def counted() -> tuple:
        traffic, driver = guest.device()['traffic'], guest.bitmap()
        queues = ('inflate', 'deflate')
        return ([(traffic[queue]['pfns'], traffic[queue]['windows'],
                  *traffic[queue]['window-bits']) for queue in queues],
                [(driver[f'{queue}_pfns'], driver[f'{queue}_windows'],
                  *(driver[f'{queue}_window_bits_{1 << n}'] for n in range(16)))
                 for queue in queues])

    # Compaction may move pages between the two looks.
    wait_for(lambda: len(set(map(str, counted()))) == 1, 10, 'the same counts')
    rejects = guest.device()['rejects']
    assert not any(rejects.values()), rejects


@pytest.mark.parametrize('options, bitmap', [
    ((), True), (('--page-bitmap=off',), False), (('--must-tell-host',), True)])
def test_negotiated(options, bitmap):
    """It is used if and only if it is offered, and every resize is exact."""
    with UmlGuest(options=options) as guest:
        assert guest.has_feature(PAGE_BITMAP) == bitmap
        before = free_memory(guest)
        rng = random.Random(20)
        for _ in range(30):
            guest.target(rng.randrange(200, 513))
        for mib in (200, 512, 300, 511, 201):
            resize(guest, mib)
            assert balloon_pages(guest) * PAGE == (512 - mib) * MIB
        empty(guest)
        wait_free_memory(guest, before)
        traffic = guest.device()['traffic']['inflate']
        assert bool(traffic['windows']) == bitmap
        if bitmap:
            agree(guest)


def test_a_fresh_guest_takes_few_bytes():
    """Large blocks are a bit each, and neighbours share a window."""
    with UmlGuest() as guest:
        resize(guest, 200)
        assert guest.bitmap()['inflate_bytes_per_gib'] < 32 << 10
        assert guest.bitmap()['inflate_block_order_10'] >= 60
        assert guest.debugfs()['inflate_buffers'] <= 100
        agree(guest)


@pytest.mark.parametrize('reporting', ['on', 'off'])
def test_scattered_pages(reporting):
    """Without two free neighbours it is still windows of many bits, not of one."""
    with UmlGuest(balloon=f'deflate-on-oom=on,free-page-reporting={reporting}') as guest:
        fragment(guest, 96)
        resize(guest, 512 - 112)
        stat = guest.bitmap()
        assert stat['inflate_singles'] > 8000
        assert stat['inflate_bytes_per_gib'] < WORST_BYTES_PER_GIB / 8
        agree(guest)
        empty(guest)
        agree(guest)


def test_content_is_never_the_hosts():
    """What the host was told of holds its pattern until the guest has it back."""
    with UmlGuest(balloon='free-page-reporting=off',
                  options=['--must-tell-host']) as guest:
        guest.misbehave('fill', value=0xa5)
        fragment(guest, 96)
        for mib in (416, 464, 432, 512):
            resize(guest, mib)
        fill = guest.device()['fill']
        assert fill['checked'] and fill['damaged'] == 0


def test_actual_moves_while_it_goes():
    """A large resize is seen to progress."""
    with UmlGuest(mem_mib=2048, options=['--release=page']) as guest:
        with sampled_actual(guest) as samples:
            resize(guest, 256)
        assert len(set(samples)) >= 4
