// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes both decoders: whatever comes, only pages of the guest are named.
 *
 * Copyright (C) the project's developers
 */
#include <stdlib.h>
#include <string.h>

#include "../decode.h"
#include "../util.h"
#include "fuzz.h"

static struct vub_run memory_runs[] = { { 16, 1024 }, { 2048, 1u << 20 } };
static const struct vub_runs memory = {
	.run = memory_runs, .nr = 2, .max = 2, .sorted = true,
};

static void check(const struct vub_runs *runs)
{
	size_t i;

	for (i = 0; i < runs->nr; i++) {
		uint64_t end = vub_memory_end_of(&memory, runs->run[i].start);

		if (runs->run[i].start >= runs->run[i].end ||
		    runs->run[i].end > end)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vub_runs runs = { .sorted = true };
	struct vub_decoded decoded = { 0 };
	enum vub_reject reject;
	uint64_t nr_outside = 0;

	vub_decode_pfns(data, size - size % 4, &memory, &runs, &decoded,
			&nr_outside);
	check(&runs);
	if (decoded.nr_pfns + nr_outside != size / 4)
		abort();

	vub_runs_clear(&runs);
	vub_decode_bitmap(data, size, &memory, &runs, &decoded, &reject);
	if (reject != VUB_ACCEPT && runs.nr)
		abort();
	check(&runs);
	vub_runs_merge(&runs);
	check(&runs);
	vub_runs_free(&runs);
	return 0;
}
