// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The transfer engine: slots, and the queues that carry them.
 *
 * A slot is 4 KiB of payload. It goes out as one buffer of bitmap windows, as up to
 * VB_SLOT_PARTS buffers of PFNs, or as one buffer that is the pages themselves, and is
 * done when the host has answered each of them, in whatever order. What names pages is
 * written as they are added.
 *
 * Slots go out in batches, with one notification each. With PFN arrays and ranges
 * a batch only begins when the one before is answered. The next one is prepared
 * meanwhile, but were it in the ring already, a host that serves a queue until it is
 * empty would do nothing else before the resize is over: QEMU would not even hear its
 * operator. Hosts with the page bitmap take a batch at a time, so there the window,
 * once it has grown, is two batches or more, and neither side waits for the other.
 *
 * Slots are allocated as the window grows and freed when the balloon rests; one
 * a queue always stays, and so does room for it in the rings of inflateq and deflateq,
 * so that no path under memory pressure allocates or waits.
 *
 * Copyright (C) the project's developers
 */
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/slab.h>
#include <trace/events/virtio_balloon.h>

#include "balloon.h"
#include "policy.h"

/* A host may take so long for one answer while the device shuts down. */
#define VB_DRAIN_PATIENCE	HZ
/* Nothing tells a waiter that a queue broke: it looks so often. */
#define VB_DRAIN_POLL		(HZ / 10 ?: 1)

static unsigned int vb_bitmap_slots = VB_BITMAP_SLOTS;
module_param_named(page_bitmap_slots, vb_bitmap_slots, uint, 0444);
MODULE_PARM_DESC(page_bitmap_slots,
		 "Most buffers of bitmap windows in flight, 4 KiB each: from 1 to 128, the default");

static struct vb_slot *vb_slot_alloc(gfp_t gfp)
{
	struct vb_slot *slot;

	gfp |= __GFP_NORETRY | __GFP_NOWARN;
	slot = kzalloc(sizeof(*slot), gfp);
	if (!slot)
		return NULL;
	slot->payload = kmalloc(VB_SLOT_BYTES, gfp);
	if (!slot->payload) {
		kfree(slot);
		return NULL;
	}
	INIT_LIST_HEAD(&slot->chunks);
	return slot;
}

static void vb_slot_free(struct vb_slot *slot)
{
	if (slot)
		kfree(slot->payload);
	kfree(slot);
}

/**
 * vb_queue_init() - make a queue that has no virtqueue yet
 * @vb: the balloon
 * @q: the queue
 * @done: what happens to a slot that the host has answered
 *
 * Return: 0, or -ENOMEM.
 */
int vb_queue_init(struct vb *vb, struct vb_queue *q,
		  void (*done)(struct vb *vb, struct vb_slot *slot))
{
	q->vb = vb;
	q->done = done;
	INIT_LIST_HEAD(&q->free);
	q->reserve = vb_slot_alloc(GFP_KERNEL);
	return q->reserve ? 0 : -ENOMEM;
}

/**
 * vb_queue_destroy() - free a queue whose virtqueue is detached
 * @q: the queue; one that vb_queue_init() never saw is fine
 */
void vb_queue_destroy(struct vb_queue *q)
{
	if (!q->vb)
		return;
	vb_queue_trim(q);
	vb_slot_free(q->reserve);
	q->reserve = NULL;
}

/**
 * vb_queue_attach() - start using a virtqueue
 * @q: the queue
 * @vq: its virtqueue, empty
 * @codec: how it names pages
 */
void vb_queue_attach(struct vb_queue *q, struct virtqueue *vq,
		     enum vb_codec codec)
{
	unsigned int ring = virtqueue_get_vring_size(vq);

