// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device's side of a ring, with a driver that may be anything.
 *
 * Copyright (C) the project's developers
 */
#include <stdalign.h>
#include <string.h>

#include "../ring.h"
#include "tap.h"

/* Guest memory of 64 KiB, with the parts of a ring of 8 entries in it. */
#define BASE		UINT64_C(0x100000)
#define DESC		0x0
#define AVAIL		0x1000
#define USED		0x2000
#define TABLE		0x3000
#define ENTRIES		8u

static alignas(4096) char bytes[0x10000];
static struct vub_memory memory;
static struct vub_ring ring;
static struct vub_chain chain;

static struct vring_desc *desc_at(unsigned int offset, unsigned int i)
{
	return (struct vring_desc *)(bytes + offset) + i;
}

static struct vring_avail *avail(void)
{
	return (struct vring_avail *)(bytes + AVAIL);
}

static struct vring_used *used(void)
{
	return (struct vring_used *)(bytes + USED);
}

static void setup(void)
{
	memset(bytes, 0, sizeof(bytes));
	memory = (struct vub_memory){
		.region[0] = {
			.guest_addr = BASE,
			.user_addr = 2 * BASE,
			.size = sizeof(bytes),
			.base = bytes,
		},
		.nr_regions = 1,
	};
	ring = (struct vub_ring){
		.nr = ENTRIES,
		.addr = { 2 * BASE + DESC, 2 * BASE + AVAIL, 2 * BASE + USED },
		.indirect = true,
		.event_idx = true,
	};
	tap_check(!vub_ring_map(&ring, &memory));
}

static void set_desc(unsigned int offset, unsigned int i, uint64_t addr,
		     uint32_t len, uint16_t flags, uint16_t next)
{
	struct vring_desc desc = {
		.addr = (__force __virtio64)addr,
		.len = (__force __virtio32)len,
		.flags = (__force __virtio16)flags,
		.next = (__force __virtio16)next,
	};

	*desc_at(offset, i) = desc;
}

static void offer(uint16_t head)
{
	uint16_t idx = (__force uint16_t)avail()->idx;

	avail()->ring[idx % ENTRIES] = (__force __virtio16)head;
	avail()->idx = (__force __virtio16)(uint16_t)(idx + 1);
}

static bool take(void)
{
	return vub_ring_take(&ring, &memory, &chain);
}

static void chains_are_walked(void)
{
	setup();
	tap_check(!take() && !ring.breach);
	set_desc(DESC, 3, 0x1234, 10, VRING_DESC_F_NEXT, 5);
	set_desc(DESC, 5, 0x5678, 20, VRING_DESC_F_NEXT | VRING_DESC_F_WRITE, 1);
	set_desc(DESC, 1, 0x9abc, 30, VRING_DESC_F_WRITE, 0);
	offer(3);
	tap_check(take());
	tap_check(chain.head == 3 && chain.nr == 3);
	tap_check(chain.nr_readable == 1 && chain.readable_bytes == 10);
	tap_check(chain.segment[2].addr == 0x9abc && chain.segment[2].len == 30);
	tap_check(ring.nr_taken == 1);
	tap_check(!take() && !ring.breach);
}

static void indirect_tables_are_walked(void)
{
	setup();
	set_desc(DESC, 0, BASE + TABLE, 32, VRING_DESC_F_INDIRECT, 0);
	set_desc(TABLE, 0, 0x1000, 1, VRING_DESC_F_NEXT, 1);
	set_desc(TABLE, 1, 0x2000, 2, 0, 0);
	offer(0);
	tap_check(take());
	tap_check(chain.nr == 2 && chain.readable_bytes == 3);
}

static bool breaks(enum vub_breach breach)
{
	return !take() && ring.breach == breach && !take();
}

