// SPDX-License-Identifier: GPL-2.0
/*
 * What each statistic must be, in the unit in which the host gets it: memory in bytes,
 * the rest in events. Taken from /proc alone, and printed as lines
 *
 *	# stat NAME VALUE
 *
 * under the names that the UAPI header gives to the tags, for a harness on the host
 * that lays the driver's numbers beside these.
 *
 * Copyright the project's developers
 */

#include "../kselftest_harness.h"
#include "balloon.h"

#define MAX_SOURCES	5

/**
 * struct stat_source - where the value of a statistic stands
 * @name: name of its tag
 * @file: file in /proc
 * @lines: lines of that file whose values add up to it; one that the kernel
 *	configuration leaves out counts as 0
 * @minus: a line to subtract, or NULL
 * @unit: what one stands for
 * @required: whether the first line must be there
 */
struct stat_source {
	const char *name;
	const char *file;
	const char *lines[MAX_SOURCES];
	const char *minus;
	enum { EVENTS, PAGES, KIBS } unit;
	bool required;
};

static const struct stat_source sources[] = {
	{ "swap-in", "/proc/vmstat", { "pswpin" }, NULL, PAGES, false },
	{ "swap-out", "/proc/vmstat", { "pswpout" }, NULL, PAGES, false },
	{ "major-faults", "/proc/vmstat", { "pgmajfault" }, NULL, EVENTS, true },
	{ "minor-faults", "/proc/vmstat", { "pgfault" }, "pgmajfault", EVENTS, true },
	{ "free-memory", "/proc/meminfo", { "MemFree" }, NULL, KIBS, true },
	{ "total-memory", "/proc/meminfo", { "MemTotal" }, NULL, KIBS, true },
	{ "available-memory", "/proc/meminfo", { "MemAvailable" }, NULL, KIBS, true },
	{ "disk-caches", "/proc/vmstat", { "nr_file_pages" }, NULL, PAGES, true },
	{ "hugetlb-allocations", "/proc/vmstat", { "htlb_buddy_alloc_success" },
	  NULL, EVENTS, false },
	{ "hugetlb-failures", "/proc/vmstat", { "htlb_buddy_alloc_fail" },
	  NULL, EVENTS, false },
	{ "oom-kills", "/proc/vmstat", { "oom_kill" }, NULL, EVENTS, true },
	{ "alloc-stalls", "/proc/vmstat",
	  { "allocstall_normal", "allocstall_dma", "allocstall_dma32",
	    "allocstall_movable", "allocstall_device" }, NULL, EVENTS, true },
	{ "async-scans", "/proc/vmstat", { "pgscan_kswapd" }, NULL, PAGES, true },
	{ "direct-scans", "/proc/vmstat", { "pgscan_direct" }, NULL, PAGES, true },
	{ "async-reclaims", "/proc/vmstat", { "pgsteal_kswapd" }, NULL, PAGES, true },
	{ "direct-reclaims", "/proc/vmstat", { "pgsteal_direct" }, NULL, PAGES, true },
};

static long long to_unit(const struct stat_source *source, long long value)
{
	switch (source->unit) {
	case PAGES:
		return value * getpagesize();
	case KIBS:
		return value * 1024;
	default:
		return value;
	}
}

TEST(sources_are_there)
{
	size_t i, j;

	for (i = 0; i < ARRAY_SIZE(sources); i++) {
		const struct stat_source *source = &sources[i];
		long long sum = 0, value;

		if (source->required)
			EXPECT_GE(file_value(source->file, source->lines[0]), 0) {
				TH_LOG("%s is not in %s", source->lines[0],
				       source->file);
			}
		for (j = 0; j < MAX_SOURCES && source->lines[j]; j++) {
			value = file_value(source->file, source->lines[j]);
			sum += value > 0 ? value : 0;
		}
		if (source->minus)
			sum -= file_value(source->file, source->minus);
		ksft_print_msg("stat %s %lld\n", source->name, to_unit(source, sum));
	}
}

TEST(total_is_above_free_and_available)
{
	long long total = meminfo_kib("MemTotal");

	EXPECT_GT(total, meminfo_kib("MemFree"));
	EXPECT_GT(total, meminfo_kib("MemAvailable"));
}

TEST_HARNESS_MAIN
