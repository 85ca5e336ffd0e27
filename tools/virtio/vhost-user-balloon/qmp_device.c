// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What query-balloon-device returns: counters and timings.
 *
 * Copyright (C) the project's developers
 */
#include <string.h>

#include "device.h"
#include "qmp.h"
#include "util.h"

static const char *const vub_reject_names[VUB_NR_REJECTS] = {
	[VUB_REJECT_LENGTH] = "length",
	[VUB_REJECT_TOO_LONG] = "too-long",
	[VUB_REJECT_DIRECTION] = "direction",
	[VUB_REJECT_ADDRESS] = "address",
	[VUB_REJECT_PFN] = "pfn",
	[VUB_REJECT_WINDOW_BASE] = "window-base",
	[VUB_REJECT_WINDOW_BITS] = "window-bits",
	[VUB_REJECT_WINDOW_FLAGS] = "window-flags",
	[VUB_REJECT_WINDOW_STRAY] = "window-stray-bit",
	[VUB_REJECT_WINDOW_PAGE] = "window-page",
	[VUB_REJECT_STATISTIC] = "statistic",
	[VUB_REJECT_HINT_ID] = "hint-id",
	[VUB_REJECT_ACTUAL] = "actual",
};

static const char *const vub_breach_names[VUB_NR_BREACHES] = {
	[VUB_BREACH_AVAIL] = "avail-index",
	[VUB_BREACH_HEAD] = "head",
	[VUB_BREACH_NEXT] = "next",
	[VUB_BREACH_LONG] = "long-chain",
	[VUB_BREACH_INDIRECT] = "indirect",
	[VUB_BREACH_ORDER] = "order",
	[VUB_BREACH_MEMORY] = "memory",
};

static void vub_put(json_t *object, const char *name, uint64_t value)
{
	json_object_set_new(object, name, json_integer((json_int_t)value));
}

static json_t *vub_named_counters(const char *const *names,
				  const uint64_t *counters, unsigned int nr)
{
	json_t *object = json_object();
	unsigned int i;

	/* 0 is "nothing is wrong", which nobody counts. */
	for (i = 1; i < nr; i++)
		vub_put(object, names[i], counters[i]);
	return object;
}

static json_t *vub_queue_json(const struct vub_queue *queue)
{
	json_t *object = json_object();

	json_object_set_new(object, "role",
			    json_string(vub_role_name(queue->role)));
	json_object_set_new(object, "enabled", json_boolean(queue->enabled));
	json_object_set_new(object, "broken",
			    json_boolean(queue->ring.breach));
	vub_put(object, "index", queue->index);
	vub_put(object, "size", queue->ring.nr);
	vub_put(object, "kicks", queue->nr_kicks);
	vub_put(object, "buffers", queue->nr_buffers);
	vub_put(object, "calls", queue->nr_calls);
	vub_put(object, "taken", queue->ring.nr_taken);
	return object;
}

static json_t *vub_queues_json(const struct vub_device *dev)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < VUB_MAX_QUEUES; i++) {
		if (dev->queue[i].role != VUB_IDLE)
			json_array_append_new(list,
					      vub_queue_json(&dev->queue[i]));
	}
	return list;
}

/* An array of numbers, the n-th for 2^n and more. */
static void vub_put_buckets(json_t *object, const char *name,
			    const uint64_t *buckets)
{
	json_t *array = json_array();
	unsigned int i;

	for (i = 0; i < VUB_BUCKETS; i++)
		json_array_append_new(array, json_integer((json_int_t)buckets[i]));
	json_object_set_new(object, name, array);
}

static json_t *vub_traffic_json(const struct vub_traffic *traffic)
{
	json_t *object = json_object();

	vub_put(object, "buffers", traffic->nr_buffers);
	vub_put(object, "batches", traffic->nr_batches);
	vub_put(object, "pfns", traffic->decoded.nr_pfns);
	vub_put(object, "windows", traffic->decoded.nr_windows);
	vub_put(object, "bits", traffic->decoded.nr_bits);
	vub_put_buckets(object, "window-bits", traffic->decoded.bits);
	vub_put(object, "runs", traffic->nr_runs);
	vub_put_buckets(object, "run-pfns", traffic->run_pfns);
	vub_put(object, "decode-ns", traffic->decode_ns);
	vub_put(object, "translate-ns", traffic->translate_ns);
	vub_put(object, "release-ns", traffic->release_ns);
	return object;
}

