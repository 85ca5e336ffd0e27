// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the balloon's pure parts: the PFN array codec and the policy.
 *
 * Copyright (C) the project's developers
 */
#include <kunit/test.h>
#include <linux/limits.h>
#include <linux/sizes.h>

#include "codec.h"
#include "policy.h"

static void codec_little_endian(struct kunit *test)
{
	__virtio32 pfns[VB_PFNS_PER_PAGE];

	vb_encode_pfns(pfns, true, 0x10203, 1);
	KUNIT_EXPECT_EQ(test, (__force u32)pfns[0],
			(__force u32)cpu_to_le32(0x10203 * VB_PFNS_PER_PAGE));
}

static void codec_legacy_big_endian(struct kunit *test)
{
	__virtio32 pfns[VB_PFNS_PER_PAGE];

	vb_encode_pfns(pfns, false, 7, 1);
	KUNIT_EXPECT_EQ(test, (__force u32)pfns[0],
			(__force u32)cpu_to_be32(7 * VB_PFNS_PER_PAGE));
}

/* A run of guest pages is named whole, ascending, and nothing beside it. */
static void codec_run_ascends(struct kunit *test)
{
	const unsigned long nr_pages = 64;
	__virtio32 *pfns;
	unsigned int i, n;

	pfns = kunit_kcalloc(test, nr_pages * VB_PFNS_PER_PAGE + 1,
			     sizeof(*pfns), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, pfns);
	n = vb_encode_pfns(pfns, true, 100, nr_pages);
	KUNIT_ASSERT_EQ(test, n, nr_pages * VB_PFNS_PER_PAGE);
	for (i = 0; i < n; i++)
		KUNIT_ASSERT_EQ(test, le32_to_cpu((__force __le32)pfns[i]),
				100 * VB_PFNS_PER_PAGE + i);
	KUNIT_EXPECT_EQ(test, (__force u32)pfns[n], 0);
}

/* 32 bits end at 16 TiB: the last page below fits, the first above does not. */
static void codec_refuses_far_pages(struct kunit *test)
{
	const unsigned long end = (1ull << 32) / VB_PFNS_PER_PAGE;

	if (!end)
		kunit_skip(test, "no page is beyond the reach of 32 bits here");
	KUNIT_EXPECT_TRUE(test, vb_pfn_fits(0, 1));
	KUNIT_EXPECT_TRUE(test, vb_pfn_fits(end - 1, 1));
	KUNIT_EXPECT_TRUE(test, vb_pfn_fits(end - 1024, 1024));
	KUNIT_EXPECT_FALSE(test, vb_pfn_fits(end, 1));
	KUNIT_EXPECT_FALSE(test, vb_pfn_fits(end - 1, 2));
}

static void target_rounds_up(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, vb_target_pages(0, 12), 0);
	KUNIT_EXPECT_EQ(test, vb_target_pages(1, 12), 1);
	KUNIT_EXPECT_EQ(test, vb_target_pages(0, 16), 0);
	KUNIT_EXPECT_EQ(test, vb_target_pages(1, 16), 1);
	KUNIT_EXPECT_EQ(test, vb_target_pages(16, 16), 1);
	KUNIT_EXPECT_EQ(test, vb_target_pages(17, 16), 2);
}

/* The largest number that a host can write neither wraps nor becomes zero. */
static void target_survives_garbage(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, vb_target_pages(U32_MAX, 12), U32_MAX);
	KUNIT_EXPECT_EQ(test, vb_target_pages(U32_MAX, 16), 1ul << 28);
}

static void reserve_follows_ram(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, vb_reserve_pages(SZ_64M >> PAGE_SHIFT),
			SZ_4M >> PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, vb_reserve_pages(SZ_1G >> PAGE_SHIFT),
			SZ_16M >> PAGE_SHIFT);
	KUNIT_EXPECT_EQ(test, vb_reserve_pages(1ul << (40 - PAGE_SHIFT)),
			SZ_64M >> PAGE_SHIFT);
}

static void room_stops_at_reserve(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, vb_room_pages(1000, 0, 400), 600);
	KUNIT_EXPECT_EQ(test, vb_room_pages(400, 0, 400), 0);
	KUNIT_EXPECT_EQ(test, vb_room_pages(100, 0, 400), 0);
	KUNIT_EXPECT_EQ(test, vb_room_pages(100, 500, 400), 200);
	KUNIT_EXPECT_EQ(test, vb_room_pages(-50, 0, 400), 0);
	KUNIT_EXPECT_EQ(test, vb_room_pages(-50, 500, 400), 100);
}

