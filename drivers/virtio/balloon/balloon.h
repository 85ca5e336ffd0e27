/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The virtio balloon's model and vocabulary.
 *
 * A *chunk* is a block of 2^order guest pages: a single page, which the base's
 * balloon compaction can move, or a large chunk of a whole pageblock or more.
 * A chunk is on one list, through the lru of its first page, and in one state:
 *
 *   state       host knows?      list                      may be freed
 *   held        no               vb->held                  at once
 *   in flight   being told       slot of the inflate or    once acked
 *                                the reporting queue
 *   inflated    yes              movable, fixed or large   at once; with
 *                                                          MUST_TELL_HOST
 *                                                          once acked
 *   returning   being told back  slot of the deflate queue once acked
 *
 * A large chunk that went to the host by the reporting queue needs no message to come
 * back: inflated, it is on vb->reported, and may be freed at once in any case.
 *
 * A *slot* is up to 4 KiB that name pages, on their way to the host: PFN arrays in up
 * to VB_SLOT_PARTS buffers, windows of the page bitmap in one, or a scatterlist of the
 * pages themselves. A *queue* is a virtqueue with its slots. What is in flight counts in
 * *portions* of VB_PFNS_PER_BUFFER PFNs, 1 MiB, whichever way it is named.
 *
 * Data flows one way: target -> resize -> chunks -> slots -> queue. Answers come
 * back the same way through vb_queue_reap(). The resize work is the only one
 * that moves the balloon towards the target; it never waits for the host: it
 * does what it can and is queued again by the next answer.
 *
 * vb->lock protects chunks, counters, slots and the queues. It is a spinlock
 * under which nothing is allocated, so the OOM path may take it. Order: page
 * lock -> vb->lock -> vb->bdi.pages_lock. A page is only ever trylocked inside
 * vb->lock. Everything here runs in process context; the virtqueue callbacks
 * do no more than queue work and wake waiters.
 *
 * Copyright (C) the project's developers
 */
#ifndef _VIRTIO_BALLOON_H
#define _VIRTIO_BALLOON_H

#include <linux/balloon_compaction.h>
#include <linux/list.h>
#include <linux/notifier.h>
#include <linux/page_reporting.h>
#include <linux/scatterlist.h>
#include <linux/shrinker.h>
#include <linux/spinlock.h>
#include <linux/virtio.h>
#include <linux/virtio_balloon.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "bitmap.h"
#include "codec.h"

struct dentry;
struct vb;

/* A slot's payload is 4 KiB whatever the page size: four buffers of 256 PFNs. */
#define VB_SLOT_BYTES		VIRTIO_BALLOON_BITMAP_BYTES
#define VB_SLOT_PARTS		4u
#define VB_SLOT_PFNS		(VB_SLOT_PARTS * VB_PFNS_PER_BUFFER)
#define VB_SLOT_PAGES		(VB_SLOT_PFNS / VB_PFNS_PER_PAGE)

/* Ranges in a slot, which then has as many ring entries. */
#define VB_SLOT_RANGES		min_t(unsigned int, PAGE_REPORTING_CAPACITY, \
				      VB_SLOT_BYTES / sizeof(struct scatterlist))

/* A chunk must fit into one slot, whatever the architecture's largest block. */
#define VB_MAX_ORDER		min_t(unsigned int, MAX_PAGE_ORDER, \
				      ilog2(VB_SLOT_PAGES))

/**
 * enum vb_state - where a chunk stands
 * @VB_HELD: allocated, the host was not told
 * @VB_IN_FLIGHT: named to the host, which has not answered yet
 * @VB_INFLATED: the host's
 * @VB_RETURNING: asked back, and not to be used before the host answers
 * @VB_NR_STATES: how many states there are
 */
enum vb_state {
	VB_HELD,
	VB_IN_FLIGHT,
	VB_INFLATED,
	VB_RETURNING,
	VB_NR_STATES
};