	spin_lock(&q->vb->lock);
	q->vq = vq;
	q->codec = codec;
	switch (codec) {
	case VB_CODEC_PFNS:
		q->entries = vb_window_limit(ring, VB_SLOT_PARTS, VB_WINDOW_MAX);
		q->parts = min(VB_SLOT_PARTS, q->entries);
		q->limit = q->entries;
		break;
	case VB_CODEC_BITMAP:
		q->parts = 1;
		q->entries = vb_window_limit(ring, q->parts,
					     clamp(vb_bitmap_slots, 1u,
						   VB_BITMAP_SLOTS));
		q->limit = vb_window_most(vb_total_ram(q->vb));
		break;
	case VB_CODEC_RANGES:
		q->entries = ring;
		q->parts = min(VB_SLOT_RANGES, ring);
		q->limit = VB_WINDOW_MAX_RANGES;
		break;
	}
	q->floor = min(VB_SLOT_PARTS, q->limit);
	q->window = q->floor;
	q->nr_wanted = 1;
	spin_unlock(&q->vb->lock);
}

/**
 * vb_queue_detach() - stop using a virtqueue whose device was reset
 * @q: the queue
 *
 * The device cannot touch what was in flight any more. Those chunks end up on
 * vb->held: the host's word about them is void.
 */
void vb_queue_detach(struct vb_queue *q)
{
	struct vb *vb = q->vb;
	enum vb_state state = q == &vb->deflate ? VB_RETURNING : VB_IN_FLIGHT;
	struct vb_slot *slot;

	spin_lock(&vb->lock);
	while (q->vq && (slot = virtqueue_detach_unused_buf(q->vq))) {
		if (slot->waited || --slot->parts_left)
			continue;
		if (slot->moved) {
			q->done(vb, slot);
		} else if (!list_empty(&slot->chunks)) {
			vb->nr[state] -= slot->nr_pages;
			vb->nr[VB_HELD] += slot->nr_pages;
			list_splice_init(&slot->chunks, &vb->held);
			/* The page that this one was to replace has left. */
			if (slot->migration) {
				vb->nr_moving--;
				count_vm_event(BALLOON_DEFLATE);
			}
		}
		vb_slot_put(q, slot);
	}
	q->vq = NULL;
	q->load = 0;
	q->unkicked_load = 0;
	q->in_flight = 0;
	q->in_batch = 0;
	q->unkicked = 0;
	spin_unlock(&vb->lock);
}

/**
 * vb_queue_grow() - have more slots
 * @q: the queue
 * @nr_slots: how many there are to be, besides the reserve
 * @gfp: how hard to try
 *
 * Without memory the queue makes do with what it has.
 */
void vb_queue_grow(struct vb_queue *q, unsigned int nr_slots, gfp_t gfp)
{
	struct vb_slot *slot;

	while (READ_ONCE(q->nr_slots) < nr_slots) {
		slot = vb_slot_alloc(gfp);
		if (!slot)
			return;
		spin_lock(&q->vb->lock);
		list_add(&slot->node, &q->free);
		q->nr_slots++;
		spin_unlock(&q->vb->lock);
	}
}

/**
 * vb_queue_trim() - keep nothing but the reserve
 * @q: the queue
 */
void vb_queue_trim(struct vb_queue *q)
{
	struct vb_slot *slot, *next;
	LIST_HEAD(idle);

	spin_lock(&q->vb->lock);
	list_splice_init(&q->free, &idle);
	list_for_each_entry(slot, &idle, node)
		q->nr_slots--;
	q->nr_wanted = 1;
	spin_unlock(&q->vb->lock);

	list_for_each_entry_safe(slot, next, &idle, node)
		vb_slot_free(slot);
}

/* Portions that so many ring entries can name. */
static unsigned int vb_ring_portions(const struct vb_queue *q,
				     unsigned int nr_free)
{
	if (q->codec != VB_CODEC_PFNS)
		return nr_free ? q->limit : 0;
	return min(nr_free, VB_SLOT_PARTS);
}

