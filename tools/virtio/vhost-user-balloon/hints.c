// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Free page hints (virtio specification, section 5.5.6.5). A round begins with
 * an id in config space; the driver answers with the id in a readable buffer,
 * then with free blocks as writable ones, then with a stop command. Nothing is
 * done with the blocks: a migration may leave them out.
 *
 * Copyright (C) the project's developers
 */
#include <endian.h>
#include <string.h>

#include "device.h"
#include "util.h"

/* Rounds count from here on, far from the commands' own ids. */
#define VUB_HINT_FIRST_ID	0x80000000u
/* Buffers that are looked at in one turn. */
#define VUB_HINT_BUDGET		64

static const char *const vub_hint_state_names[] = {
	[VUB_HINT_IDLE] = "idle",
	[VUB_HINT_ASKED] = "asked",
	[VUB_HINT_RUNNING] = "running",
	[VUB_HINT_ENDED] = "ended",
};

/**
 * vub_hint_state_name() - a word for where a round stands
 * @state: where it stands
 *
 * Return: the word.
 */
const char *vub_hint_state_name(enum vub_hint_state state)
{
	return vub_hint_state_names[state];
}

static enum vub_reject vub_hints_command(struct vub_device *dev)
{
	struct vub_hints *hints = &dev->hints;
	enum vub_reject reject = vub_payload_copy(dev);
	uint32_t id;

	if (reject != VUB_ACCEPT)
		return reject;
	if (dev->chain.readable_bytes != sizeof(id))
		return VUB_REJECT_LENGTH;
	memcpy(&id, dev->payload, sizeof(id));
	id = le32toh(id);

	if (id == VIRTIO_BALLOON_CMD_ID_STOP) {
		if (hints->state == VUB_HINT_RUNNING)
			hints->state = VUB_HINT_ENDED;
	} else if (id == hints->last_id) {
		if (hints->state == VUB_HINT_ASKED)
			hints->state = VUB_HINT_RUNNING;
	} else {
		return VUB_REJECT_HINT_ID;
	}
	return VUB_ACCEPT;
}

static enum vub_reject vub_hints_blocks(struct vub_device *dev)
{
	const struct vub_chain *chain = &dev->chain;
	unsigned int i;

	for (i = 0; i < chain->nr; i++) {
		if (!vub_memory_has(&dev->memory, chain->segment[i].addr,
				    chain->segment[i].len))
			return VUB_REJECT_ADDRESS;
		/* What comes outside a round is late, and may be in use. */
		if (dev->hints.state != VUB_HINT_RUNNING)
			continue;
		dev->hints.nr_blocks++;
		dev->hints.bytes += chain->segment[i].len;
	}
	return VUB_ACCEPT;
}

/**
 * vub_hints_serve() - take commands and blocks
 * @queue: the hint queue, ready
 */
void vub_hints_serve(struct vub_queue *queue)
{
	struct vub_device *dev = queue->dev;
	uint16_t heads[VUB_HINT_BUDGET];
	unsigned int nr = 0;

	while (nr < VUB_HINT_BUDGET && vub_queue_take(queue)) {
		heads[nr++] = dev->chain.head;
		vub_reject(dev, dev->chain.nr_readable ?
				vub_hints_command(dev) : vub_hints_blocks(dev));
	}
	vub_queue_give(queue, heads, nr);
	vub_queue_settle(queue);
}

/**
 * vub_hints_start() - begin a round
 * @dev: the device
 */
void vub_hints_start(struct vub_device *dev)
{
	struct vub_hints *hints = &dev->hints;

	hints->last_id++;
	if (hints->last_id < VUB_HINT_FIRST_ID)
		hints->last_id = VUB_HINT_FIRST_ID;
	hints->state = VUB_HINT_ASKED;
	hints->nr_rounds++;
	hints->nr_blocks = 0;
	hints->bytes = 0;
	dev->config.cmd_id = hints->last_id;
	vub_config_changed(dev);
}

/**
 * vub_hints_end() - end a round
 * @dev: the device
 * @cmd_id: VIRTIO_BALLOON_CMD_ID_STOP, or VIRTIO_BALLOON_CMD_ID_DONE: the guest
 *	    may use its pages again
 */
void vub_hints_end(struct vub_device *dev, uint32_t cmd_id)
{
	dev->hints.state = cmd_id == VIRTIO_BALLOON_CMD_ID_DONE ?
			   VUB_HINT_IDLE : VUB_HINT_ENDED;
	dev->config.cmd_id = cmd_id;
	vub_config_changed(dev);
}
