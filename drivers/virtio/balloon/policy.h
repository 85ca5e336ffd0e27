/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How much, how soon, how many at a time: the balloon's decisions, as plain
 * functions over plain numbers, so that KUnit reaches them without a device.
 *
 * Copyright (C) the project's developers
 */
#ifndef _VIRTIO_BALLOON_POLICY_H
#define _VIRTIO_BALLOON_POLICY_H

#include <linux/types.h>

/*
 * Most requests in a batch, however large the ring is. They name 40 MiB, which
 * keep a host that releases page by page, with everything else waiting for it,
 * busy for some 50 ms; and make one notification of what were 40.
 */
#define VB_WINDOW_MAX		40
/*
 * Most portions in one of several batches: 64 MiB, about the most that the resize work
 * sends, or takes from the host, under one lock.
 */
#define VB_BATCH_MAX		64u
/*
 * The same where ranges go by the reporting queue, to hosts that give back each with one
 * call: what the 32 entries of their rings can be.
 */
#define VB_WINDOW_MAX_RANGES	128
/* Most slots of ranges in a batch. */
#define VB_RANGE_SLOTS		4u
/* Most buffers of windows in the ring: half a MiB of them. */
#define VB_BITMAP_SLOTS		128u

unsigned long vb_target_pages(u32 num_pages, unsigned int page_shift);
unsigned long vb_reserve_pages(unsigned long totalram);
unsigned long vb_room_pages(long available, long swappable,
			    unsigned long reserve);
bool vb_worth_taking(unsigned long room, unsigned long wanted,
		     unsigned int failures);
unsigned int vb_backoff_ms(unsigned int failures);
unsigned int vb_pick_order(unsigned long nr_pages, unsigned int max_order);
unsigned int vb_window_limit(unsigned int ring, unsigned int reserved,
			     unsigned int most);
unsigned int vb_window_most(unsigned long totalram);
unsigned int vb_pipeline_batch(unsigned int window, unsigned int floor);
unsigned int vb_window_grow(unsigned int window, unsigned int nr_done,
			    unsigned int limit);
unsigned int vb_window_shrink(unsigned int window, unsigned int floor);

#endif /* _VIRTIO_BALLOON_POLICY_H */
