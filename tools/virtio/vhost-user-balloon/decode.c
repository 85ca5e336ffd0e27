// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Decoders of what a guest names its pages with: the PFN array of the virtio
 * specification (section 5.5.6), and windows of the page bitmap.
 *
 * Plain functions over private copies; tests/test_decode.c proves them. Guest
 * memory is given as a merged list of runs.
 *
 * Copyright (C) the project's developers
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "decode.h"
#include "util.h"

/**
 * vub_memory_end_of() - where the guest's memory around a page ends
 * @memory: guest memory, merged
 * @pfn: the page
 *
 * Return: the page after the run that @pfn is part of; 0 if it is part of none.
 */
uint64_t vub_memory_end_of(const struct vub_runs *memory, uint64_t pfn)
{
	size_t i;

	for (i = 0; i < memory->nr; i++) {
		if (pfn >= memory->run[i].start && pfn < memory->run[i].end)
			return memory->run[i].end;
	}
	return 0;
}

static uint32_t vub_pfn_at(const void *buf, size_t i)
{
	uint32_t pfn;

	memcpy(&pfn, (const char *)buf + i * sizeof(pfn), sizeof(pfn));
	return le32toh(pfn);
}

/**
 * vub_decode_pfns() - decode an array of PFNs
 * @buf: the array, a private copy
 * @len: its length in bytes, a multiple of 4
 * @memory: guest memory, merged
 * @runs: where the pages are added
 * @decoded: counters
 * @nr_outside: counter of PFNs outside guest memory; they are left out
 *
 * Return: 0, or -ENOMEM.
 */
int vub_decode_pfns(const void *buf, size_t len, const struct vub_runs *memory,
		    struct vub_runs *runs, struct vub_decoded *decoded,
		    uint64_t *nr_outside)
{
	size_t nr_pfns = len / sizeof(uint32_t), i, next;

	for (i = 0; i < nr_pfns; i = next) {
		uint64_t start = vub_pfn_at(buf, i), end = start + 1;
		uint64_t limit = vub_memory_end_of(memory, start);

		next = i + 1;
		if (!limit) {
			++*nr_outside;
			continue;
		}
		while (next < nr_pfns && end < limit &&
		       vub_pfn_at(buf, next) == end) {
			end++;
			next++;
		}
		if (vub_runs_add(runs, start, end))
			return -ENOMEM;
		decoded->nr_pfns += end - start;
	}
	return 0;
}

/* One window of a buffer, in host byte order. */
struct vub_window {
	uint64_t base_pfn;
	uint64_t nr_bits;
	unsigned int order;
	const char *words;
};

static uint64_t vub_window_word(const struct vub_window *window, uint64_t i)
{
	uint64_t word;

	memcpy(&word, window->words + i * sizeof(word), sizeof(word));
	return le64toh(word);
}

/* Bytes that the bits of a window take. */
static size_t vub_window_bytes(const struct vub_window *window)
{
	return (window->nr_bits + 63) / 64 * sizeof(uint64_t);
}

static bool vub_window_stray(const struct vub_window *window)
{
	unsigned int used = window->nr_bits % 64;

	return used && vub_window_word(window, window->nr_bits / 64) >> used;
}

static enum vub_reject vub_window_read(const char *buf, size_t len,
				       struct vub_window *window)
{
	struct virtio_balloon_bitmap header;

	if (len < sizeof(header))
		return VUB_REJECT_LENGTH;
	memcpy(&header, buf, sizeof(header));
	if (header.flags || header.reserved)
		return VUB_REJECT_WINDOW_FLAGS;

	window->base_pfn = le64toh((__force uint64_t)header.base_pfn);
	window->nr_bits = le32toh((__force uint32_t)header.nbits);
	window->order = header.order;
	window->words = buf + sizeof(header);

	if (window->order > VUB_BITMAP_MAX_ORDER ||
	    window->base_pfn & (VUB_BIT(window->order) - 1))
		return VUB_REJECT_WINDOW_BASE;
	if (!window->nr_bits || window->nr_bits > VIRTIO_BALLOON_BITMAP_BITS)
		return VUB_REJECT_WINDOW_BITS;
	if (vub_window_bytes(window) > len - sizeof(header))
		return VUB_REJECT_LENGTH;
	return vub_window_stray(window) ? VUB_REJECT_WINDOW_STRAY : VUB_ACCEPT;
}

