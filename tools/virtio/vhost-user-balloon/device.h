/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The balloon device.
 *
 * A *queue* is a virtqueue with its descriptors; its *role* says what it is for.
 * Buffers of the roles that name memory go through a *batch*: all that the
 * driver has offered is gathered, sorted and merged, then released, and only
 * then given back, with one call. Statistics and hints have their own few
 * steps. All of it happens in vub_device_work(), a step at a time.
 *
 *   kick -> pending -> gather -> merge -> release -> give -> call
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_DEVICE_H
#define VUB_DEVICE_H

#include <linux/virtio_balloon.h>

#include "decode.h"
#include "loop.h"
#include "memory.h"
#include "options.h"
#include "quirks.h"
#include "release.h"
#include "ring.h"
#include "util.h"

struct vub_conn;
struct vub_device;
struct vub_qmp;

/* Queues that a VMM may set up; what is more than the device uses stays idle. */
#define VUB_MAX_QUEUES		8
/* The longest payload of one buffer. */
#define VUB_MAX_PAYLOAD		65536

/**
 * enum vub_role - what a queue is for
 * @VUB_INFLATE: the driver names pages that it gives away
 * @VUB_DEFLATE: the driver names pages that it takes back
 * @VUB_STATS: the driver answers with statistics
 * @VUB_HINT: the driver hints at free pages
 * @VUB_REPORT: the driver reports free pages
 * @VUB_NR_ROLES: how many there are
 * @VUB_IDLE: for nothing
 */
enum vub_role {
	VUB_INFLATE,
	VUB_DEFLATE,
	VUB_STATS,
	VUB_HINT,
	VUB_REPORT,
	VUB_NR_ROLES,
	VUB_IDLE = VUB_NR_ROLES
};

/**
 * struct vub_late - a buffer that is given back later
 * @due: when; UINT64_MAX: not before the operator says so
 * @head: the driver's name for it
 */
struct vub_late {
	uint64_t due;
	uint16_t head;
};

/**
 * struct vub_queue - a virtqueue with its descriptors
 * @dev: whose it is
 * @index: its number
 * @role: what it is for
 * @ring: the ring
 * @enabled: the VMM lets it be served
 * @pending: there may be buffers to take
 * @kick: where kicks come from
 * @call_fd: where calls go to, or -1
 * @err_fd: where it is said that the ring is broken, or -1
 * @late: buffers that are given back later, the first to come first
 * @nr_late: how many there are
 * @late_timer: for the first of them
 * @nr_kicks: kicks that came
 * @nr_buffers: buffers that were taken
 * @nr_calls: calls that were made
 */
struct vub_queue {
	struct vub_device *dev;
	unsigned int index;
	enum vub_role role;
	struct vub_ring ring;
	bool enabled;
	bool pending;
	struct vub_source kick;
	int call_fd;
	int err_fd;
	struct vub_late late[VUB_RING_MAX];
	unsigned int nr_late;
	struct vub_timer late_timer;
	uint64_t nr_kicks;
	uint64_t nr_buffers;
	uint64_t nr_calls;
};

/**
 * struct vub_traffic - what a role has done, since the daemon started
 * @decoded: PFNs, windows and bits
 * @nr_buffers: buffers
 * @nr_batches: batches that they came in
 * @nr_runs: runs that were left after merging
 * @run_pfns: the same by their length
 * @decode_ns: time for walking rings, copying and decoding
 * @translate_ns: time for sorting and merging
 * @release_ns: time for giving memory back to the host
 */
struct vub_traffic {
	struct vub_decoded decoded;
	uint64_t nr_buffers;
	uint64_t nr_batches;
	uint64_t nr_runs;
	uint64_t run_pfns[VUB_BUCKETS];
	uint64_t decode_ns;
	uint64_t translate_ns;
	uint64_t release_ns;
};

/**
 * struct vub_batch - buffers that are being worked on together
 * @queue: where they came from; NULL: there are none
 * @head: the driver's names for them
 * @nr: how many there are
 * @nr_read: bytes of guest memory that were read for them
 * @runs: pages that they name
 * @cursor: how far these are released
 */
struct vub_batch {
	struct vub_queue *queue;
	uint16_t head[VUB_RING_MAX];
	unsigned int nr;
	uint64_t nr_read;
	struct vub_runs runs;
	struct vub_cursor cursor;
};

/**
 * struct vub_stats - the guest's statistics
 * @held: the device has the driver's buffer
 * @head: the driver's name for it
 * @val: figures by tag, UINT64_MAX where the guest gave none
 * @last_update: when they came, seconds of the epoch; 0: never
 * @interval: seconds between two requests, 0: none
 * @timer: for the next request
 * @nr_updates: how often they came
 */
struct vub_stats {
	bool held;
	uint16_t head;
	uint64_t val[VIRTIO_BALLOON_S_NR];
	uint64_t last_update;
	uint32_t interval;
	struct vub_timer timer;
	uint64_t nr_updates;
};

/**
 * enum vub_hint_state - where a round of hints stands
 * @VUB_HINT_IDLE: none was asked for
 * @VUB_HINT_ASKED: the driver has not begun
 * @VUB_HINT_RUNNING: the driver has begun
 * @VUB_HINT_ENDED: the driver has nothing more, or was stopped
 */
enum vub_hint_state {
	VUB_HINT_IDLE,
	VUB_HINT_ASKED,
	VUB_HINT_RUNNING,
	VUB_HINT_ENDED,
};

/**
 * struct vub_hints - free page hints
 * @state: where the round stands
 * @last_id: id of the last round
 * @nr_rounds: rounds that were asked for
 * @nr_blocks: blocks that were hinted at in this round
 * @bytes: bytes in them
 */
