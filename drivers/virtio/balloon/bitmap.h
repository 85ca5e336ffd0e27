/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The page bitmap's encoder. Pure functions, shared by the engine, KUnit and the
 * tests of the host's decoder.
 *
 * Copyright (C) the project's developers
 */
#ifndef _VIRTIO_BALLOON_BITMAP_H
#define _VIRTIO_BALLOON_BITMAP_H

#include <linux/types.h>
#include <linux/virtio_balloon.h>

/* Powers of two up to the most bits that a window has, and up to 2^15 pages. */
#define VB_DENSITY_BUCKETS	16

/**
 * struct vb_density - how well windows are used
 * @nr_windows: windows
 * @nr_bytes: bytes of them
 * @nr_pfns: PFNs of 4 KiB that they name
 * @nr_singles: runs of one PFN
 * @bits: windows by bits that are set; bucket n is for 2^n and more
 * @runs: runs of PFNs by length; bucket n is for 2^n and more, the last has all
 *	  that are longer, too
 * @orders: blocks by the order that they were added with, in PFNs of 4 KiB
 */
struct vb_density {
	u64 nr_windows;
	u64 nr_bytes;
	u64 nr_pfns;
	u64 nr_singles;
	u64 bits[VB_DENSITY_BUCKETS];
	u64 runs[VB_DENSITY_BUCKETS];
	u64 orders[VB_DENSITY_BUCKETS];
};

/**
 * struct vb_bitmap - windows that are being written to a buffer
 * @buf: the buffer, aligned to 8 bytes
 * @size: its length in bytes
 * @len: bytes written
 * @window: the last window; NULL before the first
 * @base_pfn: that window's
 * @nbits: that window's
 * @nr_set: bits that are set in it
 * @order: that window's
 * @run_start: first PFN of the last run
 * @run_end: PFN after its last
 * @density: where windows and runs are counted, or NULL
 */
struct vb_bitmap {
	void *buf;
	unsigned int size;
	unsigned int len;
	struct virtio_balloon_bitmap *window;
	u64 base_pfn;
	u32 nbits;
	u32 nr_set;
	unsigned int order;
	u64 run_start;
	u64 run_end;
	struct vb_density *density;
};

void vb_bitmap_begin(struct vb_bitmap *map, void *buf, unsigned int size,
		     struct vb_density *density);
bool vb_bitmap_add(struct vb_bitmap *map, u64 pfn, unsigned int order);
unsigned int vb_bitmap_end(struct vb_bitmap *map);

#endif /* _VIRTIO_BALLOON_BITMAP_H */
