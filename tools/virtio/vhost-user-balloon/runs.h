/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists of page runs.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_RUNS_H
#define VUB_RUNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/**
 * struct vub_run - neighbouring pages
 * @start: first page, in units of 4 KiB
 * @end: the page after the last one
 */
struct vub_run {
	uint64_t start;
	uint64_t end;
};

/**
 * struct vub_runs - a list of runs
 * @run: the runs
 * @nr: how many there are
 * @max: how many there is room for
 * @sorted: they ascend so far
 */
struct vub_runs {
	struct vub_run *run;
	size_t nr;
	size_t max;
	bool sorted;
};

/**
 * struct vub_runs_mark - a point that a list can go back to
 * @nr: how many runs there were
 * @last: the last one of them
 * @sorted: whether they ascended
 */
struct vub_runs_mark {
	size_t nr;
	struct vub_run last;
	bool sorted;
};

void vub_runs_clear(struct vub_runs *runs);
void vub_runs_free(struct vub_runs *runs);
int vub_runs_add(struct vub_runs *runs, uint64_t start, uint64_t end);
struct vub_runs_mark vub_runs_mark(const struct vub_runs *runs);
void vub_runs_rewind(struct vub_runs *runs, const struct vub_runs_mark *mark);
void vub_runs_merge(struct vub_runs *runs);

#endif /* VUB_RUNS_H */
