// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Gives runs of guest memory back to the host: one hole a run in the file that
 * the memory is in. MADV_DONTNEED would only drop our own mapping of it.
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "log.h"
#include "release.h"
#include "util.h"

/*
 * The longest hole in one call. Memory that was touched goes at some 8 GiB/s,
 * and the operator must be heard ten times a second.
 */
#define VUB_RELEASE_MOST	(UINT64_C(512) << 20)

/**
 * vub_piece_next() - get the next piece of a list of runs
 * @memory: guest memory, which every page of the runs is part of
 * @runs: the runs
 * @cursor: where to go on; begins as zeroes
 * @most: bytes that a piece may have
 * @piece: where the piece goes
 *
 * Return: false if there is no more.
 */
bool vub_piece_next(const struct vub_memory *memory,
		    const struct vub_runs *runs, struct vub_cursor *cursor,
		    uint64_t most, struct vub_piece *piece)
{
	const struct vub_run *run;
	uint64_t addr, left;

	if (cursor->run == runs->nr)
		return false;
	run = &runs->run[cursor->run];
	addr = (cursor->pfn ?: run->start) << VUB_PFN_SHIFT;
	piece->region = vub_memory_region(memory, addr);
	if (!piece->region)
		return false;
	piece->offset = addr - piece->region->guest_addr;
	left = (run->end << VUB_PFN_SHIFT) - addr;
	piece->size = vub_min(vub_min(left, most),
			      piece->region->size - piece->offset);

	cursor->pfn = (addr + piece->size) >> VUB_PFN_SHIFT;
	if (cursor->pfn == run->end) {
		cursor->run++;
		cursor->pfn = 0;
	}
	return true;
}

/**
 * vub_piece_trim() - cut a piece to what can be released at all
 * @piece: the piece; its size is 0 if nothing can
 * @grain: bytes, a power of two, that its place in the file is cut to
 *
 * Return: bytes cut off.
 */
uint64_t vub_piece_trim(struct vub_piece *piece, uint64_t grain)
{
	uint64_t start = piece->region->offset + piece->offset;
	uint64_t end = start + piece->size, size = piece->size;
	uint64_t first = vub_align_down(start + grain - 1, grain);
	uint64_t last = vub_align_down(end, grain);

	piece->size = last > first ? last - first : 0;
	piece->offset += first - start;
	return size - piece->size;
}

/**
 * vub_release_most() - how much may be released in one call
 * @release: how memory is released
 *
 * Return: bytes.
 */
uint64_t vub_release_most(const struct vub_release *release)
{
	return release->by_page ? VUB_PFN_BYTES : VUB_RELEASE_MOST;
}

static void vub_release_failed(struct vub_release *release,
			       const struct vub_piece *piece)
{
	release->nr_failures++;
	release->bytes_failed += piece->size;
	/* The same failure again and again says nothing new. */
	if (release->error == errno)
		return;
	release->error = errno;
	vub_peer_warn("guest memory is not released: fallocate: %s; what the guest balloons does not come free on the host until its memory is a file that can have holes",
		      strerror(errno));
}

/**
 * vub_release_piece() - make a hole
 * @release: how, and where to count it
 * @piece: where; is trimmed
 */
void vub_release_piece(struct vub_release *release, struct vub_piece *piece)
{
	const struct vub_region *region = piece->region;
	uint64_t grain = vub_max(region->grain, release->grain);

	release->bytes_kept += vub_piece_trim(piece, grain);
	if (!piece->size)
		return;
	release->nr_punches++;
	if (fallocate(region->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)(region->offset + piece->offset),
		      (off_t)piece->size))
		vub_release_failed(release, piece);
	else
		release->bytes += piece->size;
}
