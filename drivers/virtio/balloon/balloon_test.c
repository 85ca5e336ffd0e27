// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * KUnit tests of the balloon's pure parts: both codecs and the policy.
 *
 * Copyright (C) the project's developers
 */
#include <kunit/test.h>
#include <linux/bitmap.h>
#include <linux/limits.h>
#include <linux/prandom.h>
#include <linux/sizes.h>

#include "bitmap.h"
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

/* Pages that random sets are taken from. */
#define SPAN	65536u

/* One buffer of windows and what it says, for pages from @base on. */
struct windows {
	struct vb_bitmap map;
	struct vb_density density;
	__le64 buf[VIRTIO_BALLOON_BITMAP_BYTES / sizeof(__le64)];
	u64 base;
	unsigned int nr;
	DECLARE_BITMAP(pages, SPAN);
};

static struct windows *windows_new(struct kunit *test, u64 base)
{
	struct windows *w = kunit_kzalloc(test, sizeof(*w), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, w);
	w->base = base;
	vb_bitmap_begin(&w->map, w->buf, sizeof(w->buf), &w->density);
	return w;
}

static void window_read(struct kunit *test, struct windows *w,
			const struct virtio_balloon_bitmap *window)
{
	u64 base = le64_to_cpu(window->base_pfn);
	u32 bit, nbits = le32_to_cpu(window->nbits);

	KUNIT_ASSERT_EQ(test, base & ((1ull << window->order) - 1), 0);
	KUNIT_ASSERT_EQ(test, window->flags, 0);
	KUNIT_ASSERT_EQ(test, le16_to_cpu(window->reserved), 0);
	KUNIT_ASSERT_GT(test, nbits, 0);
	KUNIT_ASSERT_LE(test, nbits, VIRTIO_BALLOON_BITMAP_BITS);
	for (bit = 0; bit < round_up(nbits, 64); bit++) {
		u64 pfn = base - w->base + ((u64)bit << window->order);

		if (!(le64_to_cpu(window->bits[bit / 64]) >> bit % 64 & 1))
			continue;
		KUNIT_ASSERT_LT(test, bit, nbits);
		KUNIT_ASSERT_LE(test, pfn + (1u << window->order), SPAN);
		KUNIT_ASSERT_FALSE(test, test_bit(pfn, w->pages));
		bitmap_set(w->pages, pfn, 1u << window->order);
	}
}

/* Decode by the letter of the format; what does not obey it fails the test. */
static void windows_read(struct kunit *test, struct windows *w)
{
	unsigned int len = vb_bitmap_end(&w->map), off = 0;
	const struct virtio_balloon_bitmap *window;

	KUNIT_ASSERT_LE(test, len, VIRTIO_BALLOON_BITMAP_BYTES);
	KUNIT_ASSERT_EQ(test, w->density.nr_bytes, len);
	while (off < len) {
		KUNIT_ASSERT_GT(test, len - off, sizeof(*window));
		window = (void *)w->buf + off;
		off += sizeof(*window) +
		       DIV_ROUND_UP(le32_to_cpu(window->nbits), 64) * 8;
		KUNIT_ASSERT_LE(test, off, len);
		window_read(test, w, window);
		w->nr++;
	}
	KUNIT_EXPECT_EQ(test, w->density.nr_windows, w->nr);
	KUNIT_EXPECT_EQ(test, w->density.nr_pfns, bitmap_weight(w->pages, SPAN));
}

static void bitmap_one_page(struct kunit *test)
{
	struct windows *w = windows_new(test, 0);

	KUNIT_ASSERT_TRUE(test, vb_bitmap_add(&w->map, 4711, 0));
	windows_read(test, w);
	KUNIT_EXPECT_EQ(test, w->map.len, 24);
	KUNIT_EXPECT_TRUE(test, test_bit(4711, w->pages));
	KUNIT_EXPECT_EQ(test, w->density.nr_pfns, 1);
	KUNIT_EXPECT_EQ(test, w->density.nr_singles, 1);
}