/**
 * enum vb_flag - bits of vb->flags
 * @VB_CONFIG_CHANGED: num_pages has to be read again
 * @VB_HINTS_CHANGED: free_page_hint_cmd_id has to be read again
 * @VB_STOPPING: the device goes away or sleeps: start nothing new
 * @VB_DEAD: the device is being reset: nothing will be answered any more
 * @VB_QUIET: the device was reset: it can touch nothing of ours any more
 * @VB_SAID_FIRST: the line about the first inflation was printed
 * @VB_SILENT: the host has left requests unanswered for long
 * @VB_REPORTING: registered as the page reporting device
 */
enum vb_flag {
	VB_CONFIG_CHANGED,
	VB_HINTS_CHANGED,
	VB_STOPPING,
	VB_DEAD,
	VB_QUIET,
	VB_SAID_FIRST,
	VB_SILENT,
	VB_REPORTING,
};

/**
 * enum vb_use - what a slot is wanted for, and so what it may take
 * @VB_USE_BATCH: a resize: a batch, as far as the window has room
 * @VB_USE_MOVE: compaction: what the reserve leaves
 * @VB_USE_OOM: everything
 */
enum vb_use {
	VB_USE_BATCH,
	VB_USE_MOVE,
	VB_USE_OOM,
};

/**
 * enum vb_codec - how a queue names pages
 * @VB_CODEC_PFNS: by arrays of PFNs
 * @VB_CODEC_BITMAP: by windows of the page bitmap
 * @VB_CODEC_RANGES: they are the buffer, as in a report of free pages
 */
enum vb_codec {
	VB_CODEC_PFNS,
	VB_CODEC_BITMAP,
	VB_CODEC_RANGES,
};

/**
 * enum vb_wake_reason - why the system must not fall asleep now
 * @VB_WAKE_RESIZE: a target has to be reached
 * @VB_WAKE_STATS: the host waits for statistics
 */
enum vb_wake_reason {
	VB_WAKE_RESIZE = BIT(0),
	VB_WAKE_STATS = BIT(1),
};

/**
 * struct vb_slot - up to 4 KiB that name pages, on their way to the host
 * @node: entry of the queue's free list
 * @chunks: what it names and whoever gets it back when the host has answered
 * @payload: what the host reads, VB_SLOT_BYTES
 * @len: bytes of PFNs in it
 * @map: windows in it
 * @nr_ranges: ranges in it
 * @max_ranges: ranges that the ring has room for
 * @nr_pages: guest pages that are named
 * @max_pages: guest pages that the ring has room for
 * @parts_left: buffers that the host has not answered yet
 * @load: portions that are named
 * @moved: instead of @chunks, the page that compaction has moved away from: its
 *	   lru belongs to compaction
 * @migration: carries the page that compaction has moved to
 * @waited: somebody waits for the answer and has the slot to himself
 */
struct vb_slot {
	struct list_head node;
	struct list_head chunks;
	void *payload;
	unsigned int len;
	struct vb_bitmap map;
	unsigned int nr_ranges;
	unsigned int max_ranges;
	unsigned int nr_pages;
	unsigned int max_pages;
	unsigned int parts_left;
	unsigned int load;
	struct page *moved;
	bool migration;
	bool waited;
};

/**
 * struct vb_queue - inflateq, deflateq or the reporting queue
 * @vb: whose queue it is
 * @vq: the virtqueue; NULL when the feature is not in use
 * @codec: how it names pages
 * @done: what happens to a slot when the host has answered all of it
 * @free: idle slots, besides @reserve
 * @reserve: the slot for paths that must not allocate; NULL while in use
 * @nr_slots: slots that exist, besides the reserve
 * @nr_wanted: slots that the next batch could use
 * @parts: ring entries that the largest slot needs, or what the ring has
 * @entries: ring entries that batches may ever have
 * @limit: portions that batches may ever have
 * @floor: portions that a full slot needs, or @limit where that is less
 * @window: portions that may be in the ring now
 * @load: portions in the ring
 * @unkicked_load: those of them that the host was not notified of
 * @in_flight: buffers in the ring
 * @in_batch: those of them that do not carry a page that compaction moves
 * @unkicked: buffers that the host was not notified of
 * @stalled_since: jiffies of the last answer, or of the first request after idle
 * @nr_kicks: notifications, since probe
 * @nr_buffers: buffers, since probe
 * @nr_pages: guest pages that they named, since probe
 * @longest: bytes of the longest buffer, since probe
 * @density: how well windows were used, since probe
 */