/* Slots that a batch may ever have. */
static unsigned int vb_most_slots(const struct vb_queue *q)
{
	/* A step fills a slot with a few ranges, not with as many as it can have. */
	if (q->codec == VB_CODEC_RANGES)
		return min(q->entries, VB_RANGE_SLOTS);
	return q->entries / q->parts;
}

/**
 * vb_queue_batch() - how much goes out at once
 * @q: the queue
 *
 * Return: portions that a batch may have now.
 */
unsigned int vb_queue_batch(const struct vb_queue *q)
{
	return vb_queue_pipelines(q) ? vb_pipeline_batch(q->window, q->floor) :
				       q->window;
}

/* Portions that the batch at hand may still have in the ring. */
static unsigned int vb_batch_room(const struct vb_queue *q)
{
	unsigned int batch = vb_queue_batch(q);
	bool is_out = q->in_flight != q->unkicked;

	if (q->in_flight >= q->entries || q->load >= q->window ||
	    q->unkicked_load >= batch || (is_out && !vb_queue_pipelines(q)))
		return 0;
	return min3(vb_ring_portions(q, q->vq->num_free), q->window - q->load,
		    batch - q->unkicked_load);
}

/* Portions that a use may put into one slot now, if that is enough for it. */
static unsigned int vb_ring_room(const struct vb_queue *q, enum vb_use use)
{
	unsigned int nr_free = q->vq->num_free, room;

	switch (use) {
	case VB_USE_BATCH:
		/* Less than a whole slot would make large chunks go to pieces. */
		room = vb_batch_room(q);
		return room < q->floor ? 0 : room;
	case VB_USE_MOVE:
		nr_free = nr_free > q->parts ? nr_free - q->parts : 0;
		break;
	case VB_USE_OOM:
		break;
	}
	return vb_ring_portions(q, nr_free);
}

/**
 * vb_queue_has_room() - whether the batch at hand may have more
 * @q: the queue, locked
 *
 * Return: false if it is full, on its way, or the queue is of no use.
 */
bool vb_queue_has_room(const struct vb_queue *q)
{
	lockdep_assert_held(&q->vb->lock);

	return q->vq && !virtqueue_is_broken(q->vq) &&
	       vb_ring_room(q, VB_USE_BATCH);
}

/**
 * vb_slot_get() - get a slot to fill
 * @q: the queue, locked
 * @use: what for
 *
 * Return: a slot with at least one page of room, or NULL: the batch is full or
 * on its way, what is left is for others, or the queue has no virtqueue.
 */
struct vb_slot *vb_slot_get(struct vb_queue *q, enum vb_use use)
{
	struct vb_slot *slot;
	unsigned int room;

	lockdep_assert_held(&q->vb->lock);

	if (!q->vq || virtqueue_is_broken(q->vq))
		return NULL;
	room = vb_ring_room(q, use);
	if (!room)
		return NULL;

	slot = list_first_entry_or_null(&q->free, struct vb_slot, node);
	if (slot) {
		list_del(&slot->node);
	} else if (use == VB_USE_OOM || (use == VB_USE_BATCH && !q->nr_slots)) {
		slot = q->reserve;
		q->reserve = NULL;
	} else if (use == VB_USE_BATCH) {
		/* The next batch is to have twice as many. */
		q->nr_wanted = min(2 * q->nr_wanted, vb_most_slots(q));
	}
	if (!slot)
		return NULL;
	slot->max_pages = room * (VB_PFNS_PER_BUFFER / VB_PFNS_PER_PAGE);
	slot->len = 0;
	slot->nr_ranges = 0;
	slot->max_ranges = min(q->vq->num_free, VB_SLOT_RANGES);
	if (q->codec == VB_CODEC_RANGES)
		sg_init_table(slot->payload, VB_SLOT_RANGES);
	else
		vb_bitmap_begin(&slot->map, slot->payload, VB_SLOT_BYTES,
				&q->density);
	return slot;
}

