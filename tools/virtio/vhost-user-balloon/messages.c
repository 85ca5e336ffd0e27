// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The messages of the vhost-user protocol, one handler each.
 *
 * A handler gets a payload whose length lies between the bounds in its row of
 * the table; it checks the rest where it reads it. It takes a descriptor over by
 * vub_message_take_fd(); what it leaves is closed. Rings, features and memory
 * do not change under a batch: messages that change them wait until it is done.
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>
#include <string.h>

#include "conn.h"
#include "device.h"
#include "log.h"
#include "util.h"

static int vub_message_take_fd(struct vub_message *msg)
{
	int fd;

	if (!msg->nr_fds)
		return -1;
	fd = msg->fd[0];
	msg->fd[0] = -1;
	return fd;
}

static uint64_t vub_message_u64(const struct vub_message *msg)
{
	uint64_t value;

	memcpy(&value, msg->payload, sizeof(value));
	return value;
}

static void vub_reply_u64(struct vub_conn *conn, uint64_t value)
{
	vub_conn_reply(conn, &value, sizeof(value));
}

static struct vub_queue *vub_queue_by_index(struct vub_conn *conn,
					    uint32_t index)
{
	return index < VUB_MAX_QUEUES ? &conn->dev->queue[index] : NULL;
}

/* The queue that a message about a ring names, and the number beside it. */
static struct vub_queue *vub_message_queue(struct vub_conn *conn,
					   const struct vub_message *msg,
					   uint32_t *num)
{
	struct vub_vring_state state;

	memcpy(&state, msg->payload, sizeof(state));
	*num = state.num;
	return vub_queue_by_index(conn, state.index);
}

/* The queue that a message with a descriptor names. */
static struct vub_queue *vub_message_fd_queue(struct vub_conn *conn,
					      const struct vub_message *msg)
{
	uint64_t value = vub_message_u64(msg);
	bool says_none = value & VUB_VRING_NO_FD;

	if (says_none == !!msg->nr_fds)
		return NULL;
	return vub_queue_by_index(conn, value & VUB_VRING_INDEX_MASK);
}

/*
 * UML has no message for a reset. When its driver lets go of the queues it sends
 * this one, which nobody else does once features are settled, and afterwards
 * frees the rings: they must not be touched any more.
 */
static int vub_get_features(struct vub_conn *conn, struct vub_message *msg)
{
	(void)msg;
	if (!vub_acked(conn->dev, VUB_F_PROTOCOL_FEATURES))
		vub_device_stop(conn->dev);
	vub_reply_u64(conn, conn->dev->offered);
	return 0;
}

static int vub_set_features(struct vub_conn *conn, struct vub_message *msg)
{
	return vub_device_set_features(conn->dev, vub_message_u64(msg));
}

static int vub_set_owner(struct vub_conn *conn, struct vub_message *msg)
{
	(void)conn;
	(void)msg;
	return 0;
}

static int vub_add_region(struct vub_device *dev, struct vub_message *msg,
			  unsigned int i)
{
	struct vub_mem_region wire;
	struct vub_region region = { 0 };
	int err;

	memcpy(&wire, msg->payload + sizeof(struct vub_mem_table) +
	       i * sizeof(wire), sizeof(wire));
	region.guest_addr = wire.guest_addr;
	region.user_addr = wire.user_addr;
	region.size = wire.size;
	region.offset = wire.offset;
	region.fd = msg->fd[i];
	err = vub_memory_add(&dev->memory, &region);
	if (!err)
		msg->fd[i] = -1;
	return err;
}

