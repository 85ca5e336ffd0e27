/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's memory: what the VMM shares, and how it is reached and released.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_MEMORY_H
#define VUB_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "runs.h"

/* Regions that the protocol allows without further features. */
#define VUB_MAX_REGIONS		8

/* The unit of runs: 4 KiB, whatever the host's pages are. */
#define VUB_PFN_SHIFT		12
#define VUB_PFN_BYTES		(UINT64_C(1) << VUB_PFN_SHIFT)

/**
 * struct vub_region - a piece of guest memory, in a file that the VMM shares
 * @guest_addr: where the guest sees it
 * @user_addr: where the VMM sees it; ring addresses count from here
 * @size: bytes
 * @offset: where it begins in the file
 * @fd: the file
 * @grain: bytes that the file can be released by, a power of two
 * @map: our mapping, which begins at a multiple of @grain
 * @map_size: bytes of it
 * @base: where the region begins in it
 */
struct vub_region {
	uint64_t guest_addr;
	uint64_t user_addr;
	uint64_t size;
	uint64_t offset;
	int fd;
	uint64_t grain;
	void *map;
	size_t map_size;
	char *base;
};

/**
 * struct vub_memory - all of it
 * @region: the regions, which do not overlap
 * @nr_regions: how many there are
 * @runs: the same in pages, merged
 */
struct vub_memory {
	struct vub_region region[VUB_MAX_REGIONS];
	unsigned int nr_regions;
	struct vub_runs runs;
};

int vub_memory_guard(void);
const char *vub_memory_fault(const struct vub_memory *memory);

int vub_memory_add(struct vub_memory *memory, const struct vub_region *region);
int vub_memory_settle(struct vub_memory *memory);
void vub_memory_clear(struct vub_memory *memory);
uint64_t vub_memory_bytes(const struct vub_memory *memory);

const struct vub_region *vub_memory_region(const struct vub_memory *memory,
					   uint64_t guest_addr);
void *vub_memory_ring(const struct vub_memory *memory, uint64_t user_addr,
		      uint64_t size);
bool vub_memory_has(const struct vub_memory *memory, uint64_t guest_addr,
		    uint64_t size);
bool vub_memory_read(const struct vub_memory *memory, uint64_t guest_addr,
		     void *buf, size_t size);

#endif /* VUB_MEMORY_H */
