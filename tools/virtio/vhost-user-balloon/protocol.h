/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vhost-user protocol's numbers and layouts, as far as they are used here.
 * Fields have the host's byte order: both ends are on the same host. The
 * structures have no holes.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_PROTOCOL_H
#define VUB_PROTOCOL_H

#include <assert.h>
#include <stdint.h>

#include "memory.h"
#include "util.h"

#define VUB_PROTOCOL_VERSION	1
#define VUB_FLAG_VERSION_MASK	0x3u
#define VUB_FLAG_REPLY		0x4u
#define VUB_FLAG_NEED_REPLY	0x8u

/* A virtio feature bit that is not virtio's: protocol features are understood. */
#define VUB_F_PROTOCOL_FEATURES	30

/* Protocol features. */
#define VUB_PROTOCOL_F_MQ		0
#define VUB_PROTOCOL_F_REPLY_ACK	3
#define VUB_PROTOCOL_F_BACKEND_REQ	5
#define VUB_PROTOCOL_F_CONFIG		9
#define VUB_PROTOCOL_F_RESET_DEVICE	13
#define VUB_PROTOCOL_F_INBAND		14

/* Requests of the VMM. */
enum vub_request {
	VUB_GET_FEATURES = 1,
	VUB_SET_FEATURES = 2,
	VUB_SET_OWNER = 3,
	VUB_SET_MEM_TABLE = 5,
	VUB_SET_VRING_NUM = 8,
	VUB_SET_VRING_ADDR = 9,
	VUB_SET_VRING_BASE = 10,
	VUB_GET_VRING_BASE = 11,
	VUB_SET_VRING_KICK = 12,
	VUB_SET_VRING_CALL = 13,
	VUB_SET_VRING_ERR = 14,
	VUB_GET_PROTOCOL_FEATURES = 15,
	VUB_SET_PROTOCOL_FEATURES = 16,
	VUB_GET_QUEUE_NUM = 17,
	VUB_SET_VRING_ENABLE = 18,
	VUB_SET_BACKEND_REQ_FD = 21,
	VUB_GET_CONFIG = 24,
	VUB_SET_CONFIG = 25,
	VUB_RESET_DEVICE = 34,
	VUB_VRING_KICK = 35,
	VUB_NR_REQUESTS
};

/* Requests of the device, on the descriptor of VUB_SET_BACKEND_REQ_FD. */
#define VUB_BACKEND_CONFIG_CHANGE	2
#define VUB_BACKEND_VRING_CALL		4

/* In the 64 bits of a message about a descriptor. */
#define VUB_VRING_INDEX_MASK	0xffu
#define VUB_VRING_NO_FD		0x100u

struct vub_header {
	uint32_t request;
	uint32_t flags;
	uint32_t size;
};

struct vub_vring_state {
	uint32_t index;
	uint32_t num;
};

struct vub_vring_addr {
	uint32_t index;
	uint32_t flags;
	uint64_t desc;
	uint64_t used;
	uint64_t avail;
	uint64_t log;
};

struct vub_mem_table {
	uint32_t nr_regions;
	uint32_t padding;
};

struct vub_mem_region {
	uint64_t guest_addr;
	uint64_t size;
	uint64_t user_addr;
	uint64_t offset;
};

struct vub_config_message {
	uint32_t offset;
	uint32_t size;
	uint32_t flags;
};

/* The longest config space that a message can carry. */
#define VUB_CONFIG_MAX	256

/* The longest payload, and the most descriptors, of any message. */
#define VUB_PAYLOAD_MAX	(sizeof(struct vub_config_message) + VUB_CONFIG_MAX)
#define VUB_FDS_MAX	VUB_MAX_REGIONS

static_assert(sizeof(struct vub_mem_table) +
	      VUB_MAX_REGIONS * sizeof(struct vub_mem_region) <=
	      VUB_PAYLOAD_MAX, "a memory table has to fit");

#endif /* VUB_PROTOCOL_H */