struct vb_queue {
	struct vb *vb;
	struct virtqueue *vq;
	enum vb_codec codec;
	void (*done)(struct vb *vb, struct vb_slot *slot);
	struct list_head free;
	struct vb_slot *reserve;
	unsigned int nr_slots;
	unsigned int nr_wanted;
	unsigned int parts;
	unsigned int entries;
	unsigned int limit;
	unsigned int floor;
	unsigned int window;
	unsigned int load;
	unsigned int unkicked_load;
	unsigned int in_flight;
	unsigned int in_batch;
	unsigned int unkicked;
	unsigned long stalled_since;
	u64 nr_kicks;
	u64 nr_buffers;
	u64 nr_pages;
	unsigned int longest;
	struct vb_density density;
};

/**
 * struct vb_hints - free page hints
 * @vq: the virtqueue; NULL when the feature is not in use
 * @work: sends and takes back, see hints.c
 * @lock: protects the lists, their lengths and the queue
 * @offered: blocks whose buffers the device has not returned
 * @taken: blocks that the device is done with
 * @nr_offered: length of @offered
 * @nr_taken: length of @taken
 * @host_id: command id that the device wants answered, as last read
 * @cmd_id: command id that was answered last
 * @sending: between a start and a stop command
 * @stop_due: a stop command has to be sent
 * @start: buffer of the start command
 * @stop: buffer of the stop command
 * @start_busy: the device has @start
 * @stop_busy: the device has @stop
 * @shrinker: gives @taken back under memory pressure
 */
struct vb_hints {
	struct virtqueue *vq;
	struct work_struct work;
	spinlock_t lock; /* the lists, their lengths, the queue */
	struct list_head offered;
	struct list_head taken;
	unsigned long nr_offered;
	unsigned long nr_taken;
	u32 host_id;
	u32 cmd_id;
	bool sending;
	bool stop_due;
	__virtio32 start;
	__virtio32 stop;
	bool start_busy;
	bool stop_busy;
	struct shrinker *shrinker;
};

