// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Private copies of what drivers send.
 *
 * Copyright (C) the project's developers
 */
#include "device.h"

/**
 * vub_payload_copy() - copy the readable part of a buffer
 * @dev: the device: from its chain to its payload
 *
 * A writable part may follow, and is left alone.
 *
 * Return: VUB_ACCEPT, or what is wrong with the buffer.
 */
enum vub_reject vub_payload_copy(struct vub_device *dev)
{
	const struct vub_chain *chain = &dev->chain;
	char *to = dev->payload;
	unsigned int i;

	if (!chain->nr_readable)
		return VUB_REJECT_DIRECTION;
	if (chain->readable_bytes > sizeof(dev->payload))
		return VUB_REJECT_TOO_LONG;
	for (i = 0; i < chain->nr_readable; i++) {
		const struct vub_segment *segment = &chain->segment[i];

		if (!vub_memory_read(&dev->memory, segment->addr, to,
				     segment->len))
			return VUB_REJECT_ADDRESS;
		to += segment->len;
	}
	return VUB_ACCEPT;
}