static int vub_set_mem_table(struct vub_conn *conn, struct vub_message *msg)
{
	struct vub_device *dev = conn->dev;
	uint32_t num_pages = vub_num_pages(dev);
	struct vub_mem_table table;
	unsigned int i;
	int err = 0;

	/* UML sends room for two regions and uses one: "at least", not "equal". */
	memcpy(&table, msg->payload, sizeof(table));
	if (table.nr_regions > VUB_MAX_REGIONS ||
	    table.nr_regions != msg->nr_fds ||
	    msg->header.size < sizeof(table) + table.nr_regions *
				sizeof(struct vub_mem_region))
		return -EINVAL;

	for (i = 0; i < VUB_MAX_QUEUES; i++)
		vub_ring_unmap(&dev->queue[i].ring);
	vub_memory_clear(&dev->memory);
	for (i = 0; i < table.nr_regions && !err; i++)
		err = vub_add_region(dev, msg, i);
	if (!err)
		err = vub_memory_settle(&dev->memory);
	if (err) {
		vub_memory_clear(&dev->memory);
		return err;
	}
	if (vub_num_pages(dev) != num_pages)
		vub_config_changed(dev);
	/* Rings that are set up already are elsewhere now; one may be nowhere. */
	for (i = 0; i < VUB_MAX_QUEUES; i++) {
		int ring_err = vub_queue_map(&dev->queue[i]);

		if (ring_err)
			err = ring_err;
	}
	return err;
}

static int vub_set_vring_num(struct vub_conn *conn, struct vub_message *msg)
{
	struct vub_queue *queue;
	uint32_t num;

	queue = vub_message_queue(conn, msg, &num);
	if (!queue || !num || num > VUB_RING_MAX || num & (num - 1))
		return -EINVAL;
	queue->ring.nr = num;
	return vub_queue_map(queue);
}

static int vub_set_vring_addr(struct vub_conn *conn, struct vub_message *msg)
{
	struct vub_vring_addr addr;
	struct vub_queue *queue;

	memcpy(&addr, msg->payload, sizeof(addr));
	queue = vub_queue_by_index(conn, addr.index);
	if (!queue)
		return -EINVAL;
	queue->ring.addr.desc = addr.desc;
	queue->ring.addr.used = addr.used;
	queue->ring.addr.avail = addr.avail;
	queue->ring.has_addr = true;
	return vub_queue_map(queue);
}

static int vub_set_vring_base(struct vub_conn *conn, struct vub_message *msg)
{
	struct vub_queue *queue;
	uint32_t num;

	queue = vub_message_queue(conn, msg, &num);
	if (!queue || num > UINT16_MAX)
		return -EINVAL;
	vub_queue_stop(queue);
	queue->ring.last_avail = (uint16_t)num;
	return 0;
}

static int vub_get_vring_base(struct vub_conn *conn, struct vub_message *msg)
{
	struct vub_vring_state state;
	struct vub_queue *queue;
	uint32_t num;

	queue = vub_message_queue(conn, msg, &num);
	if (!queue)
		return -EINVAL;
	state.index = queue->index;
	state.num = vub_queue_stop(queue);
	vub_conn_reply(conn, &state, sizeof(state));
	return 0;
}

/*
 * Without the feature bit there is no message that enables a ring. UML loses the
 * bit, though it goes on to use what the bit stands for.
 */
static void vub_queue_started(struct vub_queue *queue)
{
	if (!vub_acked(queue->dev, VUB_F_PROTOCOL_FEATURES))
		queue->enabled = true;
}

static int vub_set_vring_kick(struct vub_conn *conn, struct vub_message *msg)
{
	struct vub_queue *queue = vub_message_fd_queue(conn, msg);
	int fd, err;

	if (!queue)
		return -EINVAL;
	fd = msg->nr_fds ? msg->fd[0] : -1;
	err = vub_queue_set_kick(queue, fd);
	if (err)
		return err;
	vub_message_take_fd(msg);
	vub_queue_started(queue);
	return 0;
}

static int vub_set_vring_call(struct vub_conn *conn, struct vub_message *msg)
{
	struct vub_queue *queue = vub_message_fd_queue(conn, msg);

	if (!queue)
		return -EINVAL;
	vub_queue_set_call(queue, vub_message_take_fd(msg));
	return 0;
}

static int vub_set_vring_err(struct vub_conn *conn, struct vub_message *msg)
{
	struct vub_queue *queue = vub_message_fd_queue(conn, msg);

	if (!queue)
		return -EINVAL;
	vub_queue_set_err(queue, vub_message_take_fd(msg));
	return 0;
}

