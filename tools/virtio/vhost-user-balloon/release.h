/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Gives runs of guest memory back to the host.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_RELEASE_H
#define VUB_RELEASE_H

#include <stdbool.h>
#include <stdint.h>

#include "memory.h"

/**
 * struct vub_release - how memory is released, and what came of it
 * @grain: nothing smaller than so many bytes, aligned to them; 0: no such limit
 * @by_page: page by page, for comparison
 * @nr_punches: calls of fallocate()
 * @bytes: released
 * @bytes_kept: not released, being less than the file's or @grain
 * @nr_failures: calls that failed
 * @bytes_failed: bytes in them
 * @error: errno of the last one
 */
struct vub_release {
	uint64_t grain;
	bool by_page;
	uint64_t nr_punches;
	uint64_t bytes;
	uint64_t bytes_kept;
	uint64_t nr_failures;
	uint64_t bytes_failed;
	int error;
};

/**
 * struct vub_cursor - a place in a list of runs
 * @run: number of the run
 * @pfn: page in it, or 0 for its beginning
 */
struct vub_cursor {
	size_t run;
	uint64_t pfn;
};

/**
 * struct vub_piece - a part of a run within one region
 * @region: the region
 * @offset: where it begins in the region
 * @size: bytes
 */
struct vub_piece {
	const struct vub_region *region;
	uint64_t offset;
	uint64_t size;
};

bool vub_piece_next(const struct vub_memory *memory,
		    const struct vub_runs *runs, struct vub_cursor *cursor,
		    uint64_t most, struct vub_piece *piece);
uint64_t vub_piece_trim(struct vub_piece *piece, uint64_t grain);
uint64_t vub_release_most(const struct vub_release *release);
void vub_release_piece(struct vub_release *release, struct vub_piece *piece);

#endif /* VUB_RELEASE_H */