/**
 * struct vb - one balloon device
 * @vdev: the virtio device
 * @wq: runs all works of this device, at high priority
 * @flags: enum vb_flag
 * @acked: woken by every answer, by stopping and by a dead device
 * @lock: see the top of this file
 * @held: chunks that the host was not told of
 * @large: inflated large chunks that were named
 * @reported: inflated chunks, and pieces of them, that went by the reporting queue
 * @fixed: inflated single pages that compaction cannot move
 * @bdi: inflated single pages that compaction can move, and those it moves now
 * @nr: pages in each state
 * @nr_moving: those of them in flight that take the place of others
 * @nr_reported: inflated ones on @reported
 * @inflate: inflateq
 * @deflate: deflateq
 * @report: the reporting queue, for free pages and for large chunks
 * @resize: the work that follows the target
 * @target: pages that the host wants, as last read
 * @relief: pages that the OOM path gave back, by which the balloon stays below
 *	    @target until the host wants another one
 * @resizing: the resize work has somewhere to go; compaction keeps off
 * @actual: config field actual, as last written; in units of 4 KiB
 * @actual_written: get_jiffies_64() of that
 * @max_order: largest chunk that both queues can carry in one slot
 * @alloc_order: largest order that is still worth trying
 * @failures: rounds in a row in which no page could be had
 * @next_try: jiffies from which on the next such round is worth it
 * @next_said: jiffies from which on a further line about failing may be printed
 * @next_silent: the same about a silent host
 * @stats_vq: statistics queue; NULL when the feature is not in use
 * @stats_work: answers a request for statistics
 * @stats: the answer; the device has it between two requests
 * @hints: free page hints
 * @report_slot: the report of free pages that is under way
 * @report_waits: one waits for room in the ring
 * @large_by_report: it takes large chunks, too
 * @prdi: registration as page reporting device
 * @reporting_busy: the device works on a report
 * @oom_nb: registration as OOM notifier
 * @memory_nb: registration as memory hotplug notifier
 * @leaving_start: first page frame that is about to be unplugged
 * @leaving_end: page frame after the last one
 * @wake_lock: protects @wake_reasons
 * @wake_reasons: enum vb_wake_reason, those that hold now
 * @debugfs: this device's directory
 * @nr_alloc_fails: rounds that got no page, since probe
 * @nr_returned: pages that the host has let go of, since probe
 * @nr_oom_calls: calls of the OOM notifier, since probe
 * @nr_oom_pages: pages that it gave back, since probe
 * @nr_oom_untold: those of them that the host was never told of
 * @nr_migrations: pages that compaction moved, since probe
 * @nr_reports: reports that the device has answered, since probe
 * @nr_reported_pages: pages in them
 */
struct vb {
	struct virtio_device *vdev;
	struct workqueue_struct *wq;
	unsigned long flags;
	wait_queue_head_t acked;

	spinlock_t lock; /* chunks, counters, slots, queues */
	struct list_head held;
	struct list_head large;
	struct list_head reported;
	struct list_head fixed;
	struct balloon_dev_info bdi;
	unsigned long nr[VB_NR_STATES];
	unsigned long nr_moving;
	unsigned long nr_reported;
	struct vb_queue inflate;
	struct vb_queue deflate;
	struct vb_queue report;

	struct delayed_work resize;
	unsigned long target;
	unsigned long relief;
	bool resizing;
	u32 actual;
	u64 actual_written;
	unsigned int max_order;
	unsigned int alloc_order;
	unsigned int failures;
	unsigned long next_try;
	unsigned long next_said;
	unsigned long next_silent;

	struct virtqueue *stats_vq;
	struct work_struct stats_work;
	struct virtio_balloon_stat stats[VIRTIO_BALLOON_S_NR];

	struct vb_hints hints;

	struct vb_slot report_slot;
	bool report_waits;
	bool large_by_report;
	struct page_reporting_dev_info prdi;
	bool reporting_busy;

	struct notifier_block oom_nb;
	struct notifier_block memory_nb;
	unsigned long leaving_start;
	unsigned long leaving_end;

	spinlock_t wake_lock; /* @wake_reasons */
	unsigned int wake_reasons;

	struct dentry *debugfs;
	u64 nr_alloc_fails;
	u64 nr_returned;
	u64 nr_oom_calls;
	u64 nr_oom_pages;
	u64 nr_oom_untold;
	u64 nr_migrations;
	u64 nr_reports;
	u64 nr_reported_pages;
};

/* A device that must ask the host before it uses a page again. */
static inline bool vb_must_tell(const struct vb *vb)
{
	return virtio_has_feature(vb->vdev, VIRTIO_BALLOON_F_MUST_TELL_HOST);
}

/* Pages are named by windows of a bitmap, not by PFN arrays. */
static inline bool vb_by_bitmap(const struct vb *vb)
{
	return virtio_has_feature(vb->vdev, VIRTIO_BALLOON_F_PAGE_BITMAP);
}

/* More than one batch is in the ring: hosts with the bitmap take one at a time. */
static inline bool vb_queue_pipelines(const struct vb_queue *q)
{
	return q->codec == VB_CODEC_BITMAP;
}

