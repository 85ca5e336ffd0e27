// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lists of page runs: adding, rewinding, merging; and what is cut off a piece
 * before it is released.
 *
 * Copyright (C) the project's developers
 */
#include <string.h>

#include "../release.h"
#include "tap.h"

static struct vub_runs runs = { .sorted = true };

static void setup(void)
{
	vub_runs_clear(&runs);
}

static void add(uint64_t start, uint64_t end)
{
	tap_check(!vub_runs_add(&runs, start, end));
}

static bool is_run(size_t i, uint64_t start, uint64_t end)
{
	return i < runs.nr && runs.run[i].start == start &&
	       runs.run[i].end == end;
}

static void neighbours_become_one(void)
{
	setup();
	add(1, 2);
	add(2, 3);
	add(3, 9);
	tap_check(runs.nr == 1);
	tap_check(is_run(0, 1, 9));
}

static void merging_sorts(void)
{
	setup();
	add(30, 40);
	add(10, 20);
	add(20, 25);
	add(50, 60);
	add(25, 30);
	tap_check(!runs.sorted);
	vub_runs_merge(&runs);
	tap_check(runs.nr == 2);
	tap_check(is_run(0, 10, 40));
	tap_check(is_run(1, 50, 60));
}

static void overlaps_are_joined(void)
{
	setup();
	add(10, 100);
	add(20, 30);
	add(90, 110);
	add(10, 11);
	vub_runs_merge(&runs);
	tap_check(runs.nr == 1);
	tap_check(is_run(0, 10, 110));
}

static void an_empty_list_merges(void)
{
	setup();
	vub_runs_merge(&runs);
	tap_check(!runs.nr);
}

static void rewinding_undoes_growth(void)
{
	struct vub_runs_mark mark;

	setup();
	add(10, 20);
	mark = vub_runs_mark(&runs);
	add(20, 30);
	add(5, 6);
	vub_runs_rewind(&runs, &mark);
	tap_check(runs.nr == 1);
	tap_check(runs.sorted);
	tap_check(is_run(0, 10, 20));
}

/* The same as a plain map of pages would say, for random lists. */
static void merging_keeps_every_page(void)
{
	enum { PAGES = 512, ROUNDS = 2000 };
	unsigned int round, i;
	size_t j;

	srandom(1);
	for (round = 0; round < ROUNDS; round++) {
		bool want[PAGES + 1] = { 0 }, have[PAGES + 1] = { 0 };

		setup();
		for (i = 0; i < (unsigned int)random() % 40; i++) {
			uint64_t start = (uint64_t)random() % PAGES;
			uint64_t end = start + 1 + (uint64_t)random() % 20;

			end = vub_min(end, PAGES);
			add(start, end);
			memset(want + start, true, end - start);
		}
		vub_runs_merge(&runs);
		for (j = 0; j < runs.nr; j++) {
			memset(have + runs.run[j].start, true,
			       runs.run[j].end - runs.run[j].start);
			tap_check(!j || runs.run[j].start >
					runs.run[j - 1].end);
		}
		tap_check(!memcmp(want, have, sizeof(want)));
	}
}

static void pieces_are_cut_to_the_grain(void)
{
	struct vub_region region = { .offset = 0x3000, .size = 0x100000 };
	struct vub_piece piece = { &region, 0x1000, 0x9000 };

	/* The file's bytes 0x4000 to 0xd000. */
	tap_check(vub_piece_trim(&piece, 0x4000) == 0x1000);
	tap_check(piece.offset == 0x1000);
	tap_check(piece.size == 0x8000);

	/* 0x5000 to 0xe000 */
	piece = (struct vub_piece){ &region, 0x2000, 0x9000 };
	tap_check(vub_piece_trim(&piece, 0x4000) == 0x5000);
	tap_check(piece.offset == 0x5000);
	tap_check(piece.size == 0x4000);

	piece = (struct vub_piece){ &region, 0x2000, 0x2000 };
	tap_check(vub_piece_trim(&piece, 0x4000) == 0x2000);
	tap_check(!piece.size);
}

static void pieces_follow_regions(void)
{
	struct vub_memory memory = {
		.region = {
			{ .guest_addr = 0, .size = 0x10000 },
			{ .guest_addr = 0x10000, .size = 0x10000 },
		},
		.nr_regions = 2,
	};
	struct vub_cursor cursor = { 0 };
	struct vub_piece piece;

	setup();
	add(2, 4);
	add(8, 24);
	tap_check(vub_piece_next(&memory, &runs, &cursor, 0x5000, &piece));
	tap_check(piece.offset == 0x2000 && piece.size == 0x2000);
	tap_check(vub_piece_next(&memory, &runs, &cursor, 0x5000, &piece));
	tap_check(piece.offset == 0x8000 && piece.size == 0x5000);
	tap_check(vub_piece_next(&memory, &runs, &cursor, 0x5000, &piece));
	tap_check(piece.offset == 0xd000 && piece.size == 0x3000);
	tap_check(vub_piece_next(&memory, &runs, &cursor, 0x50000, &piece));
	tap_check(piece.region == &memory.region[1]);
	tap_check(!piece.offset && piece.size == 0x8000);
	tap_check(!vub_piece_next(&memory, &runs, &cursor, 0x5000, &piece));
}

static const struct tap_test tests[] = {
	{ "neighbours become one run", neighbours_become_one },
	{ "merging sorts", merging_sorts },
	{ "overlaps are joined", overlaps_are_joined },
	{ "an empty list merges", an_empty_list_merges },
	{ "rewinding undoes growth too", rewinding_undoes_growth },
	{ "merging keeps every page, and no other", merging_keeps_every_page },
	{ "pieces are cut to the grain", pieces_are_cut_to_the_grain },
	{ "pieces end where regions end", pieces_follow_regions },
};

int main(void)
{
	int status = tap_run(tests, VUB_ARRAY_SIZE(tests));

	vub_runs_free(&runs);
	return status;
}