/* Dense pages are one long window, with as many bits as fit. */
static void bitmap_all_and_every_second(struct kunit *test)
{
	unsigned int step, pfn;

	for (step = 1; step <= 2; step++) {
		struct windows *w = windows_new(test, 0);

		for (pfn = 0; vb_bitmap_add(&w->map, pfn, 0); pfn += step)
			;
		KUNIT_EXPECT_GE(test, pfn, VIRTIO_BALLOON_BITMAP_BITS);
		windows_read(test, w);
		KUNIT_EXPECT_EQ(test, w->nr, 1);
		KUNIT_EXPECT_EQ(test, w->density.nr_pfns,
				DIV_ROUND_UP(pfn, step));
		KUNIT_EXPECT_EQ(test, w->density.nr_singles,
				step == 1 ? 0 : DIV_ROUND_UP(pfn, step));
	}
}

/* Pages far from each other have a short window each: 170 to a buffer. */
static void bitmap_holes(struct kunit *test)
{
	struct windows *w = windows_new(test, 0);
	unsigned int nr = 0;

	while (vb_bitmap_add(&w->map, nr * 384, 0))
		nr++;
	windows_read(test, w);
	KUNIT_EXPECT_EQ(test, nr, VIRTIO_BALLOON_BITMAP_BYTES / 24);
	KUNIT_EXPECT_EQ(test, w->nr, nr);
}

/* A large block is one bit, and small ones beside it do not cost it that. */
static void bitmap_mixed_orders(struct kunit *test)
{
	struct windows *w = windows_new(test, 0);

	KUNIT_ASSERT_TRUE(test, vb_bitmap_add(&w->map, 1, 0));
	KUNIT_ASSERT_TRUE(test, vb_bitmap_add(&w->map, 3, 0));
	KUNIT_ASSERT_TRUE(test, vb_bitmap_add(&w->map, 1024, 10));
	KUNIT_ASSERT_TRUE(test, vb_bitmap_add(&w->map, 3072, 10));
	KUNIT_ASSERT_TRUE(test, vb_bitmap_add(&w->map, 4096, 0));
	windows_read(test, w);
	KUNIT_EXPECT_EQ(test, w->nr, 3);
	KUNIT_EXPECT_EQ(test, w->map.len, 3 * 24);
	KUNIT_EXPECT_EQ(test, w->density.nr_pfns, 3 + 2 * 1024);
	KUNIT_EXPECT_EQ(test, w->density.orders[10], 2);
	KUNIT_EXPECT_EQ(test, w->density.runs[0], 2);
	KUNIT_EXPECT_EQ(test, w->density.runs[10], 2);
}

/* 2^52 PFNs is where a 64-bit address space ends. */
static void bitmap_top_of_address_space(struct kunit *test)
{
	const u64 base = (1ull << 52) - SPAN;
	struct windows *w = windows_new(test, base);

	KUNIT_ASSERT_TRUE(test, vb_bitmap_add(&w->map, base + SPAN - 2048, 10));
	KUNIT_ASSERT_TRUE(test, vb_bitmap_add(&w->map, base + SPAN - 1, 0));
	windows_read(test, w);
	KUNIT_EXPECT_TRUE(test, test_bit(SPAN - 1, w->pages));
	KUNIT_EXPECT_FALSE(test, test_bit(SPAN - 2, w->pages));
	KUNIT_EXPECT_EQ(test, bitmap_weight(w->pages, SPAN), 1025);
}

