// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names pages by windows of a bitmap, see struct virtio_balloon_bitmap.
 *
 * Blocks come one after another, best in ascending order. A block goes into the
 * window at hand as long as that costs no more bytes than a window of its own; so
 * dense pages share long windows, scattered ones have short ones, and a large
 * block after small ones is one bit again. The buffer is complete after each
 * block.
 *
 * Copyright (C) the project's developers
 */
#include <asm/byteorder.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include "bitmap.h"

#define VB_WORD_BITS	64u
#define VB_WORD_BYTES	8u
/* A window of one bit. */
#define VB_WINDOW_LEAST	(sizeof(struct virtio_balloon_bitmap) + VB_WORD_BYTES)

static u64 vb_bitmap_words(u64 nbits)
{
	return (nbits + VB_WORD_BITS - 1) / VB_WORD_BITS;
}

static void vb_density_count(u64 *buckets, u64 value)
{
	buckets[min_t(unsigned int, ilog2(value), VB_DENSITY_BUCKETS - 1)]++;
}

static void vb_bitmap_end_run(struct vb_bitmap *map)
{
	u64 length = map->run_end - map->run_start;

	if (!length || !map->density)
		return;
	vb_density_count(map->density->runs, length);
	map->density->nr_singles += length == 1;
}

static void vb_bitmap_end_window(struct vb_bitmap *map)
{
	if (!map->window || !map->density)
		return;
	vb_density_count(map->density->bits, map->nr_set);
	map->density->nr_windows++;
}

static void vb_bitmap_count(struct vb_bitmap *map, u64 pfn, unsigned int order)
{
	u64 end = pfn + (1ull << order);

	if (map->run_end != pfn || map->run_end == map->run_start) {
		vb_bitmap_end_run(map);
		map->run_start = pfn;
	}
	map->run_end = end;
	if (!map->density)
		return;
	map->density->nr_pfns += end - pfn;
	map->density->orders[min_t(unsigned int, order,
				   VB_DENSITY_BUCKETS - 1)]++;
}

/* Whether a block can go into the window at hand, and is cheaper there. */
static bool vb_bitmap_extends(const struct vb_bitmap *map, u64 pfn,
			      unsigned int order)
{
	u64 end, more;

	if (!map->window || order < map->order ||
	    pfn < map->base_pfn + ((u64)map->nbits << map->order))
		return false;
	end = ((pfn - map->base_pfn) >> map->order) +
	      (1ull << (order - map->order));
	if (end > VIRTIO_BALLOON_BITMAP_BITS)
		return false;
	more = (vb_bitmap_words(end) - vb_bitmap_words(map->nbits)) *
	       VB_WORD_BYTES;
	return more <= VB_WINDOW_LEAST && more <= map->size - map->len;
}

static bool vb_bitmap_open(struct vb_bitmap *map, u64 pfn, unsigned int order)
{
	if (map->size - map->len < VB_WINDOW_LEAST)
		return false;
	vb_bitmap_end_window(map);
	map->window = map->buf + map->len;
	map->base_pfn = pfn;
	map->order = order;
	map->nbits = 0;
	map->nr_set = 0;
	memset(map->window, 0, sizeof(*map->window));
	map->window->base_pfn = cpu_to_le64(pfn);
	map->window->order = order;
	map->len += sizeof(*map->window);
	return true;
}

/* Make room for the bits up to @end, and set those from @first on. */
static void vb_bitmap_set(struct vb_bitmap *map, u32 first, u32 end)
{
	unsigned int had = vb_bitmap_words(map->nbits);
	unsigned int words = vb_bitmap_words(end);

	memset(map->window->bits + had, 0, (words - had) * VB_WORD_BYTES);
	map->len += (words - had) * VB_WORD_BYTES;
	map->nbits = end;
	map->window->nbits = cpu_to_le32(end);
	map->nr_set += end - first;
	while (first < end) {
		u32 next = min(end, (first / VB_WORD_BITS + 1) * VB_WORD_BITS);
		u64 mask = ~0ull >> (VB_WORD_BITS - (next - first));

		map->window->bits[first / VB_WORD_BITS] |=
			cpu_to_le64(mask << first % VB_WORD_BITS);
		first = next;
	}
}

/**
 * vb_bitmap_begin() - start a buffer
 * @map: the encoder
 * @buf: the buffer, aligned to 8 bytes
 * @size: its length, at most %VIRTIO_BALLOON_BITMAP_BYTES
 * @density: where windows and runs are counted, or NULL
 */
void vb_bitmap_begin(struct vb_bitmap *map, void *buf, unsigned int size,
		     struct vb_density *density)
{
	*map = (struct vb_bitmap){
		.buf = buf,
		.size = size,
		.density = density,
	};
}

/**
 * vb_bitmap_add() - name a block
 * @map: the encoder
 * @pfn: its first PFN of 4 KiB, a multiple of 2^@order
 * @order: it is 2^@order PFNs long
 *
 * Blocks may come in any order; the ascending one takes the fewest bytes.
 *
 * Return: false if the buffer has no room for it.
 */
bool vb_bitmap_add(struct vb_bitmap *map, u64 pfn, unsigned int order)
{
	u32 first;

	if (!vb_bitmap_extends(map, pfn, order) &&
	    !vb_bitmap_open(map, pfn, order))
		return false;
	first = (pfn - map->base_pfn) >> map->order;
	vb_bitmap_set(map, first, first + (1u << (order - map->order)));
	vb_bitmap_count(map, pfn, order);
	return true;
}

/**
 * vb_bitmap_end() - the buffer is complete
 * @map: the encoder
 *
 * Return: its length in bytes.
 */
unsigned int vb_bitmap_end(struct vb_bitmap *map)
{
	vb_bitmap_end_run(map);
	vb_bitmap_end_window(map);
	if (map->density)
		map->density->nr_bytes += map->len;
	return map->len;
}
