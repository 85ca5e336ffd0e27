// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory that is filled with a pattern instead of being released: a guest that
 * uses what it has given away is found out.
 *
 * Copyright (C) the project's developers
 */
#include <string.h>

#include "log.h"
#include "memory.h"
#include "quirks.h"

/**
 * vub_fill_pages() - fill memory
 * @fill: with what, and where to count it
 * @memory: the memory
 * @size: bytes, whole pages
 */
void vub_fill_pages(struct vub_fill *fill, char *memory, size_t size)
{
	memset(memory, fill->pattern, size);
	fill->nr_filled += size / VUB_PFN_BYTES;
}

static bool vub_page_is_filled(const char *page, uint8_t pattern)
{
	return (uint8_t)page[0] == pattern &&
	       !memcmp(page, page + 1, VUB_PFN_BYTES - 1);
}

/**
 * vub_fill_check() - look whether memory is as it was left
 * @fill: what it should be, and where to count
 * @memory: the memory
 * @size: bytes, whole pages
 */
void vub_fill_check(struct vub_fill *fill, const char *memory, size_t size)
{
	size_t offset;

	for (offset = 0; offset < size; offset += VUB_PFN_BYTES) {
		fill->nr_checked++;
		if (vub_page_is_filled(memory + offset, fill->pattern))
			continue;
		fill->nr_damaged++;
		vub_peer_warn("a page came back from the balloon that is not as it was left");
	}
}
