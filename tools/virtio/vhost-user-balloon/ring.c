// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device's side of a split virtqueue.
 *
 * The driver can change everything in a ring at any time. So each field is read
 * once, into a private copy, and checked there; chains have a bound, which also
 * ends loops. A driver that breaks a rule loses the ring.
 *
 * Copyright (C) the project's developers
 */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "ring.h"
#include "util.h"

static uint16_t vub_load16(const __virtio16 *field)
{
	return le16toh(__atomic_load_n((const uint16_t *)field,
				       __ATOMIC_ACQUIRE));
}

static void vub_store16(__virtio16 *field, uint16_t value)
{
	__atomic_store_n((uint16_t *)field, htole16(value), __ATOMIC_RELEASE);
}

/* Where the driver says at which used index it wants to be called. */
static const __virtio16 *vub_used_event(const struct vub_ring *ring)
{
	return &ring->avail->ring[ring->nr];
}

/* Where the device says at which avail index it wants to be kicked. */
static __virtio16 *vub_avail_event(struct vub_ring *ring)
{
	return (__virtio16 *)&ring->used->ring[ring->nr];
}

static bool vub_aligned(const void *ptr, uintptr_t align)
{
	return !((uintptr_t)ptr % align);
}

/**
 * vub_ring_map() - find a ring in guest memory
 * @ring: the ring, with size and addresses
 * @memory: guest memory
 *
 * Return: 0, or -EFAULT if some of it is elsewhere or not aligned.
 */
int vub_ring_map(struct vub_ring *ring, const struct vub_memory *memory)
{
	uint64_t nr = ring->nr;

	vub_ring_unmap(ring);
	/* Each index array is followed by one more field, the event index. */
	ring->avail = vub_memory_ring(memory, ring->addr.avail,
				      sizeof(struct vring_avail) +
				      (nr + 1) * sizeof(__virtio16));
	ring->used = vub_memory_ring(memory, ring->addr.used,
				     sizeof(struct vring_used) +
				     nr * sizeof(struct vring_used_elem) +
				     sizeof(__virtio16));
	ring->desc = vub_memory_ring(memory, ring->addr.desc,
				     nr * sizeof(struct vring_desc));
	if (!ring->avail || !ring->used || !ring->desc ||
	    !vub_aligned(ring->avail, VRING_AVAIL_ALIGN_SIZE) ||
	    !vub_aligned(ring->used, VRING_USED_ALIGN_SIZE) ||
	    !vub_aligned(ring->desc, VRING_DESC_ALIGN_SIZE)) {
		vub_ring_unmap(ring);
		return -EFAULT;
	}
	ring->next_used = vub_load16(&ring->used->idx);
	ring->published = ring->next_used;
	ring->signalled = ring->next_used;
	return 0;
}

/**
 * vub_ring_unmap() - leave a ring alone
 * @ring: the ring
 */
void vub_ring_unmap(struct vub_ring *ring)
{
	ring->desc = NULL;
	ring->avail = NULL;
	ring->used = NULL;
}

/* A descriptor in host byte order. */
struct vub_desc {
	uint64_t addr;
	uint32_t len;
	uint16_t flags;
	uint16_t next;
};

static void vub_desc_convert(const struct vring_desc *raw,
			     struct vub_desc *desc)
{
	desc->addr = le64toh((__force uint64_t)raw->addr);
	desc->len = le32toh((__force uint32_t)raw->len);
	desc->flags = le16toh((__force uint16_t)raw->flags);
	desc->next = le16toh((__force uint16_t)raw->next);
}

/* Read a descriptor once, whatever the compiler would like. */
static void vub_desc_load(const struct vring_desc *shared,
			  struct vring_desc *raw)
{
	const uint64_t *from = (const uint64_t *)shared;
	uint64_t half[2] = {
		__atomic_load_n(&from[0], __ATOMIC_RELAXED),
		__atomic_load_n(&from[1], __ATOMIC_RELAXED),
	};

	memcpy(raw, half, sizeof(*raw));
}

/**
 * struct vub_table - the descriptors that a chain runs through
 * @direct: the ring's own table; NULL for an indirect one
 * @addr: where the indirect one is, as the guest sees it
 * @nr: entries
 */
struct vub_table {
	const struct vring_desc *direct;
	uint64_t addr;
	unsigned int nr;
};

static enum vub_breach vub_table_read(const struct vub_table *table,
				      const struct vub_memory *memory,
				      unsigned int index, struct vub_desc *desc)
{
	struct vring_desc raw;

	if (index >= table->nr)
		return VUB_BREACH_NEXT;
	if (table->direct)
		vub_desc_load(table->direct + index, &raw);
	else if (!vub_memory_read(memory, table->addr + index * sizeof(raw),
				  &raw, sizeof(raw)))
		return VUB_BREACH_MEMORY;
	vub_desc_convert(&raw, desc);
	return VUB_NO_BREACH;
}

static enum vub_breach vub_chain_append(struct vub_chain *chain,
					const struct vub_desc *desc)
{
	if (chain->nr == VUB_CHAIN_MAX)
		return VUB_BREACH_LONG;
	if (!(desc->flags & VRING_DESC_F_WRITE)) {
		if (chain->nr_readable != chain->nr)
			return VUB_BREACH_ORDER;
		chain->nr_readable++;
		chain->readable_bytes += desc->len;
	}
	chain->segment[chain->nr].addr = desc->addr;
	chain->segment[chain->nr].len = desc->len;
	chain->nr++;
	return VUB_NO_BREACH;
}