static json_t *vub_release_json(const struct vub_device *dev)
{
	const struct vub_release *release = &dev->release;
	json_t *object = json_object();

	vub_put(object, "punches", release->nr_punches);
	vub_put(object, "bytes", release->bytes);
	vub_put(object, "bytes-kept", release->bytes_kept);
	vub_put(object, "pages-poisoned", dev->nr_poisoned);
	vub_put(object, "failures", release->nr_failures);
	vub_put(object, "bytes-failed", release->bytes_failed);
	json_object_set_new(object, "last-error", release->error ?
			    json_string(strerror(release->error)) : json_null());
	return object;
}

static json_t *vub_memory_json(const struct vub_memory *memory)
{
	json_t *list = json_array();
	unsigned int i;

	for (i = 0; i < memory->nr_regions; i++) {
		json_t *object = json_object();

		vub_put(object, "guest-address", memory->region[i].guest_addr);
		vub_put(object, "size", memory->region[i].size);
		vub_put(object, "file-offset", memory->region[i].offset);
		vub_put(object, "grain", memory->region[i].grain);
		json_array_append_new(list, object);
	}
	return list;
}

static json_t *vub_config_json(const struct vub_device *dev)
{
	const struct vub_config *config = &dev->config;
	json_t *object = json_object();

	vub_put(object, "num-pages", vub_num_pages(dev));
	vub_put(object, "actual", config->actual);
	vub_put(object, "free-page-hint-cmd-id", config->cmd_id);
	vub_put(object, "poison-val", config->poison_val);
	return object;
}

static json_t *vub_hints_json(const struct vub_hints *hints)
{
	json_t *object = json_object();

	json_object_set_new(object, "state",
			    json_string(vub_hint_state_name(hints->state)));
	vub_put(object, "rounds", hints->nr_rounds);
	vub_put(object, "blocks", hints->nr_blocks);
	vub_put(object, "bytes", hints->bytes);
	return object;
}

static json_t *vub_fill_json(const struct vub_fill *fill)
{
	json_t *object = json_object();

	json_object_set_new(object, "on", json_boolean(fill->on));
	vub_put(object, "filled", fill->nr_filled);
	vub_put(object, "checked", fill->nr_checked);
	vub_put(object, "damaged", fill->nr_damaged);
	return object;
}

/**
 * vub_qmp_device() - describe the device
 * @dev: the device
 *
 * Most counters are since the daemon started; whoever wants to measure takes
 * differences.
 *
 * Return: an object; vhost-user-balloon(1) explains the members.
 */
json_t *vub_qmp_device(const struct vub_device *dev)
{
	json_t *object = json_object(), *traffic = json_object();
	unsigned int role;

	for (role = 0; role < VUB_NR_ROLES; role++) {
		if (role != VUB_STATS && role != VUB_HINT)
			json_object_set_new(traffic, vub_role_name(role),
					    vub_traffic_json(&dev->traffic[role]));
	}
	json_object_set_new(object, "connected", json_boolean(dev->conn));
	vub_put(object, "guests", dev->nr_guests);
	vub_put(object, "ram", vub_device_ram(dev));
	vub_put(object, "features-offered", dev->offered);
	vub_put(object, "features", dev->acked);
	json_object_set_new(object, "config", vub_config_json(dev));
	json_object_set_new(object, "memory", vub_memory_json(&dev->memory));
	json_object_set_new(object, "queues", vub_queues_json(dev));
	json_object_set_new(object, "traffic", traffic);
	json_object_set_new(object, "release", vub_release_json(dev));
	vub_put(object, "stats-updates", dev->stats.nr_updates);
	json_object_set_new(object, "hints", vub_hints_json(&dev->hints));
	json_object_set_new(object, "rejects",
			    vub_named_counters(vub_reject_names,
					       dev->nr_rejects,
					       VUB_NR_REJECTS));
	json_object_set_new(object, "breaches",
			    vub_named_counters(vub_breach_names,
					       dev->nr_breaches,
					       VUB_NR_BREACHES));
	vub_put(object, "bad-messages", dev->nr_bad_messages);
	if (dev->options->test_commands)
		json_object_set_new(object, "fill", vub_fill_json(&dev->fill));
	return object;
}