static uint64_t vub_protocol_features(const struct vub_conn *conn)
{
	uint64_t features = VUB_BIT(VUB_PROTOCOL_F_MQ) |
			    VUB_BIT(VUB_PROTOCOL_F_REPLY_ACK) |
			    VUB_BIT(VUB_PROTOCOL_F_BACKEND_REQ) |
			    VUB_BIT(VUB_PROTOCOL_F_CONFIG) |
			    VUB_BIT(VUB_PROTOCOL_F_RESET_DEVICE);

	if (conn->dev->options->in_band)
		features |= VUB_BIT(VUB_PROTOCOL_F_INBAND);
	return features;
}

static int vub_get_protocol_features(struct vub_conn *conn,
				     struct vub_message *msg)
{
	(void)msg;
	vub_reply_u64(conn, vub_protocol_features(conn));
	return 0;
}

static int vub_set_protocol_features(struct vub_conn *conn,
				     struct vub_message *msg)
{
	uint64_t features = vub_message_u64(msg);

	if (features & ~vub_protocol_features(conn))
		return -EINVAL;
	conn->protocol_features = features;
	return 0;
}

static int vub_get_queue_num(struct vub_conn *conn, struct vub_message *msg)
{
	(void)msg;
	vub_reply_u64(conn, VUB_MAX_QUEUES);
	return 0;
}

static int vub_set_vring_enable(struct vub_conn *conn, struct vub_message *msg)
{
	struct vub_queue *queue;
	uint32_t num;

	queue = vub_message_queue(conn, msg, &num);
	if (!queue || num > 1)
		return -EINVAL;
	queue->enabled = num;
	queue->pending = num;
	return 0;
}

static int vub_set_backend_req_fd(struct vub_conn *conn,
				  struct vub_message *msg)
{
	if (msg->nr_fds != 1)
		return -EINVAL;
	vub_conn_set_req_fd(conn, vub_message_take_fd(msg));
	return 0;
}

/* The part of config space that a message is about. */
static int vub_message_config(const struct vub_message *msg,
			      struct vub_config_message *config)
{
	memcpy(config, msg->payload, sizeof(*config));
	if (config->size > VUB_CONFIG_MAX ||
	    msg->header.size != sizeof(*config) + config->size)
		return -EINVAL;
	return 0;
}

static int vub_get_config(struct vub_conn *conn, struct vub_message *msg)
{
	struct vub_config_message config;
	int err = vub_message_config(msg, &config);

	if (err)
		return err;
	/* An empty answer says that there is no such part. */
	if (!vub_config_read(conn->dev, config.offset,
			     msg->payload + sizeof(config), config.size))
		vub_conn_reply(conn, NULL, 0);
	else
		vub_conn_reply(conn, msg->payload, msg->header.size);
	return 0;
}

static int vub_set_config(struct vub_conn *conn, struct vub_message *msg)
{
	struct vub_config_message config;
	int err = vub_message_config(msg, &config);

	if (err)
		return err;
	return vub_config_write(conn->dev, config.offset,
				msg->payload + sizeof(config), config.size) ?
	       0 : -ERANGE;
}

static int vub_reset_device(struct vub_conn *conn, struct vub_message *msg)
{
	(void)msg;
	vub_device_reset(conn->dev);
	return 0;
}

/* The VMM waits for the answer with its guest stopped: the work comes later. */
static int vub_vring_kick(struct vub_conn *conn, struct vub_message *msg)
{
	struct vub_queue *queue;
	uint32_t num;

	queue = vub_message_queue(conn, msg, &num);
	if (!queue || !conn->dev->options->in_band)
		return -EINVAL;
	vub_queue_started(queue);
	queue->nr_kicks++;
	queue->pending = true;
	return 0;
}

#define VUB_U64		sizeof(uint64_t)
#define VUB_STATE	sizeof(struct vub_vring_state)
#define VUB_ADDR	sizeof(struct vub_vring_addr)
#define VUB_CONFIG	sizeof(struct vub_config_message)