/**
 * vb_slot_put() - give a slot back whose chunks have gone elsewhere
 * @q: the queue, locked
 * @slot: the slot
 */
void vb_slot_put(struct vb_queue *q, struct vb_slot *slot)
{
	lockdep_assert_held(&q->vb->lock);

	slot->nr_pages = 0;
	slot->moved = NULL;
	slot->migration = false;
	if (q->reserve)
		list_add(&slot->node, &q->free);
	else
		q->reserve = slot;
}

/*
 * Neighbours stay apart: a report of free pages has no entry that is more than a block,
 * and hosts may count on that where one piece of guest memory ends.
 */
static bool vb_slot_name_range(struct vb_slot *slot, unsigned long pfn,
			       unsigned long nr_pages)
{
	struct scatterlist *sg = slot->payload;

	if (slot->nr_ranges == slot->max_ranges)
		return false;
	sg_set_page(sg + slot->nr_ranges++, pfn_to_page(pfn),
		    nr_pages << PAGE_SHIFT, 0);
	return true;
}

/**
 * vb_slot_name() - have a slot name a block
 * @q: the queue
 * @slot: the slot, as vb_slot_get() gave it
 * @page: first page of the block
 * @order: its order
 *
 * Return: false if there is no room for it.
 */
bool vb_slot_name(struct vb_queue *q, struct vb_slot *slot,
		  const struct page *page, unsigned int order)
{
	unsigned long pfn = page_to_pfn(page), nr_pages = 1ul << order;
	unsigned int shift = PAGE_SHIFT - VIRTIO_BALLOON_PFN_SHIFT;

	if (slot->nr_pages + nr_pages > slot->max_pages)
		return false;
	switch (q->codec) {
	case VB_CODEC_PFNS:
		slot->len += sizeof(__virtio32) *
			vb_encode_pfns(slot->payload + slot->len,
				       virtio_is_little_endian(q->vb->vdev),
				       pfn, nr_pages);
		break;
	case VB_CODEC_BITMAP:
		if (!vb_bitmap_add(&slot->map, (u64)pfn << shift, order + shift))
			return false;
		break;
	case VB_CODEC_RANGES:
		if (!vb_slot_name_range(slot, pfn, nr_pages))
			return false;
		break;
	}
	slot->nr_pages += nr_pages;
	return true;
}

/**
 * vb_slot_add() - put a chunk into a slot
 * @q: the queue
 * @slot: the slot
 * @page: the chunk, on a list that it leaves
 *
 * Return: false if there is no room for it; then it stays where it is.
 */
bool vb_slot_add(struct vb_queue *q, struct vb_slot *slot, struct page *page)
{
	if (!vb_slot_name(q, slot, page, vb_chunk_order(page)))
		return false;
	list_move_tail(&page->lru, &slot->chunks);
	return true;
}

static bool vb_slot_in_batch(const struct vb_slot *slot)
{
	return !slot->moved && !slot->migration;
}

/* One more buffer of a slot is in the ring. */
static void vb_slot_sent(struct vb_queue *q, struct vb_slot *slot)
{
	if (!q->in_flight)
		q->stalled_since = jiffies;
	slot->parts_left++;
	q->in_flight++;
	q->in_batch += vb_slot_in_batch(slot);
	q->unkicked++;
	q->nr_buffers++;
}

/* Put bytes into the ring, in buffers of at most so many. */
static int vb_queue_submit_bytes(struct vb_queue *q, struct vb_slot *slot,
				 unsigned int total, unsigned int most)
{
	unsigned int len, sent;
	struct scatterlist sg;
	int err;

	for (sent = 0; sent < total; sent += len) {
		len = min(total - sent, most);
		sg_init_one(&sg, slot->payload + sent, len);
		err = virtqueue_add_outbuf(q->vq, &sg, 1, slot, GFP_ATOMIC);
		if (err)
			return err;
		vb_slot_sent(q, slot);
		q->longest = max(q->longest, len);
	}
	return 0;
}