/* Large chunks go to the host by the reporting queue. */
static inline bool vb_by_report(const struct vb *vb)
{
	return vb->report.vq && vb->large_by_report;
}

/* Pages that are in the balloon or on the way into it. */
static inline unsigned long vb_committed(const struct vb *vb)
{
	return vb->nr[VB_HELD] + vb->nr[VB_IN_FLIGHT] + vb->nr[VB_INFLATED];
}

/*
 * Pages that the operator is told of. Those on their way back count until the host has
 * let go of them, and one that takes another one's place does from the beginning.
 */
static inline unsigned long vb_actual(const struct vb *vb)
{
	return vb->nr[VB_INFLATED] + vb->nr[VB_RETURNING] + vb->nr_moving;
}

/* Pages that the balloon is to have once the OOM path was given its way. */
static inline unsigned long vb_wanted(const struct vb *vb)
{
	return vb->target - min(vb->target, vb->relief);
}

/* Nothing new starts then. */
static inline bool vb_gone(const struct vb *vb)
{
	return test_bit(VB_STOPPING, &vb->flags) ||
	       test_bit(VB_DEAD, &vb->flags);
}

/* The host has requests of the resize, of compaction, or some that the resize waits for. */
static inline bool vb_waits(const struct vb *vb)
{
	return vb->inflate.in_flight || vb->deflate.in_flight || vb->report.load ||
	       (vb_by_report(vb) && vb->report.in_flight);
}

/* The host may want something else, or nothing at all. */
static inline bool vb_mind_changed(const struct vb *vb)
{
	return test_bit(VB_CONFIG_CHANGED, &vb->flags) || vb_gone(vb);
}

/* chunks.c */
bool vb_order_is_large(unsigned int order);
unsigned int vb_chunk_order(const struct page *page);
unsigned long vb_chunk_pages(const struct page *page);
unsigned long vb_chunks_alloc(struct vb *vb, struct list_head *chunks,
			      unsigned long nr_pages);
void vb_chunks_free(struct list_head *chunks);
void vb_chunk_mark(struct page *page);
void vb_chunk_split(struct page *page, struct list_head *chunks);
void vb_chunks_sort(struct list_head *chunks);
bool vb_chunk_leaves(const struct vb *vb, const struct page *page);
void vb_chunks_insert(struct vb *vb, struct list_head *chunks);
void vb_account_enter(struct vb *vb, struct page *page, bool migration);
void vb_account_leave(struct vb *vb, struct page *page, bool migration);
unsigned long vb_chunks_take(struct vb *vb, unsigned long nr_pages,
			     struct list_head *chunks);
void vb_reported_remove(struct vb *vb, struct page *page,
			struct list_head *chunks);
unsigned long vb_reported_leave(struct vb *vb, unsigned long nr_pages,
				struct list_head *chunks);
unsigned long vb_chunks_leave(struct vb *vb, unsigned long nr_pages,
			      struct list_head *chunks);

/* engine.c */
int vb_queue_init(struct vb *vb, struct vb_queue *q,
		  void (*done)(struct vb *vb, struct vb_slot *slot));
void vb_queue_destroy(struct vb_queue *q);
void vb_queue_attach(struct vb_queue *q, struct virtqueue *vq,
		     enum vb_codec codec);
void vb_queue_detach(struct vb_queue *q);
void vb_queue_grow(struct vb_queue *q, unsigned int nr_slots, gfp_t gfp);
void vb_queue_trim(struct vb_queue *q);
struct vb_slot *vb_slot_get(struct vb_queue *q, enum vb_use use);
void vb_slot_put(struct vb_queue *q, struct vb_slot *slot);
bool vb_slot_name(struct vb_queue *q, struct vb_slot *slot,
		  const struct page *page, unsigned int order);