static void breaches_are_found(void)
{
	setup();
	avail()->idx = (__force __virtio16)(uint16_t)(ENTRIES + 1);
	tap_check(breaks(VUB_BREACH_AVAIL));

	setup();
	offer(ENTRIES);
	tap_check(breaks(VUB_BREACH_HEAD));

	setup();
	set_desc(DESC, 0, 0, 1, VRING_DESC_F_NEXT, ENTRIES);
	offer(0);
	tap_check(breaks(VUB_BREACH_NEXT));

	setup();
	set_desc(DESC, 0, 0, 1, VRING_DESC_F_NEXT, 1);
	set_desc(DESC, 1, 0, 1, VRING_DESC_F_NEXT, 0);
	offer(0);
	tap_check(breaks(VUB_BREACH_LONG));

	setup();
	set_desc(DESC, 0, 0, 1, VRING_DESC_F_NEXT | VRING_DESC_F_WRITE, 1);
	set_desc(DESC, 1, 0, 1, 0, 0);
	offer(0);
	tap_check(breaks(VUB_BREACH_ORDER));
}

static void indirect_breaches_are_found(void)
{
	/* not negotiated */
	setup();
	ring.indirect = false;
	set_desc(DESC, 0, BASE + TABLE, 16, VRING_DESC_F_INDIRECT, 0);
	offer(0);
	tap_check(breaks(VUB_BREACH_INDIRECT));
	/* empty, and no whole number of descriptors */
	setup();
	set_desc(DESC, 0, BASE + TABLE, 0, VRING_DESC_F_INDIRECT, 0);
	offer(0);
	tap_check(breaks(VUB_BREACH_INDIRECT));
	setup();
	set_desc(DESC, 0, BASE + TABLE, 17, VRING_DESC_F_INDIRECT, 0);
	offer(0);
	tap_check(breaks(VUB_BREACH_INDIRECT));
	/* more than any chain may have */
	setup();
	set_desc(DESC, 0, BASE, 16 * (VUB_CHAIN_MAX + 1), VRING_DESC_F_INDIRECT, 0);
	offer(0);
	tap_check(breaks(VUB_BREACH_INDIRECT));
	/* a table in a table */
	setup();
	set_desc(DESC, 0, BASE + TABLE, 16, VRING_DESC_F_INDIRECT, 0);
	set_desc(TABLE, 0, BASE + TABLE, 16, VRING_DESC_F_INDIRECT, 0);
	offer(0);
	tap_check(breaks(VUB_BREACH_INDIRECT));
	/* outside guest memory, and at its end */
	setup();
	set_desc(DESC, 0, BASE - 16, 16, VRING_DESC_F_INDIRECT, 0);
	offer(0);
	tap_check(breaks(VUB_BREACH_MEMORY));
	setup();
	set_desc(DESC, 0, BASE + sizeof(bytes) - 16, 32, VRING_DESC_F_INDIRECT, 0);
	set_desc(sizeof(bytes) - 16, 0, 0, 1, VRING_DESC_F_NEXT, 1);
	offer(0);
	tap_check(breaks(VUB_BREACH_MEMORY));
	setup();
	set_desc(DESC, 0, UINT64_MAX - 8, 16, VRING_DESC_F_INDIRECT, 0);
	offer(0);
	tap_check(breaks(VUB_BREACH_INDIRECT));
}

/* A driver that offers a buffer again while the device has it gets nowhere. */
static void no_more_than_the_ring_is_taken(void)
{
	unsigned int i;

	setup();
	for (i = 0; i < ENTRIES; i++) {
		offer(0);
		tap_check(take());
	}
	offer(0);
	tap_check(breaks(VUB_BREACH_AVAIL));
}

static void indices_wrap(void)
{
	unsigned int i;

	setup();
	ring.last_avail = UINT16_MAX - 1;
	avail()->idx = (__force __virtio16)(uint16_t)(UINT16_MAX - 1);
	ring.next_used = UINT16_MAX - 1;
	for (i = 0; i < 5; i++) {
		offer(2);
		tap_check(take());
		vub_ring_give(&ring, 2, 0);
	}
	vub_ring_publish(&ring);
	tap_check((__force uint16_t)used()->idx == 3);
	tap_check(!ring.nr_taken);
}