static void small_change_is_not_chased(struct kunit *test)
{
	const unsigned long mib = SZ_1M >> PAGE_SHIFT;

	KUNIT_EXPECT_TRUE(test, vb_worth_taking(1, 1000 * mib, 0));
	KUNIT_EXPECT_FALSE(test, vb_worth_taking(mib - 1, 1000 * mib, 1));
	KUNIT_EXPECT_TRUE(test, vb_worth_taking(mib, 1000 * mib, 1));
	KUNIT_EXPECT_TRUE(test, vb_worth_taking(1, 1, 1));
	KUNIT_EXPECT_FALSE(test, vb_worth_taking(0, 1, 1));
}

static void backoff_doubles_to_a_limit(struct kunit *test)
{
	unsigned int failures, last = 0;

	KUNIT_EXPECT_EQ(test, vb_backoff_ms(1), 250);
	KUNIT_EXPECT_EQ(test, vb_backoff_ms(2), 500);
	for (failures = 1; failures < 100; failures++) {
		KUNIT_ASSERT_GE(test, vb_backoff_ms(failures), last);
		last = vb_backoff_ms(failures);
	}
	KUNIT_EXPECT_EQ(test, last, 4000);
	KUNIT_EXPECT_EQ(test, vb_backoff_ms(UINT_MAX), 4000);
}

static void order_never_exceeds_the_need(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, vb_pick_order(1, 10), 0);
	KUNIT_EXPECT_EQ(test, vb_pick_order(1023, 10), 9);
	KUNIT_EXPECT_EQ(test, vb_pick_order(1024, 10), 10);
	KUNIT_EXPECT_EQ(test, vb_pick_order(ULONG_MAX, 10), 10);
	KUNIT_EXPECT_EQ(test, vb_pick_order(1024, 3), 3);
}

/* Rings from one entry up leave room for both kinds of requests. */
static void window_fits_the_ring(struct kunit *test)
{
	unsigned int ring;

	KUNIT_EXPECT_EQ(test, vb_window_limit(1, 4), 1);
	KUNIT_EXPECT_EQ(test, vb_window_limit(2, 4), 1);
	KUNIT_EXPECT_EQ(test, vb_window_limit(8, 4), 7);
	KUNIT_EXPECT_EQ(test, vb_window_limit(16, 4), 12);
	KUNIT_EXPECT_EQ(test, vb_window_limit(128, 4), VB_WINDOW_MAX);
	KUNIT_EXPECT_EQ(test, vb_window_limit(1024, 4), VB_WINDOW_MAX);
	for (ring = 2; ring <= 32768; ring *= 2)
		KUNIT_EXPECT_LT(test, vb_window_limit(ring, 4), ring);
}

static void window_follows_the_host(struct kunit *test)
{
	unsigned int window = 4, batches = 0;

	while (window < 124) {
		window = vb_window_grow(window, window, 124);
		batches++;
	}
	KUNIT_EXPECT_EQ(test, window, 124);
	KUNIT_EXPECT_EQ(test, batches, 5);
	KUNIT_EXPECT_EQ(test, vb_window_grow(124, 1, 124), 124);

	KUNIT_EXPECT_EQ(test, vb_window_shrink(124, 4), 62);
	KUNIT_EXPECT_EQ(test, vb_window_shrink(5, 4), 4);
	KUNIT_EXPECT_EQ(test, vb_window_shrink(4, 4), 4);
	KUNIT_EXPECT_EQ(test, vb_window_shrink(1, 1), 1);
}

static struct kunit_case vb_cases[] = {
	KUNIT_CASE(codec_little_endian),
	KUNIT_CASE(codec_legacy_big_endian),
	KUNIT_CASE(codec_run_ascends),
	KUNIT_CASE(codec_refuses_far_pages),
	KUNIT_CASE(target_rounds_up),
	KUNIT_CASE(target_survives_garbage),
	KUNIT_CASE(reserve_follows_ram),
	KUNIT_CASE(room_stops_at_reserve),
	KUNIT_CASE(small_change_is_not_chased),
	KUNIT_CASE(backoff_doubles_to_a_limit),
	KUNIT_CASE(order_never_exceeds_the_need),
	KUNIT_CASE(window_fits_the_ring),
	KUNIT_CASE(window_follows_the_host),
	{ }
};

static struct kunit_suite vb_suite = {
	.name = "virtio_balloon",
	.test_cases = vb_cases,
};

kunit_test_suite(vb_suite);