/**
 * vb_queue_submit_ranges() - put memory itself into the ring, as one buffer
 * @q: the queue, locked
 * @slot: its token
 * @sg: the memory
 * @nents: entries of @sg, no more than the ring has free
 *
 * The host is not notified yet, see vb_queue_kick().
 *
 * Return: 0, or the error of a broken queue; then nothing went out.
 */
int vb_queue_submit_ranges(struct vb_queue *q, struct vb_slot *slot,
			   struct scatterlist *sg, unsigned int nents)
{
	struct scatterlist *last = sg + nents - 1;
	bool was_end = sg_is_last(last);
	int err;

	lockdep_assert_held(&q->vb->lock);

	sg_mark_end(last);
	err = virtqueue_add_inbuf(q->vq, sg, nents, slot, GFP_ATOMIC);
	if (!was_end)
		sg_unmark_end(last);
	if (!err)
		vb_slot_sent(q, slot);
	return err;
}

/**
 * vb_queue_submit() - put a slot's buffers into the ring
 * @q: the queue, locked
 * @slot: a slot with at least one chunk
 *
 * The host is not notified yet, see vb_queue_kick().
 *
 * Return: 0, or the error of a broken queue; then nothing went out.
 */
int vb_queue_submit(struct vb_queue *q, struct vb_slot *slot)
{
	int err = 0;

	lockdep_assert_held(&q->vb->lock);

	slot->parts_left = 0;
	slot->load = DIV_ROUND_UP(slot->nr_pages * VB_PFNS_PER_PAGE,
				  VB_PFNS_PER_BUFFER);
	switch (q->codec) {
	case VB_CODEC_PFNS:
		err = vb_queue_submit_bytes(q, slot, slot->len,
					    VB_PFNS_PER_BUFFER *
					    sizeof(__virtio32));
		break;
	case VB_CODEC_BITMAP:
		err = vb_queue_submit_bytes(q, slot, vb_bitmap_end(&slot->map),
					    VB_SLOT_BYTES);
		break;
	case VB_CODEC_RANGES:
		err = vb_queue_submit_ranges(q, slot, slot->payload,
					     slot->nr_ranges);
		break;
	}
	if (slot->parts_left) {
		q->load += slot->load;
		q->unkicked_load += slot->load;
		q->nr_pages += slot->nr_pages;
	}
	if (!err)
		return 0;

	/*
	 * The ring had room. With a part of the slot out nobody can say what
	 * the host believes any more, so the device is given up as a whole.
	 */
	virtio_break_device(q->vb->vdev);
	return slot->parts_left ? 0 : err;
}

/**
 * vb_queue_kick() - send the batch off
 * @q: the queue, locked
 */
void vb_queue_kick(struct vb_queue *q)
{
	lockdep_assert_held(&q->vb->lock);

	if (!q->unkicked)
		return;
	trace_virtio_balloon_batch(q->vb->vdev, q->vq->index, q->unkicked,
				   q->in_flight);
	if (virtqueue_kick_prepare(q->vq)) {
		virtqueue_notify(q->vq);
		q->nr_kicks++;
	}
	q->unkicked = 0;
	q->unkicked_load = 0;
}

/**
 * vb_queue_kick_full() - send the batch off if nothing more goes into it
 * @q: the queue, locked
 */
void vb_queue_kick_full(struct vb_queue *q)
{
	if (!vb_queue_has_room(q))
		vb_queue_kick(q);
}

/**
 * vb_queue_reap() - take the host's answers
 * @q: the queue, locked
 *
 * Where several batches are out, only VB_BATCH_MAX portions or so of them; with more,
 * vb_queue_rearm() says that there are.
 *
 * Return: how many buffers came back.
 */
