// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the driver's encoder with our decoder: whatever blocks the driver names, in
 * whatever order, are the pages that are heard. The input is a row of blocks of four
 * bytes each: an order and a direction, and how far away the block is from those before.
 *
 * Copyright (C) the project's developers
 */
#include <stdlib.h>
#include <string.h>

#include "../../../../drivers/virtio/balloon/bitmap.h"
#include "../decode.h"
#include "../util.h"
#include "fuzz.h"

/* Where the first block is about; there is room on both sides. */
#define MIDDLE		(UINT64_C(1) << 50)
#define MAX_ORDER	18
#define DOWN		0x80
#define FAR		0x40

static struct vub_run everything[] = { { 0, UINT64_C(1) << 52 } };
static const struct vub_runs memory = {
	.run = everything, .nr = 1, .max = 1, .sorted = true,
};

/* Blocks of one buffer, and the lowest and highest of all pages so far. */
static struct vub_runs wanted = { .sorted = true };
static uint64_t low = MIDDLE, high = MIDDLE;

static void check(const void *buf, unsigned int len, uint64_t nr_windows)
{
	struct vub_runs runs = { .sorted = true };
	struct vub_decoded decoded = { 0 };
	enum vub_reject reject;
	size_t i;

	if (vub_decode_bitmap(buf, len, &memory, &runs, &decoded, &reject) ||
	    reject != VUB_ACCEPT || decoded.nr_windows != nr_windows)
		abort();
	vub_runs_merge(&runs);
	vub_runs_merge(&wanted);
	if (runs.nr != wanted.nr)
		abort();
	for (i = 0; i < runs.nr; i++)
		if (runs.run[i].start != wanted.run[i].start ||
		    runs.run[i].end != wanted.run[i].end)
			abort();
	vub_runs_free(&runs);
	vub_runs_clear(&wanted);
}

/* Where the next block is; it overlaps none. */
static uint64_t place(const uint8_t *data, uint64_t size)
{
	uint64_t gap = data[1] | (uint64_t)data[2] << 8;

	gap <<= data[0] & FAR ? data[3] % 20 : 0;
	if (data[0] & DOWN)
		low = vub_align_down(low - gap - size, size);
	else
		high = vub_align_down(high + gap + size - 1, size) + size;
	return data[0] & DOWN ? low : high - size;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint64_t buf[VIRTIO_BALLOON_BITMAP_BYTES / 8];
	struct vb_density density = { 0 };
	uint64_t before = 0;
	struct vb_bitmap map;

	low = MIDDLE;
	high = MIDDLE;
	vb_bitmap_begin(&map, buf, sizeof(buf), &density);
	for (; size >= 4; data += 4, size -= 4) {
		unsigned int order = (data[0] & 0x3f) % (MAX_ORDER + 1);
		uint64_t pages = UINT64_C(1) << order;
		uint64_t pfn = place(data, pages);

		if (!vb_bitmap_add(&map, pfn, order)) {
			/* Full: the block starts the next buffer. */
			unsigned int len = vb_bitmap_end(&map);

			check(buf, len, density.nr_windows - before);
			before = density.nr_windows;
			vb_bitmap_begin(&map, buf, sizeof(buf), &density);
			if (!vb_bitmap_add(&map, pfn, order))
				abort();
		}
		if (vub_runs_add(&wanted, pfn, pfn + pages))
			abort();
	}
	if (wanted.nr)
		check(buf, vb_bitmap_end(&map), density.nr_windows - before);
	return 0;
}