bool vb_slot_add(struct vb_queue *q, struct vb_slot *slot, struct page *page);
int __must_check vb_queue_submit(struct vb_queue *q, struct vb_slot *slot);
int __must_check vb_queue_submit_ranges(struct vb_queue *q, struct vb_slot *slot,
					struct scatterlist *sg,
					unsigned int nents);
unsigned int vb_queue_batch(const struct vb_queue *q);
bool vb_queue_has_room(const struct vb_queue *q);
void vb_queue_kick(struct vb_queue *q);
void vb_queue_kick_full(struct vb_queue *q);
unsigned int vb_queue_reap(struct vb_queue *q);
unsigned int vb_queue_take_answers(struct vb_queue *q);
bool vb_queue_broken(struct vb_queue *q);
bool vb_queue_rearm(struct vb_queue *q);
bool vb_queue_drain(struct vb_queue *q, unsigned long until);

/* resize.c */
void vb_resize_init(struct vb *vb);
void vb_resize_kick(struct vb *vb);
unsigned long vb_total_ram(const struct vb *vb);
void vb_inflate_done(struct vb *vb, struct vb_slot *slot);
void vb_deflate_done(struct vb *vb, struct vb_slot *slot);
void vb_report_done(struct vb *vb, struct vb_slot *slot);
unsigned long vb_release_unnamed(struct vb *vb, unsigned long nr_pages,
				 struct list_head *freed);
unsigned long vb_deflate_some(struct vb *vb, unsigned long nr_pages,
			      enum vb_use use, struct list_head *freed);
bool vb_drain_inflation(struct vb *vb, unsigned long until);
void vb_tell_all(struct vb *vb);
void vb_take_back(struct vb *vb, bool keep);
void vb_write_actual(struct vb *vb);
void vb_settle(struct vb *vb);

/* stats.c */
void vb_stats_init(struct vb *vb);
void vb_stats_offer(struct vb *vb);
void vb_stats_callback(struct virtqueue *vq);

/* hints.c */
void vb_hints_init(struct vb *vb);
int vb_hints_register(struct vb *vb);
void vb_hints_unregister(struct vb *vb);
void vb_hints_attach(struct vb *vb, struct virtqueue *vq);
void vb_hints_detach(struct vb *vb);
void vb_hints_kick(struct vb *vb);
void vb_hints_callback(struct virtqueue *vq);

/* reporting.c */
void vb_reporting_validate(struct virtio_device *vdev);
void vb_reporting_write_poison(struct vb *vb);
void vb_reporting_attach(struct vb *vb, struct virtqueue *vq);
void vb_reporting_register(struct vb *vb);
void vb_reporting_quiesce(struct vb *vb);
void vb_reporting_unregister(struct vb *vb);

/* oom.c */
int vb_oom_register(struct vb *vb);
void vb_oom_unregister(struct vb *vb);

/* hotplug.c */
#if defined(CONFIG_MEMORY_HOTPLUG) && defined(CONFIG_BALLOON_COMPACTION)
int vb_hotplug_register(struct vb *vb);
void vb_hotplug_unregister(struct vb *vb);
#else
static inline int vb_hotplug_register(struct vb *vb)
{
	return 0;
}

static inline void vb_hotplug_unregister(struct vb *vb)
{
}
#endif

/* migrate.c */
#ifdef CONFIG_BALLOON_COMPACTION
int vb_migrate(struct balloon_dev_info *bdi, struct page *newpage,
	       struct page *page, enum migrate_mode mode);
#endif

/* debugfs.c */
void vb_debugfs_create(struct vb *vb);
void vb_debugfs_remove(struct vb *vb);
void vb_debugfs_init(void);
void vb_debugfs_exit(void);

/* virtio_balloon.c */
void vb_stay_awake(struct vb *vb, enum vb_wake_reason reason);
void vb_may_sleep(struct vb *vb, enum vb_wake_reason reason);
void vb_reset(struct vb *vb);

#endif /* _VIRTIO_BALLOON_H */
