// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The balloon device: which queue is for what, and whose turn it is.
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>
#include <linux/virtio_config.h>

#include "conn.h"
#include "device.h"
#include "util.h"

/* A step of work takes about so long: the operator is heard in between. */
#define VUB_STEP	(10 * VUB_NSEC_PER_MSEC)

/* Which feature has to be offered for a role; inflate and deflate need none. */
static const struct {
	const char *name;
	uint64_t features;
} vub_roles[VUB_NR_ROLES] = {
	[VUB_INFLATE] = { "inflate", 0 },
	[VUB_DEFLATE] = { "deflate", 0 },
	[VUB_STATS] = { "stats", VUB_BIT(VIRTIO_BALLOON_F_STATS_VQ) },
	[VUB_HINT] = { "hint", VUB_BIT(VIRTIO_BALLOON_F_FREE_PAGE_HINT) },
	[VUB_REPORT] = { "report", VUB_BIT(VIRTIO_BALLOON_F_REPORTING) },
};

/**
 * vub_role_name() - a word for a role
 * @role: the role
 *
 * Return: the word.
 */
const char *vub_role_name(enum vub_role role)
{
	return role < VUB_NR_ROLES ? vub_roles[role].name : "idle";
}

static void vub_device_assign_roles(struct vub_device *dev)
{
	unsigned int role, index = 0;

	for (role = 0; role < VUB_NR_ROLES; role++) {
		uint64_t needed = vub_roles[role].features;
		bool used = (dev->offered & needed) == needed;

		if (used)
			dev->queue[index].role = role;
		if (used || dev->options->layout == VUB_LAYOUT_SPEC)
			index++;
	}
}

/**
 * vub_device_init() - make a device without a guest
 * @dev: the device, all zeroes
 * @options: the command line
 *
 * Return: 0 or a negative error.
 */
int vub_device_init(struct vub_device *dev, const struct vub_options *options)
{
	unsigned int i;
	int err;

	dev->options = options;
	dev->offered = options->features;
	dev->target = UINT64_MAX;
	dev->release.by_page = options->by_page;
	dev->release.grain = options->grain;

	err = vub_loop_init(&dev->loop);
	if (err)
		return err;
	dev->loop.work = vub_device_work;
	dev->loop.work_arg = dev;

	for (i = 0; i < VUB_MAX_QUEUES; i++)
		vub_queue_init(&dev->queue[i], dev, i);
	vub_device_assign_roles(dev);
	vub_stats_init(dev);
	return 0;
}

/**
 * vub_device_destroy() - the end of a device that has no guest
 * @dev: the device
 */
void vub_device_destroy(struct vub_device *dev)
{
	vub_runs_free(&dev->batch.runs);
	vub_runs_free(&dev->memory.runs);
	vub_loop_close(&dev->loop);
}

/**
 * vub_device_queue() - find the queue of a role
 * @dev: the device
 * @role: the role
 *
 * Return: the queue, or NULL if the device does not offer it.
 */
struct vub_queue *vub_device_queue(struct vub_device *dev, enum vub_role role)
{
	unsigned int i;

	for (i = 0; i < VUB_MAX_QUEUES; i++) {
		if (dev->queue[i].role == role)
			return &dev->queue[i];
	}
	return NULL;
}

/**
 * vub_reject() - count something that was refused
 * @dev: the device
 * @reject: what; VUB_ACCEPT is not counted
 */
void vub_reject(struct vub_device *dev, enum vub_reject reject)
{
	if (reject != VUB_ACCEPT)
		dev->nr_rejects[reject]++;
}

/**
 * vub_device_ram() - how much memory the guest has without a balloon
 * @dev: the device
 *
 * Return: bytes; 0 while that is not known.
 */
uint64_t vub_device_ram(const struct vub_device *dev)
{
	return dev->options->ram_size ?: vub_memory_bytes(&dev->memory);
}

/**
 * vub_device_set_features() - the driver takes features
 * @dev: the device
 * @features: those that it takes
 *
 * Return: 0, or -EINVAL if some of them were not offered.
 */
int vub_device_set_features(struct vub_device *dev, uint64_t features)
{
	if (features & ~dev->offered) {
		vub_peer_warn("features %#llx refused: they were not offered",
			      (unsigned long long)(features & ~dev->offered));
		return -EINVAL;
	}
	dev->acked = features;
	return 0;
}

/**
 * vub_device_stop() - serve no queue until it is set up again
 * @dev: the device, which has no batch
 */
void vub_device_stop(struct vub_device *dev)
{
	unsigned int i;

	for (i = 0; i < VUB_MAX_QUEUES; i++) {
		vub_queue_stop(&dev->queue[i]);
		dev->queue[i].enabled = false;
	}
}

/**
 * vub_device_reset() - the device as a driver finds it
 * @dev: the device
 *
 * The operator's target stays. A batch is dropped: nobody waits for it.
 */
void vub_device_reset(struct vub_device *dev)
{
	unsigned int i;

	dev->batch.queue = NULL;
	for (i = 0; i < VUB_MAX_QUEUES; i++)
		vub_queue_reset(&dev->queue[i]);
	dev->acked = 0;
	vub_config_reset(dev);
	vub_stats_reset(dev);
	dev->hints.state = VUB_HINT_IDLE;
}

/**
 * vub_device_disconnect() - the VMM is gone
 * @dev: the device
 */
void vub_device_disconnect(struct vub_device *dev)
{
	vub_device_reset(dev);
	vub_memory_clear(&dev->memory);
	dev->release.error = 0;
	dev->conn = NULL;
}

static void vub_queue_serve(struct vub_queue *queue)
{
	if (!vub_queue_ready(queue)) {
		queue->pending = false;
		return;
	}
	switch (queue->role) {
	case VUB_INFLATE:
	case VUB_DEFLATE:
	case VUB_REPORT:
		vub_batch_start(&queue->dev->batch, queue);
		break;
	case VUB_STATS:
		vub_stats_serve(queue);
		break;
	case VUB_HINT:
		vub_hints_serve(queue);
		break;
	case VUB_IDLE:
		queue->pending = false;
		break;
	}
}

static struct vub_queue *vub_device_next(struct vub_device *dev)
{
	unsigned int i;

	for (i = 0; i < VUB_MAX_QUEUES; i++) {
		struct vub_queue *queue;

		queue = &dev->queue[(dev->turn + i) % VUB_MAX_QUEUES];
		if (queue->pending)
			return queue;
	}
	return NULL;
}

/**
 * vub_device_work() - one step
 * @arg: the device
 *
 * Return: true if there is more to do.
 */
bool vub_device_work(void *arg)
{
	struct vub_device *dev = arg;
	uint64_t deadline = vub_now() + VUB_STEP;
	struct vub_queue *queue;
	const char *fault;

	if (!dev->batch.queue) {
		queue = vub_device_next(dev);
		if (queue) {
			dev->turn = queue->index + 1;
			vub_queue_serve(queue);
		}
	}
	if (dev->batch.queue)
		vub_batch_step(dev, deadline);
	fault = vub_memory_fault(&dev->memory);
	if (fault && dev->conn)
		vub_conn_break(dev->conn, fault);
	if (!dev->batch.queue && dev->conn)
		vub_conn_resume(dev->conn);
	return dev->batch.queue || vub_device_next(dev);
}
