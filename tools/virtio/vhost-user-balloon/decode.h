/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a guest may name its pages with: an array of PFNs, or bitmap windows.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_DECODE_H
#define VUB_DECODE_H

#include <stddef.h>
#include <stdint.h>
#include <linux/types.h>
#include <linux/virtio_balloon.h>

#include "runs.h"
#include "util.h"

/* A bit for more than 2^40 PFNs of 4 KiB is no bit of any guest. */
#define VUB_BITMAP_MAX_ORDER	40

/**
 * enum vub_reject - what is wrong with something that a guest sent
 * @VUB_ACCEPT: nothing
 * @VUB_REJECT_LENGTH: a length that does not fit the contents
 * @VUB_REJECT_TOO_LONG: more than the device takes in one buffer
 * @VUB_REJECT_DIRECTION: device-writable where it must be readable, or reverse
 * @VUB_REJECT_ADDRESS: a buffer outside guest memory
 * @VUB_REJECT_PFN: a page outside guest memory, in a PFN array
 * @VUB_REJECT_WINDOW_BASE: a window's base is not aligned, or its order absurd
 * @VUB_REJECT_WINDOW_BITS: a window has no bits, or too many
 * @VUB_REJECT_WINDOW_FLAGS: a flag or reserved byte is set
 * @VUB_REJECT_WINDOW_STRAY: a bit past the last one is set
 * @VUB_REJECT_WINDOW_PAGE: a bit stands for memory that the guest has not
 * @VUB_REJECT_STATISTIC: a statistic with a tag that nobody knows
 * @VUB_REJECT_HINT_ID: an answer to a command that was not given
 * @VUB_REJECT_ACTUAL: a balloon larger than the guest
 * @VUB_NR_REJECTS: how many kinds there are
 */
enum vub_reject {
	VUB_ACCEPT,
	VUB_REJECT_LENGTH,
	VUB_REJECT_TOO_LONG,
	VUB_REJECT_DIRECTION,
	VUB_REJECT_ADDRESS,
	VUB_REJECT_PFN,
	VUB_REJECT_WINDOW_BASE,
	VUB_REJECT_WINDOW_BITS,
	VUB_REJECT_WINDOW_FLAGS,
	VUB_REJECT_WINDOW_STRAY,
	VUB_REJECT_WINDOW_PAGE,
	VUB_REJECT_STATISTIC,
	VUB_REJECT_HINT_ID,
	VUB_REJECT_ACTUAL,
	VUB_NR_REJECTS
};

/**
 * struct vub_decoded - what buffers contained
 * @nr_pfns: PFNs of 4 KiB that were accepted
 * @nr_windows: windows
 * @nr_bits: bits set in them
 * @bits: windows by how many bits are set in them
 */
struct vub_decoded {
	uint64_t nr_pfns;
	uint64_t nr_windows;
	uint64_t nr_bits;
	uint64_t bits[VUB_BUCKETS];
};

int vub_decode_pfns(const void *buf, size_t len, const struct vub_runs *memory,
		    struct vub_runs *runs, struct vub_decoded *decoded,
		    uint64_t *nr_outside);
int vub_decode_bitmap(const void *buf, size_t len,
		      const struct vub_runs *memory, struct vub_runs *runs,
		      struct vub_decoded *decoded, enum vub_reject *reject);
uint64_t vub_memory_end_of(const struct vub_runs *memory, uint64_t pfn);

#endif /* VUB_DECODE_H */