struct vub_hints {
	enum vub_hint_state state;
	uint32_t last_id;
	uint64_t nr_rounds;
	uint64_t nr_blocks;
	uint64_t bytes;
};

/**
 * struct vub_config - config space, in host byte order, but for num_pages
 * @actual: what the driver says that the balloon is, in units of 4 KiB
 * @cmd_id: what the driver is to do about hints
 * @poison_val: what the driver says that free pages are filled with
 */
struct vub_config {
	uint32_t actual;
	uint32_t cmd_id;
	uint32_t poison_val;
};

/**
 * struct vub_device - the balloon device
 * @options: the command line
 * @loop: the event loop
 * @conn: the VMM; NULL while there is none
 * @qmp: the operators; NULL if there is no socket for them
 * @offered: features that are offered
 * @acked: features that the driver has taken
 * @memory: guest memory
 * @queue: the queues
 * @target: bytes that the operator wants each guest to have
 * @config: config space
 * @stats: statistics
 * @hints: hints
 * @batch: buffers that are worked on now
 * @release: how memory is released, and what came of it
 * @turn: the queue that is looked at next
 * @chain: the buffer that is looked at
 * @payload: private copy of its payload
 * @traffic: counters of each role
 * @nr_rejects: counters of what was refused, by enum vub_reject
 * @nr_breaches: counters of broken rings, by enum vub_breach
 * @nr_bad_messages: messages of VMMs that broke a rule
 * @nr_guests: connections so far
 * @nr_poisoned: pages that were reported and not released, for their poison
 * @quirks: how each role misbehaves
 * @fill: memory that is filled instead of released
 * @lie: fields of config space that are not what they should be
 */
struct vub_device {
	const struct vub_options *options;
	struct vub_loop loop;
	struct vub_conn *conn;
	struct vub_qmp *qmp;
	uint64_t offered;
	uint64_t acked;
	struct vub_memory memory;
	struct vub_queue queue[VUB_MAX_QUEUES];
	uint64_t target;
	struct vub_config config;
	struct vub_stats stats;
	struct vub_hints hints;
	struct vub_batch batch;
	struct vub_release release;
	unsigned int turn;
	struct vub_chain chain;
	char payload[VUB_MAX_PAYLOAD];
	struct vub_traffic traffic[VUB_NR_ROLES];
	uint64_t nr_rejects[VUB_NR_REJECTS];
	uint64_t nr_breaches[VUB_NR_BREACHES];
	uint64_t nr_bad_messages;
	uint64_t nr_guests;
	uint64_t nr_poisoned;
	struct vub_queue_quirks quirks[VUB_NR_ROLES];
	struct vub_fill fill;
	struct vub_lie lie[VUB_CONFIG_FIELDS];
};

static inline bool vub_acked(const struct vub_device *dev, unsigned int feature)
{
	return dev->acked & VUB_BIT(feature);
}

/* device.c */
int vub_device_init(struct vub_device *dev, const struct vub_options *options);
void vub_device_destroy(struct vub_device *dev);
bool vub_device_work(void *arg);
int vub_device_set_features(struct vub_device *dev, uint64_t features);
void vub_device_stop(struct vub_device *dev);
void vub_device_reset(struct vub_device *dev);
void vub_device_disconnect(struct vub_device *dev);
struct vub_queue *vub_device_queue(struct vub_device *dev, enum vub_role role);
void vub_reject(struct vub_device *dev, enum vub_reject reject);
uint64_t vub_device_ram(const struct vub_device *dev);
const char *vub_role_name(enum vub_role role);

/* config.c */
bool vub_config_read(const struct vub_device *dev, uint32_t offset, void *buf,
		     uint32_t size);
bool vub_config_write(struct vub_device *dev, uint32_t offset, const void *buf,
		      uint32_t size);
void vub_config_changed(struct vub_device *dev);
void vub_config_reset(struct vub_device *dev);
uint32_t vub_num_pages(const struct vub_device *dev);
void vub_set_target(struct vub_device *dev, uint64_t bytes);
uint64_t vub_actual(const struct vub_device *dev);

/* batch.c */
void vub_batch_start(struct vub_batch *batch, struct vub_queue *queue);
void vub_batch_step(struct vub_device *dev, uint64_t deadline);

/* queue.c */
void vub_queue_init(struct vub_queue *queue, struct vub_device *dev,
		    unsigned int index);
bool vub_queue_ready(const struct vub_queue *queue);
bool vub_queue_take(struct vub_queue *queue);
void vub_queue_give(struct vub_queue *queue, const uint16_t *heads,
		    unsigned int nr);
void vub_queue_settle(struct vub_queue *queue);
void vub_queue_call_now(struct vub_queue *queue);
void vub_queue_late(struct vub_queue *queue, bool all);
int vub_queue_set_kick(struct vub_queue *queue, int fd);
void vub_queue_set_call(struct vub_queue *queue, int fd);
void vub_queue_set_err(struct vub_queue *queue, int fd);
int vub_queue_map(struct vub_queue *queue);
uint16_t vub_queue_stop(struct vub_queue *queue);
void vub_queue_reset(struct vub_queue *queue);

/* payload.c */
enum vub_reject vub_payload_copy(struct vub_device *dev);

/* stats.c */
void vub_stats_init(struct vub_device *dev);
void vub_stats_serve(struct vub_queue *queue);
void vub_stats_set_interval(struct vub_device *dev, uint32_t seconds);
void vub_stats_forget(struct vub_device *dev);
void vub_stats_reset(struct vub_device *dev);

/* hints.c */
void vub_hints_serve(struct vub_queue *queue);
void vub_hints_start(struct vub_device *dev);
void vub_hints_end(struct vub_device *dev, uint32_t cmd_id);
const char *vub_hint_state_name(enum vub_hint_state state);

#endif /* VUB_DEVICE_H */
