// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Decoders of PFN arrays and of bitmap windows.
 *
 * Copyright (C) the project's developers
 */
#include <endian.h>
#include <string.h>

#include "../../../../drivers/virtio/balloon/bitmap.h"
#include "../decode.h"
#include "tap.h"

/* Guest memory: pages 16 to 1024, and 2048 to 4096. */
static struct vub_run memory_runs[] = { { 16, 1024 }, { 2048, 4096 } };
static const struct vub_runs memory = {
	.run = memory_runs, .nr = 2, .max = 2, .sorted = true,
};

static struct vub_runs runs = { .sorted = true };
static struct vub_decoded decoded;
static uint64_t nr_outside;

static char buffer[2 * VIRTIO_BALLOON_BITMAP_BYTES];
static size_t length;

static void setup(void)
{
	vub_runs_clear(&runs);
	decoded = (struct vub_decoded){ 0 };
	nr_outside = 0;
	memset(buffer, 0, sizeof(buffer));
	length = 0;
}

static void put_pfn(uint32_t pfn)
{
	pfn = htole32(pfn);
	memcpy(buffer + length, &pfn, sizeof(pfn));
	length += sizeof(pfn);
}

static void decode_pfns(void)
{
	tap_check(!vub_decode_pfns(buffer, length, &memory, &runs, &decoded,
				   &nr_outside));
}

static bool is_run(size_t i, uint64_t start, uint64_t end)
{
	return i < runs.nr && runs.run[i].start == start &&
	       runs.run[i].end == end;
}

static void pfns_become_runs(void)
{
	setup();
	put_pfn(100);
	put_pfn(101);
	put_pfn(102);
	put_pfn(50);
	put_pfn(51);
	decode_pfns();
	tap_check(runs.nr == 2);
	tap_check(is_run(0, 100, 103));
	tap_check(is_run(1, 50, 52));
	tap_check(decoded.nr_pfns == 5);
}

static void pfns_outside_memory_are_left_out(void)
{
	setup();
	put_pfn(15);
	put_pfn(16);
	put_pfn(1023);
	put_pfn(1024);
	put_pfn(UINT32_MAX);
	put_pfn(2048);
	decode_pfns();
	tap_check(nr_outside == 3);
	tap_check(decoded.nr_pfns == 3);
	tap_check(runs.nr == 3);
	tap_check(is_run(1, 1023, 1024));
}

/* Append a window; its bits are all clear. Returns where they begin. */
static char *put_window(uint64_t base_pfn, uint32_t nr_bits, uint8_t order)
{
	struct virtio_balloon_bitmap header = {
		.base_pfn = (__force __le64)htole64(base_pfn),
		.nbits = (__force __le32)htole32(nr_bits),
		.order = order,
	};
	char *bits;

	memcpy(buffer + length, &header, sizeof(header));
	bits = buffer + length + sizeof(header);
	length += sizeof(header) + (nr_bits + 63) / 64 * 8;
	return bits;
}

static void set_bit(char *bits, unsigned int bit)
{
	bits[bit / 8] |= (char)(1u << bit % 8);
}

static enum vub_reject decode_bitmap(void)
{
	enum vub_reject reject;

	tap_check(!vub_decode_bitmap(buffer, length, &memory, &runs, &decoded,
				     &reject));
	return reject;
}

/* A buffer that is refused names nothing and counts nothing. */
static bool refused(enum vub_reject why)
{
	enum vub_reject reject = decode_bitmap();

	return reject == why && !runs.nr && !decoded.nr_pfns &&
	       !decoded.nr_bits && !decoded.nr_windows;
}

static void windows_become_runs(void)
{
	char *bits;

	setup();
	bits = put_window(64, 130, 0);
	set_bit(bits, 0);
	set_bit(bits, 63);
	set_bit(bits, 64);
	set_bit(bits, 129);
	bits = put_window(2048, 3, 9);
	set_bit(bits, 0);
	set_bit(bits, 2);
	tap_check(decode_bitmap() == VUB_ACCEPT);
	tap_check(runs.nr == 5);
	tap_check(is_run(0, 64, 65));
	tap_check(is_run(1, 127, 129));
	tap_check(is_run(2, 193, 194));
	tap_check(is_run(3, 2048, 2560));
	tap_check(is_run(4, 3072, 3584));
	tap_check(decoded.nr_windows == 2);
	tap_check(decoded.nr_bits == 6);
	tap_check(decoded.bits[1] == 1 && decoded.bits[2] == 1);
	tap_check(decoded.nr_pfns == 4 + 1024);
}

