// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Statistics: the device keeps the driver's buffer, and gives it back when it
 * wants new figures (virtio specification, section 5.5.6.3).
 *
 * Copyright (C) the project's developers
 */
#include <endian.h>
#include <string.h>

#include "device.h"
#include "util.h"

/* Enough for a driver that answers; a busy one must not keep us here. */
#define VUB_STATS_BUDGET	16

static void vub_stats_clear(struct vub_stats *stats)
{
	unsigned int i;

	for (i = 0; i < VIRTIO_BALLOON_S_NR; i++)
		stats->val[i] = UINT64_MAX;
}

static void vub_stats_parse(struct vub_device *dev, size_t len)
{
	struct vub_stats *stats = &dev->stats;
	struct virtio_balloon_stat stat;
	size_t offset;

	vub_stats_clear(stats);
	for (offset = 0; offset + sizeof(stat) <= len; offset += sizeof(stat)) {
		unsigned int tag;

		memcpy(&stat, dev->payload + offset, sizeof(stat));
		tag = le16toh((__force uint16_t)stat.tag);
		if (tag < VIRTIO_BALLOON_S_NR)
			stats->val[tag] = le64toh((__force uint64_t)stat.val);
		else
			vub_reject(dev, VUB_REJECT_STATISTIC);
	}
	if (offset != len)
		vub_reject(dev, VUB_REJECT_LENGTH);
	stats->last_update = (uint64_t)time(NULL);
	stats->nr_updates++;
}

/* Ask for new figures, if the driver has answered the last time. */
static void vub_stats_ask(struct vub_device *dev)
{
	struct vub_queue *queue = vub_device_queue(dev, VUB_STATS);

	if (!dev->stats.held || !queue || !vub_queue_ready(queue))
		return;
	dev->stats.held = false;
	vub_queue_give(queue, &dev->stats.head, 1);
}

static void vub_stats_fire(struct vub_timer *timer)
{
	struct vub_device *dev =
		vub_container_of(timer, struct vub_device, stats.timer);

	vub_stats_ask(dev);
	vub_stats_set_interval(dev, dev->stats.interval);
}

/**
 * vub_stats_init() - no figures yet
 * @dev: the device
 */
void vub_stats_init(struct vub_device *dev)
{
	vub_stats_clear(&dev->stats);
	dev->stats.timer.fire = vub_stats_fire;
	vub_stats_set_interval(dev, dev->options->poll_interval);
}

/**
 * vub_stats_reset() - the guest's figures are no more
 * @dev: the device
 */
void vub_stats_reset(struct vub_device *dev)
{
	vub_stats_clear(&dev->stats);
	dev->stats.last_update = 0;
}

/**
 * vub_stats_serve() - take figures
 * @queue: the statistics queue, ready
 */
void vub_stats_serve(struct vub_queue *queue)
{
	struct vub_device *dev = queue->dev;
	unsigned int budget = VUB_STATS_BUDGET;

	while (budget-- && vub_queue_take(queue)) {
		enum vub_reject reject = vub_payload_copy(dev);

		/* A driver should have one buffer; a second one goes back. */
		if (dev->stats.held)
			vub_queue_give(queue, &dev->stats.head, 1);
		dev->stats.held = true;
		dev->stats.head = dev->chain.head;
		if (reject == VUB_ACCEPT)
			vub_stats_parse(dev, dev->chain.readable_bytes);
		vub_reject(dev, reject);
	}
	vub_queue_settle(queue);
}

/**
 * vub_stats_set_interval() - choose how often figures are asked for
 * @dev: the device
 * @seconds: between two requests; 0: not at all
 */
void vub_stats_set_interval(struct vub_device *dev, uint32_t seconds)
{
	struct vub_stats *stats = &dev->stats;

	stats->interval = seconds;
	if (seconds)
		vub_timer_set(&dev->loop, &stats->timer,
			      vub_now() + seconds * VUB_NSEC_PER_SEC);
	else
		vub_timer_cancel(&dev->loop, &stats->timer);
}

/**
 * vub_stats_forget() - the driver's buffer is no more
 * @dev: the device
 */
void vub_stats_forget(struct vub_device *dev)
{
	dev->stats.held = false;
}