/* The first bit from @bit on that is @set; nr_bits if there is none. */
static uint64_t vub_window_find(const struct vub_window *window, uint64_t bit,
				bool set)
{
	while (bit < window->nr_bits) {
		uint64_t word = vub_window_word(window, bit / 64);

		if (!set)
			word = ~word;
		word &= ~UINT64_C(0) << bit % 64;
		if (word) {
			bit = vub_align_down(bit, 64) +
			      (unsigned int)__builtin_ctzll(word);
			return vub_min(bit, window->nr_bits);
		}
		bit = vub_align_down(bit, 64) + 64;
	}
	return window->nr_bits;
}

/* Whether a window's bits [first, end) stand for memory that the guest has. */
static bool vub_window_in_memory(const struct vub_window *window,
				 const struct vub_runs *memory, uint64_t first,
				 uint64_t end)
{
	uint64_t limit, start;

	/* Orders and counts are small enough for this not to overflow. */
	if (window->base_pfn > UINT64_MAX / 4)
		return false;
	start = window->base_pfn + (first << window->order);
	limit = vub_memory_end_of(memory, start);
	return limit && (end - first) <= (limit - start) >> window->order;
}

static enum vub_reject vub_window_decode(const struct vub_window *window,
					 const struct vub_runs *memory,
					 struct vub_runs *runs,
					 struct vub_decoded *decoded, int *err)
{
	uint64_t first, end = 0, nr_set = 0;

	for (;;) {
		first = vub_window_find(window, end, true);
		if (first == window->nr_bits) {
			vub_bucket_count(decoded->bits, nr_set);
			return VUB_ACCEPT;
		}
		end = vub_window_find(window, first, false);
		if (!vub_window_in_memory(window, memory, first, end))
			return VUB_REJECT_WINDOW_PAGE;
		*err = vub_runs_add(runs,
				    window->base_pfn + (first << window->order),
				    window->base_pfn + (end << window->order));
		if (*err)
			return VUB_ACCEPT;
		nr_set += end - first;
		decoded->nr_bits += end - first;
		decoded->nr_pfns += (end - first) << window->order;
	}
}

static enum vub_reject vub_bitmap_decode(const char *buf, size_t len,
					 const struct vub_runs *memory,
					 struct vub_runs *runs,
					 struct vub_decoded *decoded, int *err)
{
	struct vub_window window;
	enum vub_reject reject;
	size_t used;

	if (!len)
		return VUB_REJECT_LENGTH;
	if (len > VIRTIO_BALLOON_BITMAP_BYTES)
		return VUB_REJECT_TOO_LONG;
	for (; len && !*err; buf += used, len -= used) {
		reject = vub_window_read(buf, len, &window);
		if (reject == VUB_ACCEPT)
			reject = vub_window_decode(&window, memory, runs,
						   decoded, err);
		if (reject != VUB_ACCEPT)
			return reject;
		decoded->nr_windows++;
		used = sizeof(struct virtio_balloon_bitmap) +
		       vub_window_bytes(&window);
	}
	return VUB_ACCEPT;
}

/**
 * vub_decode_bitmap() - decode a buffer of windows
 * @buf: the buffer, a private copy
 * @len: its length in bytes
 * @memory: guest memory, merged
 * @runs: where the pages are added
 * @decoded: counters
 * @reject: what is wrong with the buffer, VUB_ACCEPT if nothing is
 *
 * A buffer that breaks a rule anywhere names no page at all.
 *
 * Return: 0, or -ENOMEM.
 */
int vub_decode_bitmap(const void *buf, size_t len,
		      const struct vub_runs *memory, struct vub_runs *runs,
		      struct vub_decoded *decoded, enum vub_reject *reject)
{
	struct vub_runs_mark mark = vub_runs_mark(runs);
	struct vub_decoded before = *decoded;
	int err = 0;

	*reject = vub_bitmap_decode(buf, len, memory, runs, decoded, &err);
	if (err || *reject != VUB_ACCEPT) {
		vub_runs_rewind(runs, &mark);
		*decoded = before;
	}
	return err;
}