static void runs_cross_windows(void)
{
	char *bits;

	setup();
	bits = put_window(64, 64, 0);
	memset(bits, 0xff, 8);
	bits = put_window(128, 64, 0);
	memset(bits, 0xff, 8);
	tap_check(decode_bitmap() == VUB_ACCEPT);
	tap_check(runs.nr == 1);
	tap_check(is_run(0, 64, 192));
}

static void the_largest_window_fits(void)
{
	setup();
	put_window(16, VIRTIO_BALLOON_BITMAP_BITS, 0);
	tap_check(length == VIRTIO_BALLOON_BITMAP_BYTES);
	tap_check(decode_bitmap() == VUB_ACCEPT);
	tap_check(decoded.nr_windows == 1);
}

static void lengths_are_checked(void)
{
	setup();
	tap_check(refused(VUB_REJECT_LENGTH));
	put_window(64, 64, 0);
	length--;
	tap_check(refused(VUB_REJECT_LENGTH));
	length = 15;
	tap_check(refused(VUB_REJECT_LENGTH));
	setup();
	put_window(64, 64, 0);
	length += 8;
	tap_check(decode_bitmap() == VUB_REJECT_LENGTH);
	setup();
	put_window(64, 64, 0);
	length = VIRTIO_BALLOON_BITMAP_BYTES + 8;
	tap_check(refused(VUB_REJECT_TOO_LONG));
}

static void bit_counts_are_checked(void)
{
	setup();
	put_window(64, 0, 0);
	tap_check(refused(VUB_REJECT_WINDOW_BITS));
	setup();
	put_window(64, VIRTIO_BALLOON_BITMAP_BITS + 1, 0);
	length = VIRTIO_BALLOON_BITMAP_BYTES;
	tap_check(refused(VUB_REJECT_WINDOW_BITS));
	setup();
	put_window(64, UINT32_MAX, 0);
	length = VIRTIO_BALLOON_BITMAP_BYTES;
	tap_check(refused(VUB_REJECT_WINDOW_BITS));
}

static void bases_are_checked(void)
{
	setup();
	put_window(2049, 1, 1);
	tap_check(refused(VUB_REJECT_WINDOW_BASE));
	setup();
	put_window(0, 1, 255);
	tap_check(refused(VUB_REJECT_WINDOW_BASE));
}

static void flags_and_reserved_are_checked(void)
{
	unsigned int byte;

	for (byte = 13; byte < 16; byte++) {
		setup();
		put_window(64, 64, 0);
		buffer[byte] = 1;
		tap_check(refused(VUB_REJECT_WINDOW_FLAGS));
	}
}

static void stray_bits_are_checked(void)
{
	char *bits;

	setup();
	bits = put_window(64, 3, 0);
	set_bit(bits, 2);
	tap_check(decode_bitmap() == VUB_ACCEPT);
	setup();
	bits = put_window(64, 3, 0);
	set_bit(bits, 3);
	tap_check(refused(VUB_REJECT_WINDOW_STRAY));
	setup();
	bits = put_window(64, 3, 0);
	set_bit(bits, 63);
	tap_check(refused(VUB_REJECT_WINDOW_STRAY));
}

static void pages_are_checked(void)
{
	char *bits;

	setup();
	bits = put_window(0, 64, 0);
	set_bit(bits, 15);
	tap_check(refused(VUB_REJECT_WINDOW_PAGE));
	setup();
	bits = put_window(960, 128, 0);
	memset(bits, 0xff, 16);
	tap_check(refused(VUB_REJECT_WINDOW_PAGE));
	/* The last page of a bit counts as well. */
	setup();
	bits = put_window(0, 1, 10);
	set_bit(bits, 0);
	tap_check(refused(VUB_REJECT_WINDOW_PAGE));
	setup();
	bits = put_window(UINT64_C(1) << 63, 1, 0);
	set_bit(bits, 0);
	tap_check(refused(VUB_REJECT_WINDOW_PAGE));
	/* A clear bit may stand for anything. */
	setup();
	put_window(0, 64, 20);
	tap_check(decode_bitmap() == VUB_ACCEPT);
}

