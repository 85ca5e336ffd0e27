// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Buffers that name memory, worked on together: gathered, merged, released.
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>

#include "device.h"
#include "util.h"

/*
 * A batch ends when so much was read for it or it has so many runs, whatever the
 * ring has: that bounds the time for it, and our memory.
 */
#define VUB_BATCH_READ		(UINT64_C(1) << 20)
#define VUB_BATCH_RUNS		65536

static void vub_batch_memory_short(void)
{
	vub_peer_warn("out of memory: pages that the guest named are not released");
}

static enum vub_reject vub_gather_pfns(struct vub_device *dev,
				       struct vub_batch *batch,
				       struct vub_decoded *decoded)
{
	enum vub_reject reject = VUB_ACCEPT;
	size_t len = dev->chain.readable_bytes;
	int err;

	if (vub_acked(dev, VIRTIO_BALLOON_F_PAGE_BITMAP)) {
		err = vub_decode_bitmap(dev->payload, len, &dev->memory.runs,
					&batch->runs, decoded, &reject);
	} else {
		if (!len || len % sizeof(uint32_t))
			return VUB_REJECT_LENGTH;
		err = vub_decode_pfns(dev->payload, len, &dev->memory.runs,
				      &batch->runs, decoded,
				      &dev->nr_rejects[VUB_REJECT_PFN]);
	}
	if (err)
		vub_batch_memory_short();
	return reject;
}

/* A free block that the driver reports is the buffer itself. */
static enum vub_reject vub_gather_blocks(struct vub_device *dev,
					 struct vub_batch *batch,
					 struct vub_decoded *decoded)
{
	const struct vub_chain *chain = &dev->chain;
	unsigned int i;

	if (chain->nr_readable)
		return VUB_REJECT_DIRECTION;
	for (i = 0; i < chain->nr; i++) {
		uint64_t addr = chain->segment[i].addr;
		uint64_t len = chain->segment[i].len;

		if (addr % VUB_PFN_BYTES || len % VUB_PFN_BYTES || !len)
			return VUB_REJECT_LENGTH;
		if (!vub_memory_has(&dev->memory, addr, len))
			return VUB_REJECT_ADDRESS;
	}
	for (i = 0; i < chain->nr; i++) {
		uint64_t start = chain->segment[i].addr >> VUB_PFN_SHIFT;
		uint64_t nr_pfns = chain->segment[i].len >> VUB_PFN_SHIFT;

		decoded->nr_pfns += nr_pfns;
		if (vub_runs_add(&batch->runs, start, start + nr_pfns))
			vub_batch_memory_short();
	}
	return VUB_ACCEPT;
}

static void vub_gather_one(struct vub_device *dev, struct vub_batch *batch)
{
	enum vub_role role = batch->queue->role;
	struct vub_decoded *decoded = &dev->traffic[role].decoded;
	enum vub_reject reject;

	batch->head[batch->nr++] = dev->chain.head;
	/* What is wrong with a buffer may be found out after reading it all. */
	batch->nr_read += dev->chain.nr * sizeof(struct vring_desc) +
			  vub_min(dev->chain.readable_bytes, VUB_MAX_PAYLOAD);
	if (role == VUB_REPORT) {
		reject = vub_gather_blocks(dev, batch, decoded);
	} else {
		reject = vub_payload_copy(dev);
		if (reject == VUB_ACCEPT)
			reject = vub_gather_pfns(dev, batch, decoded);
	}
	vub_reject(dev, reject);
}

static void vub_batch_gather(struct vub_device *dev, struct vub_batch *batch)
{
	while (batch->nr < VUB_RING_MAX &&
	       batch->nr_read < VUB_BATCH_READ &&
	       batch->runs.nr < VUB_BATCH_RUNS && vub_queue_take(batch->queue))
		vub_gather_one(dev, batch);
}

/**
 * vub_batch_start() - gather and merge what a queue has
 * @batch: the batch, which is empty
 * @queue: the queue, ready
 *
 * The batch stays empty if there is nothing.
 */
void vub_batch_start(struct vub_batch *batch, struct vub_queue *queue)
{
	struct vub_device *dev = queue->dev;
	struct vub_traffic *traffic = &dev->traffic[queue->role];
	uint64_t start = vub_now(), gathered;
	const struct vub_run *run;
	size_t i;

	batch->queue = queue;
	batch->nr = 0;
	batch->nr_read = 0;
	batch->cursor = (struct vub_cursor){ 0 };
	vub_runs_clear(&batch->runs);

	vub_ring_hush(&queue->ring);
	vub_batch_gather(dev, batch);
	gathered = vub_now();
	vub_runs_merge(&batch->runs);

	traffic->decode_ns += gathered - start;
	traffic->translate_ns += vub_now() - gathered;
	traffic->nr_buffers += batch->nr;
	traffic->nr_batches += !!batch->nr;
	traffic->nr_runs += batch->runs.nr;
	for (i = 0; i < batch->runs.nr; i++) {
		run = &batch->runs.run[i];
		vub_bucket_count(traffic->run_pfns, run->end - run->start);
	}
	if (!batch->nr) {
		vub_queue_settle(queue);
		batch->queue = NULL;
	}
}

/* Reported pages are zeroes afterwards; poisoned ones must not be that. */
static bool vub_batch_poisoned(const struct vub_device *dev, enum vub_role role)
{
	return role == VUB_REPORT &&
	       vub_acked(dev, VIRTIO_BALLOON_F_PAGE_POISON) &&
	       dev->config.poison_val;
}

static void vub_batch_piece(struct vub_device *dev, struct vub_piece *piece)
{
	char *memory = piece->region->base + piece->offset;
	enum vub_role role = dev->batch.queue->role;

	if (role == VUB_DEFLATE)
		vub_fill_check(&dev->fill, memory, piece->size);
	else if (vub_batch_poisoned(dev, role))
		dev->nr_poisoned += piece->size >> VUB_PFN_SHIFT;
	else if (dev->fill.on)
		vub_fill_pages(&dev->fill, memory, piece->size);
	else
		vub_release_piece(&dev->release, piece);
}

/* Release until the deadline; true when there is nothing left. */
static bool vub_batch_release(struct vub_device *dev, uint64_t deadline)
{
	uint64_t most = vub_release_most(&dev->release);
	struct vub_batch *batch = &dev->batch;
	struct vub_piece piece;

	/* What is taken back needs nothing, and comes back as it is touched. */
	if (batch->queue->role == VUB_DEFLATE && !dev->fill.on)
		return true;
	while (vub_piece_next(&dev->memory, &batch->runs, &batch->cursor, most,
			      &piece)) {
		vub_batch_piece(dev, &piece);
		if (vub_now() > deadline)
			return false;
	}
	return true;
}

/**
 * vub_batch_step() - work on the batch
 * @dev: the device, which has one
 * @deadline: until then, about
 */
void vub_batch_step(struct vub_device *dev, uint64_t deadline)
{
	struct vub_batch *batch = &dev->batch;
	struct vub_queue *queue = batch->queue;
	uint64_t start = vub_now();
	bool done;

	done = vub_batch_release(dev, deadline);
	dev->traffic[queue->role].release_ns += vub_now() - start;
	if (!done)
		return;
	vub_queue_give(queue, batch->head, batch->nr);
	vub_queue_settle(queue);
	batch->queue = NULL;
}
