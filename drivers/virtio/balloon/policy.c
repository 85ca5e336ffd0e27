// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The balloon's decisions. Nothing here sleeps, locks or looks at global
 * state: callers measure, these functions judge.
 *
 * Copyright (C) the project's developers
 */
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/sizes.h>
#include <linux/virtio_balloon.h>

#include "policy.h"

#define VB_BACKOFF_MIN_MS	250u
#define VB_BACKOFF_MAX_MS	4000u
#define VB_WORTH_PAGES		((unsigned long)SZ_1M >> PAGE_SHIFT)

/**
 * vb_target_pages() - the host's wish in the guest's unit
 * @num_pages: config field num_pages, in units of 4 KiB
 * @page_shift: log2 of the guest's page size, at least 12
 *
 * Rounded up to whole guest pages: rounded down, a host that asks for a part
 * of a page would see the balloon stop short of its target for ever.
 *
 * Return: the target in guest pages.
 */
unsigned long vb_target_pages(u32 num_pages, unsigned int page_shift)
{
	unsigned int shift = page_shift - VIRTIO_BALLOON_PFN_SHIFT;

	return ((u64)num_pages + (1ul << shift) - 1) >> shift;
}

/**
 * vb_reserve_pages() - available memory that inflation never touches
 * @totalram: the guest's RAM in pages
 *
 * A 64th of RAM, from 4 to 64 MiB. It comes on top of the kernel's own
 * watermarks, which si_mem_available() has already taken off. Without it a
 * target that cannot be reached drives every other task into the OOM killer.
 *
 * Return: pages.
 */
unsigned long vb_reserve_pages(unsigned long totalram)
{
	return clamp(totalram / 64, (unsigned long)SZ_4M >> PAGE_SHIFT,
		     (unsigned long)SZ_64M >> PAGE_SHIFT);
}

/**
 * vb_room_pages() - what can still be spared
 * @available: si_mem_available(), pages; can be negative under pressure
 * @swappable: pages that could go to swap instead; 0 without swap
 * @reserve: what has to stay available, pages
 *
 * Return: pages that the balloon may take now.
 */
unsigned long vb_room_pages(long available, long swappable,
			    unsigned long reserve)
{
	long room = max(available, 0l) + max(swappable, 0l) - (long)reserve;

	return max(room, 0l);
}

/**
 * vb_worth_taking() - whether a target out of reach has come closer
 * @room: what vb_room_pages() says
 * @wanted: pages that the target is away
 * @failures: rounds in a row that got nothing
 *
 * What is available moves by some pages all the time. A balloon that chased
 * each of them would never rest.
 *
 * Return: true if there is enough room to go on.
 */
bool vb_worth_taking(unsigned long room, unsigned long wanted,
		     unsigned int failures)
{
	return !failures || room >= min(wanted, VB_WORTH_PAGES);
}

/**
 * vb_backoff_ms() - pause after allocations have failed
 * @failures: rounds in a row that got nothing, at least 1
 *
 * Doubles from a quarter of a second to four seconds: a target that cannot be
 * reached costs a few wake-ups a minute, and memory freed later is still
 * taken within five seconds.
 *
 * Return: milliseconds.
 */
unsigned int vb_backoff_ms(unsigned int failures)
{
	unsigned int doublings = min(failures ? failures - 1 : 0, 8u);

	return min(VB_BACKOFF_MIN_MS << doublings, VB_BACKOFF_MAX_MS);
}

/**
 * vb_pick_order() - the largest block that is not more than what is wanted
 * @nr_pages: pages wanted, at least 1
 * @max_order: largest order that is worth trying
 *
 * Return: a buddy order.
 */
unsigned int vb_pick_order(unsigned long nr_pages, unsigned int max_order)
{
	return min_t(unsigned int, ilog2(nr_pages), max_order);
}

/**
 * vb_window_limit() - ring entries that ordinary requests may fill
 * @ring: entries of the virtqueue
 * @reserved: entries kept for requests that must not wait
 * @most: entries that are enough, however large the ring is
 *
 * A ring too small to keep a reserve gives all but one entry to ordinary
 * requests, and a ring of one entry gives that.
 *
 * Return: entries, at least 1.
 */
unsigned int vb_window_limit(unsigned int ring, unsigned int reserved,
			     unsigned int most)
{
	if (ring <= 2 * reserved)
		reserved = 1;
	return clamp(ring > reserved ? ring - reserved : 1, 1u, most);
}

/**
 * vb_window_most() - how much may be in flight to hosts that take a batch at a time
 * @totalram: the guest's RAM in pages
 *
 * A 64th of RAM, from 64 to 256 MiB: the OOM path does not reach what is in flight.
 *
 * Return: portions.
 */
unsigned int vb_window_most(unsigned long totalram)
{
	return clamp(totalram / 64, (unsigned long)SZ_64M >> PAGE_SHIFT,
		     (unsigned long)SZ_256M >> PAGE_SHIFT) >>
	       (20 - PAGE_SHIFT);
}

/**
 * vb_pipeline_batch() - a batch of those that are in the ring at once
 * @window: portions that may be in flight now
 * @floor: least window that the largest request fits into
 *
 * At least two, once there is room for two of @floor, so that the host goes on with the second
 * while the guest takes its answers to the first and makes a third.
 *
 * Return: portions.
 */
unsigned int vb_pipeline_batch(unsigned int window, unsigned int floor)
{
	return clamp(window / 2, floor, VB_BATCH_MAX);
}

/**
 * vb_window_grow() - after the host has answered in time
 * @window: portions that may be in flight now
 * @nr_done: portions that were just answered
 * @limit: what the ring allows
 *
 * One more for each, so that the window doubles with each that is answered: a slow or
 * silent host never holds more than it has shown that it can take.
 *
 * Return: the new window.
 */
unsigned int vb_window_grow(unsigned int window, unsigned int nr_done,
			    unsigned int limit)
{
	return min(window + nr_done, limit);
}

/**
 * vb_window_shrink() - after a second without an answer
 * @window: portions that may be in flight now
 * @floor: least window that the largest request fits into
 *
 * Return: the new window.
 */
unsigned int vb_window_shrink(unsigned int window, unsigned int floor)
{
	return max(window / 2, floor);
}