/* The first window is good, the second is not: neither counts. */
static void one_bad_window_spoils_the_buffer(void)
{
	char *bits;

	setup();
	tap_check(!vub_runs_add(&runs, 60, 64));
	bits = put_window(64, 64, 0);
	set_bit(bits, 0);
	set_bit(bits, 5);
	bits = put_window(128, 64, 0);
	set_bit(bits, 1);
	buffer[length - 8 - 3] = 1;
	tap_check(decode_bitmap() == VUB_REJECT_WINDOW_FLAGS);
	tap_check(runs.nr == 1);
	tap_check(is_run(0, 60, 64));
	tap_check(!decoded.nr_bits);
}

/*
 * What the driver's encoder says of a random set is what our decoder hears: the same
 * pages, merged, with not a window more than the encoder counts.
 */
static void windows_say_what_the_driver_means(void)
{
	struct vub_run everything[] = { { 0, UINT64_C(1) << 52 } };
	const struct vub_runs all = {
		.run = everything, .nr = 1, .max = 1, .sorted = true,
	};
	struct vub_runs wanted = { .sorted = true };
	struct vb_density density = { 0 };
	struct vb_bitmap map;
	unsigned int round;
	size_t i;

	srandom(20);
	for (round = 0; round < 2000; round++) {
		uint64_t before = density.nr_windows;
		uint64_t pfn = (uint64_t)random() << (round % 20);
		enum vub_reject reject;

		setup();
		vub_runs_clear(&wanted);
		vb_bitmap_begin(&map, buffer, VIRTIO_BALLOON_BITMAP_BYTES, &density);
		for (;;) {
			unsigned int order = random() % 4 ? 0 : random() % 14;
			uint64_t size = UINT64_C(1) << order;

			pfn = vub_align_down(pfn + size - 1, size);
			if (!vb_bitmap_add(&map, pfn, order))
				break;
			tap_check(!vub_runs_add(&wanted, pfn, pfn + size));
			pfn += size + (uint64_t)random() % (1u << round % 11);
		}
		length = vb_bitmap_end(&map);
		tap_check(!vub_decode_bitmap(buffer, length, &all, &runs, &decoded,
					     &reject));
		tap_check(reject == VUB_ACCEPT);
		tap_check(decoded.nr_windows == density.nr_windows - before);
		vub_runs_merge(&runs);
		vub_runs_merge(&wanted);
		tap_check(runs.nr == wanted.nr);
		for (i = 0; i < runs.nr && i < wanted.nr; i++)
			tap_check(is_run(i, wanted.run[i].start, wanted.run[i].end));
	}
	vub_runs_free(&wanted);
}

static const struct tap_test tests[] = {
	{ "PFNs become runs", pfns_become_runs },
	{ "PFNs outside memory are left out", pfns_outside_memory_are_left_out },
	{ "windows become runs", windows_become_runs },
	{ "runs cross windows", runs_cross_windows },
	{ "the largest window fits", the_largest_window_fits },
	{ "windows say what the driver means", windows_say_what_the_driver_means },
	{ "lengths are checked", lengths_are_checked },
	{ "bit counts are checked", bit_counts_are_checked },
	{ "bases are checked", bases_are_checked },
	{ "flags and reserved bytes are checked", flags_and_reserved_are_checked },
	{ "stray bits are checked", stray_bits_are_checked },
	{ "pages are checked", pages_are_checked },
	{ "one bad window spoils the buffer", one_bad_window_spoils_the_buffer },
};

int main(void)
{
	int status = tap_run(tests, VUB_ARRAY_SIZE(tests));

	vub_runs_free(&runs);
	return status;
}
