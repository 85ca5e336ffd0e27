// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * x-balloon-misbehave: orders to be a bad device, for tests of drivers. Offered
 * with --test-commands only.
 *
 * Copyright (C) the project's developers
 */
#include <stddef.h>
#include <string.h>

#include "conn.h"
#include "device.h"
#include "qmp.h"
#include "util.h"

static const char *const vub_field_names[VUB_CONFIG_FIELDS] = {
	"num_pages", "actual", "free_page_hint_cmd_id", "poison_val",
};

static struct vub_queue *vub_arg_queue(struct vub_device *dev,
				       const json_t *args,
				       struct vub_reply *reply)
{
	const char *name = json_string_value(json_object_get(args, "queue"));
	unsigned int i;

	for (i = 0; name && i < VUB_MAX_QUEUES; i++) {
		if (dev->queue[i].role != VUB_IDLE &&
		    !strcmp(vub_role_name(dev->queue[i].role), name))
			return &dev->queue[i];
	}
	vub_reply_error(reply, "GenericError",
			"'queue' has to be inflate, deflate, stats, hint or report, and offered");
	return NULL;
}

static void vub_bad_off(struct vub_device *dev, const json_t *args,
			struct vub_reply *reply)
{
	unsigned int i;

	(void)args;
	memset(dev->quirks, 0, sizeof(dev->quirks));
	memset(dev->lie, 0, sizeof(dev->lie));
	dev->fill.on = false;
	for (i = 0; i < VUB_MAX_QUEUES; i++)
		vub_queue_late(&dev->queue[i], true);
	vub_config_changed(dev);
	vub_reply_nothing(reply);
}

static void vub_bad_delay(struct vub_device *dev, const json_t *args,
			  struct vub_reply *reply)
{
	struct vub_queue *queue = vub_arg_queue(dev, args, reply);
	json_int_t ms;

	if (!queue || !vub_arg_int(args, "ms", 1, 3600000, &ms, reply))
		return;
	dev->quirks[queue->role].delay_ms = (uint32_t)ms;
	dev->quirks[queue->role].serial =
		json_is_true(json_object_get(args, "serial"));
	vub_reply_nothing(reply);
}

static void vub_bad_drop(struct vub_device *dev, const json_t *args,
			 struct vub_reply *reply)
{
	struct vub_queue *queue = vub_arg_queue(dev, args, reply);
	json_int_t count;

	if (!queue || !vub_arg_int(args, "count", 1, INT64_MAX, &count, reply))
		return;
	dev->quirks[queue->role].nr_drop = (uint64_t)count;
	vub_reply_nothing(reply);
}

static void vub_bad_config(struct vub_device *dev, const json_t *args,
			   struct vub_reply *reply)
{
	const char *name = json_string_value(json_object_get(args, "field"));
	json_int_t value;
	unsigned int i;

	if (!vub_arg_int(args, "value", 0, UINT32_MAX, &value, reply))
		return;
	for (i = 0; name && i < VUB_CONFIG_FIELDS; i++) {
		if (strcmp(name, vub_field_names[i]))
			continue;
		dev->lie[i] = (struct vub_lie){ true, (uint32_t)value };
		vub_config_changed(dev);
		vub_reply_nothing(reply);
		return;
	}
	vub_reply_error(reply, "GenericError",
			"'field' has to be num_pages, actual, free_page_hint_cmd_id or poison_val");
}

/* Give back what was never taken; by itself, an id outside the table. */
static void vub_bad_break(struct vub_device *dev, const json_t *args,
			  struct vub_reply *reply)
{
	struct vub_queue *queue = vub_arg_queue(dev, args, reply);
	json_int_t id;

	if (!queue)
		return;
	if (!vub_queue_ready(queue)) {
		vub_reply_error(reply, "GenericError",
				"the guest has not set the queue up");
		return;
	}
	id = queue->ring.nr;
	if (json_object_get(args, "value") &&
	    !vub_arg_int(args, "value", 0, UINT32_MAX, &id, reply))
		return;
	vub_ring_lie(&queue->ring, (uint32_t)id);
	vub_queue_call_now(queue);
	vub_reply_nothing(reply);
}

static void vub_bad_fill(struct vub_device *dev, const json_t *args,
			 struct vub_reply *reply)
{
	json_int_t value;

	if (!vub_arg_int(args, "value", 0, UINT8_MAX, &value, reply))
		return;
	dev->fill = (struct vub_fill){ .on = true, .pattern = (uint8_t)value };
	vub_reply_nothing(reply);
}

static void vub_bad_disconnect(struct vub_device *dev, const json_t *args,
			       struct vub_reply *reply)
{
	(void)args;
	if (dev->conn)
		vub_conn_break(dev->conn, "the operator wants it so");
	vub_reply_nothing(reply);
}

static const struct {
	const char *name;
	void (*begin)(struct vub_device *dev, const json_t *args,
		      struct vub_reply *reply);
} vub_bad_kinds[] = {
	{ "off", vub_bad_off },
	{ "delay", vub_bad_delay },
	{ "drop", vub_bad_drop },
	{ "config", vub_bad_config },
	{ "break-queue", vub_bad_break },
	{ "fill", vub_bad_fill },
	{ "disconnect", vub_bad_disconnect },
};

/* Kinds that a queue has or has not. */
static const struct {
	const char *name;
	size_t offset;
} vub_bad_switches[] = {
	{ "hold", offsetof(struct vub_queue_quirks, hold) },
	{ "reorder", offsetof(struct vub_queue_quirks, reverse) },
	{ "duplicate", offsetof(struct vub_queue_quirks, duplicate) },
	{ "silent", offsetof(struct vub_queue_quirks, silent) },
	{ "poll", offsetof(struct vub_queue_quirks, poll) },
};

static void vub_bad_switch(struct vub_device *dev, size_t offset,
			   const json_t *args, struct vub_reply *reply)
{
	struct vub_queue *queue = vub_arg_queue(dev, args, reply);

	if (!queue)
		return;
	*(bool *)((char *)&dev->quirks[queue->role] + offset) = true;
	queue->pending = true;
	vub_reply_nothing(reply);
}

/**
 * vub_qmp_misbehave() - begin to misbehave, or stop it
 * @dev: the device
 * @args: how
 * @reply: what comes of the command
 */
void vub_qmp_misbehave(struct vub_device *dev, const json_t *args,
		       struct vub_reply *reply)
{
	const char *kind = json_string_value(json_object_get(args, "kind"));
	unsigned int i;

	for (i = 0; kind && i < VUB_ARRAY_SIZE(vub_bad_switches); i++) {
		if (!strcmp(kind, vub_bad_switches[i].name)) {
			vub_bad_switch(dev, vub_bad_switches[i].offset, args,
				       reply);
			return;
		}
	}
	for (i = 0; kind && i < VUB_ARRAY_SIZE(vub_bad_kinds); i++) {
		if (!strcmp(kind, vub_bad_kinds[i].name)) {
			vub_bad_kinds[i].begin(dev, args, reply);
			return;
		}
	}
	vub_reply_error(reply, "GenericError",
			"there is no such 'kind'; see vhost-user-balloon(1)");
}
