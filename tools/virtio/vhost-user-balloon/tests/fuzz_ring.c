// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the ring walker: the input is guest memory, with the ring in it.
 *
 * Copyright (C) the project's developers
 */
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

#include "../ring.h"
#include "../util.h"
#include "fuzz.h"

#define SIZE	4096u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static alignas(4096) char bytes[SIZE];
	static struct vub_chain chain;
	struct vub_memory memory = {
		.region[0] = { .size = SIZE, .base = bytes },
		.nr_regions = 1,
	};
	struct vub_ring ring = {
		.nr = 16,
		.addr = { 0, 256, 512 },
		.indirect = true,
		.event_idx = size & 1,
	};
	unsigned int taken = 0;

	memset(bytes, 0, sizeof(bytes));
	memcpy(bytes, data, vub_min(size, SIZE));
	if (vub_ring_map(&ring, &memory))
		abort();
	while (vub_ring_take(&ring, &memory, &chain)) {
		if (chain.nr > VUB_CHAIN_MAX || chain.nr_readable > chain.nr ||
		    chain.head >= ring.nr || ++taken > ring.nr)
			abort();
		if (taken % 2)
			vub_ring_give(&ring, chain.head, 0);
		if (taken == ring.nr)
			break;
	}
	vub_ring_publish(&ring);
	vub_ring_wants_call(&ring);
	vub_ring_listen(&ring);
	return 0;
}