static void give_one(void)
{
	offer(0);
	tap_check(take());
	vub_ring_give(&ring, 0, 0);
	vub_ring_publish(&ring);
}

static void calls_follow_the_event_index(void)
{
	setup();
	/* Call when the second one is there. */
	avail()->ring[ENTRIES] = (__force __virtio16)(uint16_t)1;
	give_one();
	tap_check(!vub_ring_wants_call(&ring));
	give_one();
	tap_check(vub_ring_wants_call(&ring));
	tap_check(!vub_ring_wants_call(&ring));
}

static void calls_follow_the_flag(void)
{
	setup();
	ring.event_idx = false;
	avail()->flags = (__force __virtio16)(uint16_t)VRING_AVAIL_F_NO_INTERRUPT;
	give_one();
	tap_check(!vub_ring_wants_call(&ring));
	avail()->flags = 0;
	give_one();
	tap_check(vub_ring_wants_call(&ring));
}

static void kicks_are_asked_for(void)
{
	setup();
	vub_ring_hush(&ring);
	give_one();
	give_one();
	tap_check(!vub_ring_listen(&ring));
	tap_check(*(uint16_t *)&used()->ring[ENTRIES] == 2);
	offer(0);
	tap_check(vub_ring_listen(&ring));

	setup();
	ring.event_idx = false;
	vub_ring_hush(&ring);
	tap_check((__force uint16_t)used()->flags == VRING_USED_F_NO_NOTIFY);
	tap_check(!vub_ring_listen(&ring));
	tap_check(!used()->flags);
}

static bool maps(uint64_t desc, uint64_t avail_addr, uint64_t used_addr)
{
	ring.addr = (struct vub_ring_addr){ desc, avail_addr, used_addr };
	return !vub_ring_map(&ring, &memory);
}

static void rings_lie_in_memory(void)
{
	const uint64_t start = 2 * BASE, end = start + sizeof(bytes);

	setup();
	tap_check(maps(start, start + AVAIL, start + USED));
	tap_check(!maps(start - 16, start + AVAIL, start + USED));
	tap_check(!ring.desc && !ring.avail && !ring.used);
	tap_check(!maps(end - 16, start + AVAIL, start + USED));
	tap_check(maps(end - 16 * ENTRIES, start + AVAIL, start + USED));
	tap_check(!maps(start, end - 6 - 2 * ENTRIES + 2, start + USED));
	tap_check(maps(start, end - 6 - 2 * ENTRIES, start + USED));
	tap_check(!maps(start, start + AVAIL, end - 4 - 8 * ENTRIES));
	tap_check(maps(start, start + AVAIL, end - 8 - 8 * ENTRIES));
	tap_check(!maps(start + 8, start + AVAIL, start + USED));
	tap_check(!maps(start, start + AVAIL + 1, start + USED));
	tap_check(!maps(start, start + AVAIL, start + USED + 2));
	tap_check(!maps(UINT64_MAX - 15, start + AVAIL, start + USED));
}

static const struct tap_test tests[] = {
	{ "chains are walked", chains_are_walked },
	{ "indirect tables are walked", indirect_tables_are_walked },
	{ "breaches are found", breaches_are_found },
	{ "breaches of indirect tables are found", indirect_breaches_are_found },
	{ "no more than the ring is taken", no_more_than_the_ring_is_taken },
	{ "indices wrap", indices_wrap },
	{ "calls follow the event index", calls_follow_the_event_index },
	{ "calls follow the flag", calls_follow_the_flag },
	{ "kicks are asked for", kicks_are_asked_for },
	{ "rings lie in memory", rings_lie_in_memory },
};

int main(void)
{
	return tap_run(tests, VUB_ARRAY_SIZE(tests));
}
