/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device's side of a split virtqueue (virtio specification, section 2.7).
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_RING_H
#define VUB_RING_H

#include <stdbool.h>
#include <stdint.h>
#include <linux/virtio_ring.h>

#include "memory.h"

/* The largest ring, and the longest chain of descriptors. */
#define VUB_RING_MAX	1024
#define VUB_CHAIN_MAX	1024

/**
 * enum vub_breach - a rule that a driver has broken; its ring is not served any more
 * @VUB_NO_BREACH: none
 * @VUB_BREACH_AVAIL: more buffers are announced than the ring has entries
 * @VUB_BREACH_HEAD: a buffer that begins outside the descriptor table
 * @VUB_BREACH_NEXT: a chain that leaves the table
 * @VUB_BREACH_LONG: a chain that is too long, or a loop
 * @VUB_BREACH_INDIRECT: an indirect table where none may be, or of a wrong size
 * @VUB_BREACH_ORDER: a readable descriptor after a writable one
 * @VUB_BREACH_MEMORY: a ring, or an indirect table, outside guest memory
 * @VUB_NR_BREACHES: how many kinds there are
 */
enum vub_breach {
	VUB_NO_BREACH,
	VUB_BREACH_AVAIL,
	VUB_BREACH_HEAD,
	VUB_BREACH_NEXT,
	VUB_BREACH_LONG,
	VUB_BREACH_INDIRECT,
	VUB_BREACH_ORDER,
	VUB_BREACH_MEMORY,
	VUB_NR_BREACHES
};

/**
 * struct vub_ring_addr - where a ring is, as the VMM sees it
 * @desc: descriptor table
 * @avail: what the driver offers
 * @used: what the device gives back
 */
struct vub_ring_addr {
	uint64_t desc;
	uint64_t avail;
	uint64_t used;
};

/**
 * struct vub_ring - a ring
 * @nr: entries, a power of two; 0 until the VMM says
 * @addr: where it is
 * @has_addr: the VMM has said that
 * @desc: descriptor table; NULL while the ring is not mapped
 * @avail: what the driver offers
 * @used: what the device gives back
 * @last_avail: the next entry of @avail to take
 * @next_used: the next entry of @used to fill
 * @published: @next_used as the driver knows it
 * @signalled: @published when the driver was last asked whether it wants to know
 * @nr_taken: buffers that were taken and not given back
 * @event_idx: the driver understands VIRTIO_RING_F_EVENT_IDX
 * @indirect: the driver may use indirect tables
 * @breach: why the ring is not served any more
 */
struct vub_ring {
	unsigned int nr;
	struct vub_ring_addr addr;
	bool has_addr;
	const struct vring_desc *desc;
	struct vring_avail *avail;
	struct vring_used *used;
	uint16_t last_avail;
	uint16_t next_used;
	uint16_t published;
	uint16_t signalled;
	unsigned int nr_taken;
	bool event_idx;
	bool indirect;
	enum vub_breach breach;
};

/**
 * struct vub_segment - a piece of a buffer
 * @addr: where it is, as the guest sees it; not checked
 * @len: bytes
 */
struct vub_segment {
	uint64_t addr;
	uint32_t len;
};

/**
 * struct vub_chain - a buffer, as a private copy
 * @head: the driver's name for it
 * @nr_readable: readable pieces, which come first
 * @nr: all pieces
 * @readable_bytes: sum of the readable pieces' lengths
 * @segment: the pieces
 */
struct vub_chain {
	uint16_t head;
	unsigned int nr_readable;
	unsigned int nr;
	uint64_t readable_bytes;
	struct vub_segment segment[VUB_CHAIN_MAX];
};

int vub_ring_map(struct vub_ring *ring, const struct vub_memory *memory);
void vub_ring_unmap(struct vub_ring *ring);
bool vub_ring_take(struct vub_ring *ring, const struct vub_memory *memory,
		   struct vub_chain *chain);
void vub_ring_give(struct vub_ring *ring, uint16_t head, uint32_t len);
void vub_ring_publish(struct vub_ring *ring);
bool vub_ring_wants_call(struct vub_ring *ring);
void vub_ring_hush(struct vub_ring *ring);
bool vub_ring_listen(struct vub_ring *ring);
void vub_ring_lie(struct vub_ring *ring, uint32_t id);

#endif /* VUB_RING_H */