/* Random sets of blocks, ascending or not: nothing is lost, nothing is added. */
static void bitmap_random_sets(struct kunit *test)
{
	unsigned long *wanted = kunit_kzalloc(test, SPAN / 8, GFP_KERNEL);
	struct rnd_state rnd;
	unsigned int round, order, pfn, gap;

	KUNIT_ASSERT_NOT_NULL(test, wanted);
	prandom_seed_state(&rnd, 20);
	for (round = 0; round < 200; round++) {
		struct windows *w = windows_new(test, 0);
		bool descending = round % 4 == 3;

		bitmap_zero(wanted, SPAN);
		gap = 1u << round % 12;
		for (pfn = 0;; pfn += (1u << order) +
				      prandom_u32_state(&rnd) % gap) {
			u64 at;

			order = prandom_u32_state(&rnd) % 8 ? 0 :
				prandom_u32_state(&rnd) % 11;
			pfn = round_up(pfn, 1u << order);
			if (pfn + (1u << order) > SPAN)
				break;
			at = descending ? SPAN - pfn - (1u << order) : pfn;
			if (!vb_bitmap_add(&w->map, at, order))
				break;
			bitmap_set(wanted, at, 1u << order);
		}
		windows_read(test, w);
		KUNIT_ASSERT_TRUE(test, bitmap_equal(wanted, w->pages, SPAN));
		kunit_kfree(test, w);
	}
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

	KUNIT_EXPECT_EQ(test, vb_window_limit(1, 4, 40), 1);
	KUNIT_EXPECT_EQ(test, vb_window_limit(2, 4, 40), 1);
	KUNIT_EXPECT_EQ(test, vb_window_limit(8, 4, 40), 7);
	KUNIT_EXPECT_EQ(test, vb_window_limit(16, 4, 40), 12);
	KUNIT_EXPECT_EQ(test, vb_window_limit(128, 4, 40), 40);
	KUNIT_EXPECT_EQ(test, vb_window_limit(1024, 4, 40), 40);
	for (ring = 2; ring <= 32768; ring *= 2)
		KUNIT_EXPECT_LT(test, vb_window_limit(ring, 4, 40), ring);
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

static void window_follows_ram(struct kunit *test)
{
	unsigned long gib = SZ_1G >> PAGE_SHIFT;

	KUNIT_EXPECT_EQ(test, vb_window_most(0), 64);
	KUNIT_EXPECT_EQ(test, vb_window_most(4 * gib), 64);
	KUNIT_EXPECT_EQ(test, vb_window_most(8 * gib), 128);
	KUNIT_EXPECT_EQ(test, vb_window_most(16 * gib), 256);
	KUNIT_EXPECT_EQ(test, vb_window_most(64 * gib), 256);
}

static void batches_share_the_window(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, vb_pipeline_batch(1, 1), 1);
	KUNIT_EXPECT_EQ(test, vb_pipeline_batch(4, 4), 4);
	KUNIT_EXPECT_EQ(test, vb_pipeline_batch(7, 4), 4);
	KUNIT_EXPECT_EQ(test, vb_pipeline_batch(64, 4), 32);
	KUNIT_EXPECT_EQ(test, vb_pipeline_batch(256, 4), 64);
}

static struct kunit_case vb_cases[] = {
	KUNIT_CASE(codec_little_endian),
	KUNIT_CASE(codec_legacy_big_endian),
	KUNIT_CASE(codec_run_ascends),
	KUNIT_CASE(codec_refuses_far_pages),
	KUNIT_CASE(bitmap_one_page),
	KUNIT_CASE(bitmap_all_and_every_second),
	KUNIT_CASE(bitmap_holes),
	KUNIT_CASE(bitmap_mixed_orders),
	KUNIT_CASE(bitmap_top_of_address_space),
	KUNIT_CASE(bitmap_random_sets),
	KUNIT_CASE(target_rounds_up),
	KUNIT_CASE(target_survives_garbage),
	KUNIT_CASE(reserve_follows_ram),
	KUNIT_CASE(room_stops_at_reserve),
	KUNIT_CASE(small_change_is_not_chased),
	KUNIT_CASE(backoff_doubles_to_a_limit),
	KUNIT_CASE(order_never_exceeds_the_need),
	KUNIT_CASE(window_fits_the_ring),
	KUNIT_CASE(window_follows_the_host),
	KUNIT_CASE(window_follows_ram),
	KUNIT_CASE(batches_share_the_window),
	{ }
};

static struct kunit_suite vb_suite = {
	.name = "virtio_balloon",
	.test_cases = vb_cases,
};

kunit_test_suite(vb_suite);