/* What each message may look like, who handles it, and if a batch comes first. */
static const struct vub_handler {
	int (*handle)(struct vub_conn *conn, struct vub_message *msg);
	size_t min_size;
	size_t max_size;
	unsigned int max_fds;
	bool waits;
} vub_handlers[VUB_NR_REQUESTS] = {
	[VUB_GET_FEATURES] = { vub_get_features, 0, 0, 0, true },
	[VUB_SET_FEATURES] = { vub_set_features, VUB_U64, VUB_U64, 0, true },
	[VUB_SET_OWNER] = { vub_set_owner, 0, 0, 0, false },
	[VUB_SET_MEM_TABLE] = { vub_set_mem_table, sizeof(struct vub_mem_table),
				VUB_PAYLOAD_MAX, VUB_MAX_REGIONS, true },
	[VUB_SET_VRING_NUM] = { vub_set_vring_num, VUB_STATE, VUB_STATE, 0,
				true },
	[VUB_SET_VRING_ADDR] = { vub_set_vring_addr, VUB_ADDR, VUB_ADDR, 0,
				 true },
	[VUB_SET_VRING_BASE] = { vub_set_vring_base, VUB_STATE, VUB_STATE, 0,
				 true },
	[VUB_GET_VRING_BASE] = { vub_get_vring_base, VUB_STATE, VUB_STATE, 0,
				 true },
	[VUB_SET_VRING_KICK] = { vub_set_vring_kick, VUB_U64, VUB_U64,
				 1, false },
	[VUB_SET_VRING_CALL] = { vub_set_vring_call, VUB_U64, VUB_U64,
				 1, false },
	[VUB_SET_VRING_ERR] = { vub_set_vring_err, VUB_U64, VUB_U64, 1, false },
	[VUB_GET_PROTOCOL_FEATURES] = { vub_get_protocol_features, 0, 0,
					0, false },
	[VUB_SET_PROTOCOL_FEATURES] = { vub_set_protocol_features,
					VUB_U64, VUB_U64, 0, false },
	[VUB_GET_QUEUE_NUM] = { vub_get_queue_num, 0, 0, 0, false },
	[VUB_SET_VRING_ENABLE] = { vub_set_vring_enable, VUB_STATE, VUB_STATE,
				   0, true },
	[VUB_SET_BACKEND_REQ_FD] = { vub_set_backend_req_fd, 0, 0, 1, false },
	[VUB_GET_CONFIG] = { vub_get_config, VUB_CONFIG, VUB_PAYLOAD_MAX,
			     0, false },
	[VUB_SET_CONFIG] = { vub_set_config, VUB_CONFIG, VUB_PAYLOAD_MAX,
			     0, false },
	[VUB_RESET_DEVICE] = { vub_reset_device, 0, 0, 0, false },
	[VUB_VRING_KICK] = { vub_vring_kick, VUB_STATE, VUB_STATE, 0, false },
};

/* The row of a message, or NULL. */
static const struct vub_handler *vub_message_handler(const struct vub_message *msg)
{
	const struct vub_handler *handler;

	if (msg->header.request >= VUB_NR_REQUESTS)
		return NULL;
	handler = &vub_handlers[msg->header.request];
	return handler->handle ? handler : NULL;
}

/**
 * vub_message_has_to_wait() - whether the batch has to be done before a message
 * @conn: the connection
 * @msg: the message, complete
 *
 * Return: true if it has.
 */
bool vub_message_has_to_wait(const struct vub_conn *conn,
			     const struct vub_message *msg)
{
	const struct vub_handler *handler = vub_message_handler(msg);

	return handler && handler->waits && conn->dev->batch.queue;
}

/**
 * vub_message_handle() - handle a message
 * @conn: the connection
 * @msg: the message, complete, which does not have to wait
 *
 * Return: 0, or a negative error if the message is refused.
 */
int vub_message_handle(struct vub_conn *conn, struct vub_message *msg)
{
	const struct vub_handler *handler = vub_message_handler(msg);

	if (!handler)
		return -EOPNOTSUPP;
	if (msg->header.size < handler->min_size ||
	    msg->header.size > handler->max_size ||
	    msg->nr_fds > handler->max_fds)
		return -EBADMSG;
	vub_dbg("message %u, %u bytes, %u descriptors",
		msg->header.request, msg->header.size, msg->nr_fds);
	return handler->handle(conn, msg);
}