/* Turn to the indirect table that a descriptor stands for. */
static enum vub_breach vub_table_enter(const struct vub_ring *ring,
				       struct vub_table *table,
				       const struct vub_desc *desc)
{
	if (!ring->indirect || !table->direct ||
	    desc->flags & VRING_DESC_F_NEXT || !desc->len ||
	    desc->len % sizeof(struct vring_desc) ||
	    desc->len / sizeof(struct vring_desc) > VUB_CHAIN_MAX ||
	    desc->addr > UINT64_MAX - desc->len)
		return VUB_BREACH_INDIRECT;
	table->direct = NULL;
	table->addr = desc->addr;
	table->nr = desc->len / sizeof(struct vring_desc);
	return VUB_NO_BREACH;
}

static enum vub_breach vub_chain_walk(const struct vub_ring *ring,
				      const struct vub_memory *memory,
				      struct vub_chain *chain)
{
	struct vub_table table = { .direct = ring->desc, .nr = ring->nr };
	unsigned int index = chain->head;
	enum vub_breach breach;
	struct vub_desc desc;

	for (;;) {
		breach = vub_table_read(&table, memory, index, &desc);
		if (breach)
			return breach;
		if (desc.flags & VRING_DESC_F_INDIRECT) {
			breach = vub_table_enter(ring, &table, &desc);
			if (breach)
				return breach;
			index = 0;
			continue;
		}
		breach = vub_chain_append(chain, &desc);
		if (breach || !(desc.flags & VRING_DESC_F_NEXT))
			return breach;
		index = desc.next;
	}
}

/**
 * vub_ring_take() - take the next buffer that the driver offers
 * @ring: the ring, mapped
 * @memory: guest memory
 * @chain: where its description goes
 *
 * Return: false if there is none, or if the driver has broken a rule: see
 * @ring->breach.
 */
bool vub_ring_take(struct vub_ring *ring, const struct vub_memory *memory,
		   struct vub_chain *chain)
{
	uint16_t offered = vub_load16(&ring->avail->idx) - ring->last_avail;

	if (ring->breach || !offered)
		return false;
	if (offered > ring->nr || ring->nr_taken >= ring->nr) {
		ring->breach = VUB_BREACH_AVAIL;
		return false;
	}
	chain->head = vub_load16(&ring->avail->ring[ring->last_avail %
						    ring->nr]);
	chain->nr = 0;
	chain->nr_readable = 0;
	chain->readable_bytes = 0;
	if (chain->head >= ring->nr)
		ring->breach = VUB_BREACH_HEAD;
	else
		ring->breach = vub_chain_walk(ring, memory, chain);
	if (ring->breach)
		return false;
	ring->last_avail++;
	ring->nr_taken++;
	return true;
}

static void vub_ring_fill(struct vub_ring *ring, uint32_t id, uint32_t len)
{
	struct vring_used_elem *elem;

	elem = &ring->used->ring[ring->next_used % ring->nr];
	elem->id = (__force __virtio32)htole32(id);
	elem->len = (__force __virtio32)htole32(len);
	ring->next_used++;
}

/**
 * vub_ring_give() - give a buffer back
 * @ring: the ring, mapped
 * @head: the driver's name for it
 * @len: bytes that were written to it
 *
 * The driver does not see it before vub_ring_publish().
 */
void vub_ring_give(struct vub_ring *ring, uint16_t head, uint32_t len)
{
	vub_ring_fill(ring, head, len);
	if (ring->nr_taken)
		ring->nr_taken--;
}

/**
 * vub_ring_publish() - show the driver what was given back
 * @ring: the ring, mapped
 */
void vub_ring_publish(struct vub_ring *ring)
{
	ring->published = ring->next_used;
	vub_store16(&ring->used->idx, ring->published);
}

/**
 * vub_ring_wants_call() - whether the driver wants to hear of it
 * @ring: the ring, mapped; vub_ring_publish() was called
 *
 * Return: true if it does.
 */
bool vub_ring_wants_call(struct vub_ring *ring)
{
	uint16_t old = ring->signalled;

	if (ring->published == old)
		return false;
	/* The index must be out before the driver's wish is read. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	ring->signalled = ring->published;
	if (!ring->event_idx)
		return !(vub_load16(&ring->avail->flags) &
			 VRING_AVAIL_F_NO_INTERRUPT);
	return vring_need_event(vub_load16(vub_used_event(ring)),
				ring->published, old);
}

/**
 * vub_ring_hush() - ask for no kicks: the ring is being looked at
 * @ring: the ring, mapped
 *
 * With event indices there are none until vub_ring_listen() asks for one.
 */
void vub_ring_hush(struct vub_ring *ring)
{
	if (!ring->event_idx)
		vub_store16(&ring->used->flags, VRING_USED_F_NO_NOTIFY);
}

/**
 * vub_ring_listen() - ask for a kick with the next buffer
 * @ring: the ring, mapped
 *
 * Return: true if there is a buffer already, for which no kick may come.
 */
bool vub_ring_listen(struct vub_ring *ring)
{
	if (ring->event_idx)
		vub_store16(vub_avail_event(ring), ring->last_avail);
	else
		vub_store16(&ring->used->flags, 0);
	/* The wish must be out before the index is looked at once more. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	return vub_load16(&ring->avail->idx) != ring->last_avail;
}

/**
 * vub_ring_lie() - give back what was never taken, for tests of drivers
 * @ring: the ring, mapped
 * @id: name of a buffer, of any value
 */
void vub_ring_lie(struct vub_ring *ring, uint32_t id)
{
	vub_ring_fill(ring, id, 0);
	vub_ring_publish(ring);
}