unsigned int vb_queue_reap(struct vb_queue *q)
{
	unsigned int len, nr_done = 0, load = 0;
	struct vb_slot *slot;

	lockdep_assert_held(&q->vb->lock);

	if (!q->vq)
		return 0;
	virtqueue_disable_cb(q->vq);
	while ((load < VB_BATCH_MAX || !vb_queue_pipelines(q)) &&
	       (slot = virtqueue_get_buf(q->vq, &len))) {
		nr_done++;
		q->in_flight--;
		q->in_batch -= vb_slot_in_batch(slot);
		if (--slot->parts_left || slot->waited)
			continue;
		load += slot->load;
		q->done(q->vb, slot);
		vb_slot_put(q, slot);
	}
	if (nr_done) {
		q->load -= load;
		/* A host need not wait until it is notified. */
		q->unkicked = min(q->unkicked, q->in_flight);
		q->unkicked_load = min(q->unkicked_load, q->load);
		if (time_before(jiffies, q->stalled_since + HZ))
			q->window = vb_window_grow(q->window, load, q->limit);
		q->stalled_since = jiffies;
		clear_bit(VB_SILENT, &q->vb->flags);
	}
	return nr_done;
}

/**
 * vb_queue_broken() - whether the host has broken the queue
 * @q: the queue, locked
 *
 * Return: true if it has; nothing will ever be answered then.
 */
bool vb_queue_broken(struct vb_queue *q)
{
	lockdep_assert_held(&q->vb->lock);

	return q->vq && virtqueue_is_broken(q->vq);
}

/**
 * vb_queue_rearm() - ask for an interrupt when a batch was answered, or most of it
 * @q: the queue, locked
 *
 * Return: false if answers came meanwhile: reap again.
 */
bool vb_queue_rearm(struct vb_queue *q)
{
	lockdep_assert_held(&q->vb->lock);

	if (!q->in_flight || vb_queue_broken(q))
		return true;
	/* By the time that most of all batches are answered the host would be idle. */
	return vb_queue_pipelines(q) ? virtqueue_enable_cb(q->vq) :
				       virtqueue_enable_cb_delayed(q->vq);
}

/**
 * vb_queue_take_answers() - take the host's answers, and ask for an interrupt for more
 * @q: the queue, locked
 *
 * Return: how many buffers came back.
 */
unsigned int vb_queue_take_answers(struct vb_queue *q)
{
	unsigned int nr_done = 0;

	do {
		nr_done += vb_queue_reap(q);
	} while (!vb_queue_rearm(q));
	return nr_done;
}

static bool vb_queue_answered(struct vb_queue *q, unsigned int *nr_done,
			      bool *broken)
{
	bool awake;

	spin_lock(&q->vb->lock);
	*nr_done = vb_queue_reap(q);
	*broken = vb_queue_broken(q);
	awake = !vb_queue_rearm(q) || *nr_done || !q->in_flight || *broken;
	spin_unlock(&q->vb->lock);
	return awake;
}

/**
 * vb_queue_drain() - wait for the host to answer everything
 * @q: the queue
 * @until: jiffies at which to give up even on a host that answers
 *
 * Context: process context, sleeps.
 * Return: true if nothing is in flight any more; false if the host said nothing
 * for a second, was too slow, or broke the queue.
 */
bool vb_queue_drain(struct vb_queue *q, unsigned long until)
{
	unsigned long patience = jiffies + VB_DRAIN_PATIENCE;
	unsigned int nr_done;
	bool broken;

	spin_lock(&q->vb->lock);
	vb_queue_kick(q);
	broken = vb_queue_broken(q);
	spin_unlock(&q->vb->lock);

	while (READ_ONCE(q->in_flight) && !broken) {
		if (time_after(jiffies, patience) || time_after(jiffies, until))
			return false;
		wait_event_timeout(q->vb->acked,
				   vb_queue_answered(q, &nr_done, &broken),
				   VB_DRAIN_POLL);
		if (nr_done)
			patience = jiffies + VB_DRAIN_PATIENCE;
	}
	return !broken;
}
