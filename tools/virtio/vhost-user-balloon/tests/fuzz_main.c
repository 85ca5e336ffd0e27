// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Throws chance at a fuzzer for so many seconds: fuzz_... SECONDS [SEED].
 *
 * Copyright (C) the project's developers
 */
#include <stdio.h>
#include <stdlib.h>

#include "../util.h"
#include "fuzz.h"

#define MOST	8192

/* Values that break more than others do. */
static const uint64_t edges[] = {
	0, 1, 2, 3, 7, 8, 15, 16, 63, 64, 255, 256, 4095, 4096, 0x7fffffff,
	0x80000000, 0xffffffff, UINT64_C(1) << 63, UINT64_MAX,
};

static size_t make_input(uint8_t *data)
{
	size_t size = (size_t)random() % (random() % 4 ? 256 : MOST), i;

	for (i = 0; i < size; i++)
		data[i] = random() % 3 ? 0 : (uint8_t)random();
	for (i = 0; i + 8 <= size && random() % 4; i += 1 + (size_t)random() % 16) {
		uint64_t edge = edges[(size_t)random() % VUB_ARRAY_SIZE(edges)];
		size_t byte;

		for (byte = 0; byte < 8; byte++)
			data[i + byte] = (uint8_t)(edge >> 8 * byte);
	}
	return size;
}

int main(int argc, char **argv)
{
	static uint8_t data[MOST];
	unsigned int seed = (unsigned int)vub_now();
	uint64_t end = vub_now(), nr = 0;

	if (argc > 1)
		end += strtoull(argv[1], NULL, 0) * VUB_NSEC_PER_SEC;
	if (argc > 2)
		seed = (unsigned int)strtoul(argv[2], NULL, 0);
	printf("# %s: seed %u\n", argv[0], seed);
	fflush(stdout);
	srandom(seed);
	do {
		LLVMFuzzerTestOneInput(data, make_input(data));
		nr++;
	} while (vub_now() < end);
	printf("ok - %s: %llu inputs\n", argv[0], (unsigned long long)nr);
	return EXIT_SUCCESS;
}
