/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * The virtio balloon's wire format, for guests and hosts alike: virtio
 * specification, section 5.5, Traditional Memory Balloon Device.
 *
 * Config space and command ids in it are little-endian whatever the device's
 * age; PFNs, statistics and command buffers have the device's byte order.
 *
 * Copyright (C) the project's developers
 */
#ifndef _LINUX_VIRTIO_BALLOON_H
#define _LINUX_VIRTIO_BALLOON_H

#include <linux/types.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ids.h>
#include <linux/virtio_types.h>

/* Feature bits. */

/* The driver asks, and waits for the answer, before it uses a page again. */
#define VIRTIO_BALLOON_F_MUST_TELL_HOST	0
/* There is a queue for memory statistics. */
#define VIRTIO_BALLOON_F_STATS_VQ	1
/* The driver may deflate by itself when the guest is out of memory. */
#define VIRTIO_BALLOON_F_DEFLATE_ON_OOM	2
/* There is a queue for hints at free pages, which a migration may skip. */
#define VIRTIO_BALLOON_F_FREE_PAGE_HINT	3
/* The guest fills free pages with poison_val and may check it. */
#define VIRTIO_BALLOON_F_PAGE_POISON	4
/* There is a queue that hands free pages over for the host to discard. */
#define VIRTIO_BALLOON_F_REPORTING	5
/* Windows of a bitmap name pages on both resize queues, instead of PFN arrays. */
#define VIRTIO_BALLOON_F_PAGE_BITMAP	20

/* log2 of the unit that PFNs, num_pages and actual count in: 4 KiB. */
#define VIRTIO_BALLOON_PFN_SHIFT	12

/* Command ids of free page hints; every other id starts a round. */

/* Send no more hints, keep what was sent. */
#define VIRTIO_BALLOON_CMD_ID_STOP	0
/* The migration is over: hinted pages may be used again. */
#define VIRTIO_BALLOON_CMD_ID_DONE	1

/**
 * struct virtio_balloon_config - config space of the device
 * @num_pages: size that the host wants, in units of 4 KiB; the driver reads it
 * @actual: size that the balloon has, in units of 4 KiB; the driver writes it
 * @free_page_hint_cmd_id: what the driver is to do about hints; it reads it
 * @free_page_report_cmd_id: an old name of @free_page_hint_cmd_id
 * @poison_val: what free pages are filled with; the driver writes it
 */
struct virtio_balloon_config {
	__le32 num_pages;
	__le32 actual;
	union {
		__le32 free_page_hint_cmd_id;
		__le32 free_page_report_cmd_id;
	};
	__le32 poison_val;
};

/* The longest buffer of windows, in bytes. */
#define VIRTIO_BALLOON_BITMAP_BYTES	4096

/**
 * struct virtio_balloon_bitmap - a window of the page bitmap
 * @base_pfn: what bit 0 stands for, in units of 4 KiB; a multiple of 2^@order
 * @nbits: bits that follow, from 1 to %VIRTIO_BALLOON_BITMAP_BITS
 * @order: a bit stands for 2^@order units of 4 KiB, from its own multiple on
 * @flags: 0
 * @reserved: 0
 * @bits: as many words as @nbits takes; bit i of the bitmap is bit i % 64 of word
 *	  i / 64 and stands for the 2^@order units from @base_pfn + i * 2^@order on;
 *	  those from @nbits on are 0
 *
 * With %VIRTIO_BALLOON_F_PAGE_BITMAP a buffer on inflateq or deflateq is one
 * descriptor that the device reads, of at most %VIRTIO_BALLOON_BITMAP_BYTES, and
 * holds windows back to back. All fields are little-endian whatever the device's
 * age.
 */
struct virtio_balloon_bitmap {
	__le64 base_pfn;
	__le32 nbits;
	__u8 order;
	__u8 flags;
	__le16 reserved;
	__le64 bits[];
};

/* The most bits that a window can have, since it must fit into a buffer. */
#define VIRTIO_BALLOON_BITMAP_BITS					\
	((VIRTIO_BALLOON_BITMAP_BYTES -					\
	  sizeof(struct virtio_balloon_bitmap)) * 8)

/* Statistics tags. Bytes where nothing else is said; events count from boot. */

/* Read from swap. */
#define VIRTIO_BALLOON_S_SWAP_IN	0
/* Written to swap. */
#define VIRTIO_BALLOON_S_SWAP_OUT	1
/* Page faults that needed I/O, events. */
#define VIRTIO_BALLOON_S_MAJFLT		2
/* Page faults that needed none, events. */
#define VIRTIO_BALLOON_S_MINFLT		3
/* Used for nothing at all. */
#define VIRTIO_BALLOON_S_MEMFREE	4
/* All that the guest has; see the driver's rule about MemTotal. */
#define VIRTIO_BALLOON_S_MEMTOT		5
/* What applications could get without swapping. */
#define VIRTIO_BALLOON_S_AVAIL		6
/* Page cache. */
#define VIRTIO_BALLOON_S_CACHES		7
/* Huge pages allocated for hugetlb, events. */
#define VIRTIO_BALLOON_S_HTLB_PGALLOC	8
/* Huge pages that hugetlb could not have, events. */
#define VIRTIO_BALLOON_S_HTLB_PGFAIL	9
/* Processes killed for want of memory, events. */
#define VIRTIO_BALLOON_S_OOM_KILL	10
/* Allocations that had to reclaim first, events. */
#define VIRTIO_BALLOON_S_ALLOC_STALL	11
/* Looked at by kswapd. */
#define VIRTIO_BALLOON_S_ASYNC_SCAN	12
/* Looked at by allocations that had to reclaim. */
#define VIRTIO_BALLOON_S_DIRECT_SCAN	13
/* Reclaimed by kswapd. */
#define VIRTIO_BALLOON_S_ASYNC_RECLAIM	14
/* Reclaimed by allocations that had to. */
#define VIRTIO_BALLOON_S_DIRECT_RECLAIM	15
/* How many tags there are. */
#define VIRTIO_BALLOON_S_NR		16

/* The tags' names in the order of their numbers, for hosts to print. */
#define VIRTIO_BALLOON_S_NAMES_WITH_PREFIX(prefix) {			\
	prefix "swap-in", prefix "swap-out",				\
	prefix "major-faults", prefix "minor-faults",			\
	prefix "free-memory", prefix "total-memory",			\
	prefix "available-memory", prefix "disk-caches",		\
	prefix "hugetlb-allocations", prefix "hugetlb-failures",	\
	prefix "oom-kills", prefix "alloc-stalls",			\
	prefix "async-scans", prefix "direct-scans",			\
	prefix "async-reclaims", prefix "direct-reclaims"		\
}

#define VIRTIO_BALLOON_S_NAMES VIRTIO_BALLOON_S_NAMES_WITH_PREFIX("")

/**
 * struct virtio_balloon_stat - one statistic; a buffer holds an array of them
 * @tag: VIRTIO_BALLOON_S_...
 * @val: its value
 *
 * Packed: ten bytes an entry, with no padding, and no example to follow.
 */
struct virtio_balloon_stat {
	__virtio16 tag;
	__virtio64 val;
} __attribute__((packed));

#endif /* _LINUX_VIRTIO_BALLOON_H */
