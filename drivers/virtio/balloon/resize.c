// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The way to the target.
 *
 * One work item moves the balloon. It takes the host's answers, reads the
 * target if it has changed, goes a step at a time while it can, and leaves. It
 * is queued again by answers, by a new target, and by a timer while it cannot
 * have memory or the host is silent. So nothing ever waits for a host here, and
 * a change of mind takes effect with the next step.
 *
 * Copyright (C) the project's developers
 */
#include <linux/delay.h>
#include <linux/mm.h>
#include <linux/swap.h>
#include <trace/events/virtio_balloon.h>

#include "balloon.h"
#include "policy.h"

/* A host that has said nothing for so long is mentioned in the log. */
#define VB_SILENCE		(10 * HZ)
/* Rounds without a page, some seconds, before there is one. */
#define VB_SAY_FAILURES		5
/* Least time between two lines about a target that cannot be reached. */
#define VB_SAY_INTERVAL		(60 * HZ)
/*
 * Least time between two writes of `actual` under way: a host that is busy with the
 * next batch can let the processor that writes wait for all of it.
 */
#define VB_ACTUAL_INTERVAL	(HZ / 50 ?: 1)
/* The same when nothing was answered for a while, and nobody has told. */
#define VB_ACTUAL_PATIENCE	(HZ / 2 ?: 1)
/* Longest run of the resize work. */
#define VB_RUN			(HZ / 2 ?: 1)
/* Longest that removal tries to give the balloon back by the rules. */
#define VB_TELL_PATIENCE	(3 * HZ)
/* Slots that stay after an OOM, since another one is likely. */
#define VB_RELIEF_SLOTS		8
/* Guest pages in one step, where a slot can name so many. */
#define VB_LONG_STEP_PAGES	(8 * VB_SLOT_PAGES)
/* Pages that compaction holds come back within so many milliseconds. */
#define VB_ISOLATED_MS		10

/* Guest pages in one step where PFNs name them: a slot. */
static unsigned long vb_step_pages(const struct vb *vb)
{
	return vb_by_bitmap(vb) || vb_by_report(vb) ? VB_LONG_STEP_PAGES :
						      VB_SLOT_PAGES;
}

static unsigned long vb_mib(unsigned long nr_pages)
{
	return nr_pages >> (20 - PAGE_SHIFT);
}

static void vb_read_target(struct vb *vb)
{
	unsigned long target;
	u32 num_pages;

	if (!test_and_clear_bit(VB_CONFIG_CHANGED, &vb->flags))
		return;
	/* A device that has lost its way says so, and does nothing more. */
	if (vb->vdev->config->get_status(vb->vdev) & VIRTIO_CONFIG_S_NEEDS_RESET)
		virtio_break_device(vb->vdev);
	virtio_cread_le(vb->vdev, struct virtio_balloon_config, num_pages,
			&num_pages);
	target = vb_target_pages(num_pages, PAGE_SHIFT);
	if (target == vb->target)
		return;

	spin_lock(&vb->lock);
	vb->target = target;
	vb->relief = 0;
	vb->failures = 0;
	spin_unlock(&vb->lock);
	trace_virtio_balloon_target(vb->vdev, target, vb_committed(vb));
}

/**
 * vb_write_actual() - tell the operator how much the balloon holds
 * @vb: the balloon
 *
 * Context: process context; only the resize work, or with that work disabled.
 */
void vb_write_actual(struct vb *vb)
{
	u32 actual;

	spin_lock(&vb->lock);
	actual = vb_actual(vb) * VB_PFNS_PER_PAGE;
	spin_unlock(&vb->lock);

	if (actual == vb->actual || test_bit(VB_DEAD, &vb->flags))
		return;
	vb->actual = actual;
	virtio_cwrite_le(vb->vdev, struct virtio_balloon_config, actual,
			 &actual);
	/* A busy host may have let that take long. */
	vb->actual_written = get_jiffies_64();
}

static void vb_update_actual(struct vb *vb, unsigned long interval)
{
	if (time_after_eq64(get_jiffies_64(), vb->actual_written + interval))
		vb_write_actual(vb);
}

/* What a slot names is the host's. */
static void vb_chunks_enter(struct vb *vb, struct vb_slot *slot)
{
	struct page *page;

	list_for_each_entry(page, &slot->chunks, lru)
		vb_account_enter(vb, page, slot->migration);
	vb_chunks_insert(vb, &slot->chunks);
}

/**
 * vb_inflate_done() - the host has taken what a slot names
 * @vb: the balloon, locked
 * @slot: the slot
 */
void vb_inflate_done(struct vb *vb, struct vb_slot *slot)
{
	vb->nr[VB_IN_FLIGHT] -= slot->nr_pages;
	vb->nr_moving -= slot->migration;
	vb_chunks_enter(vb, slot);
}

/**
 * vb_report_done() - the host has taken the chunks that a slot is
 * @vb: the balloon, locked
 * @slot: the slot
 */
void vb_report_done(struct vb *vb, struct vb_slot *slot)
{
	struct page *page, *next;
	LIST_HEAD(leaving);

	vb->nr[VB_IN_FLIGHT] -= slot->nr_pages;
	list_for_each_entry_safe(page, next, &slot->chunks, lru) {
		if (vb_chunk_leaves(vb, page)) {
			list_move(&page->lru, &leaving);
			continue;
		}
		vb_account_enter(vb, page, false);
		vb->nr_reported += vb_chunk_pages(page);
		list_move(&page->lru, &vb->reported);
	}
	vb_chunks_free(&leaving);
}

/**
 * vb_deflate_done() - the host has let go of what a slot names
 * @vb: the balloon, locked
 * @slot: the slot; without MUST_TELL_HOST its pages are in use already
 */
void vb_deflate_done(struct vb *vb, struct vb_slot *slot)
{
	if (slot->moved) {
		__ClearPageOffline(slot->moved);
		put_page(slot->moved);
		return;
	}
	if (list_empty(&slot->chunks))
		return;
	vb->nr[VB_RETURNING] -= slot->nr_pages;
	vb->nr_returned += slot->nr_pages;
	vb_chunks_free(&slot->chunks);
}

/**
 * vb_release_unnamed() - give up chunks that need no message
 * @vb: the balloon, locked
 * @nr_pages: guest pages wanted; the last chunk may be more than that
 * @freed: where they go
 *
 * Those that the host does not know of, then those that it has by the reporting queue.
 *
 * Return: guest pages released; 0 only if there are none.
 */
unsigned long vb_release_unnamed(struct vb *vb, unsigned long nr_pages,
				 struct list_head *freed)
{
	unsigned long done = 0;
	struct page *page;

	lockdep_assert_held(&vb->lock);

	while (done < nr_pages && !list_empty(&vb->held)) {
		page = list_first_entry(&vb->held, struct page, lru);
		done += vb_chunk_pages(page);
		list_move_tail(&page->lru, freed);
	}
	vb->nr[VB_HELD] -= done;
	if (done < nr_pages)
		done += vb_reported_leave(vb, nr_pages - done, freed);
	return done;
}

/* Move inflated chunks from a list to a slot, as many as it can name. */
static void vb_slot_take(struct vb *vb, struct vb_slot *slot,
			 struct list_head *chunks)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, chunks, lru) {
		if (!vb_slot_add(&vb->deflate, slot, page))
			return;
		vb_account_leave(vb, page, false);
	}
}

/**
 * vb_deflate_some() - ask inflated chunks back
 * @vb: the balloon, locked
 * @nr_pages: guest pages wanted, at most
 * @use: what for
 * @freed: where chunks go that the guest may use at once; nothing goes there
 *	   with MUST_TELL_HOST, vb_deflate_done() frees them then
 *
 * The caller kicks.
 *
 * Return: guest pages asked back; less than wanted when the host has as much
 * as it can take, or compaction holds the rest.
 */
unsigned long vb_deflate_some(struct vb *vb, unsigned long nr_pages,
			      enum vb_use use, struct list_head *freed)
{
	struct vb_slot *slot;
	unsigned long done = 0;
	LIST_HEAD(chunks);

	lockdep_assert_held(&vb->lock);

	while (done < nr_pages && (slot = vb_slot_get(&vb->deflate, use))) {
		if (list_empty(&chunks)) {
			vb_chunks_take(vb, min(nr_pages - done, slot->max_pages),
				       &chunks);
			vb_chunks_sort(&chunks);
		}
		vb_slot_take(vb, slot, &chunks);
		if (!slot->nr_pages) {
			vb_slot_put(&vb->deflate, slot);
			break;
		}
		if (vb_queue_submit(&vb->deflate, slot)) {
			/* A broken queue took nothing. */
			vb_chunks_enter(vb, slot);
			vb_slot_put(&vb->deflate, slot);
			break;
		}
		done += slot->nr_pages;
		if (vb_must_tell(vb))
			vb->nr[VB_RETURNING] += slot->nr_pages;
		else
			list_splice_tail_init(&slot->chunks, freed);
	}
	vb_chunks_insert(vb, &chunks);
	return done;
}

/* One step towards a smaller balloon. */
static bool vb_shrink(struct vb *vb, unsigned long nr_pages)
{
	unsigned long done;
	LIST_HEAD(freed);

	nr_pages = min(nr_pages, vb_step_pages(vb));
	/* Who waits for this memory must not wait for other memory first. */
	vb_queue_grow(&vb->deflate, vb->deflate.nr_wanted, GFP_NOWAIT);

	spin_lock(&vb->lock);
	done = vb_release_unnamed(vb, nr_pages, &freed);
	if (!done)
		done = vb_deflate_some(vb, nr_pages, VB_USE_BATCH, &freed);
	vb_queue_kick_full(&vb->deflate);
	spin_unlock(&vb->lock);

	vb_chunks_free(&freed);
	return done;
}

/* What a queue may have in a batch, and what is worth preparing while the host has one. */
static unsigned long vb_batch_pages(const struct vb_queue *q)
{
	return vb_queue_batch(q) * (VB_PFNS_PER_BUFFER / VB_PFNS_PER_PAGE);
}

/* The queue that tells the host of chunks of an order. */
static struct vb_queue *vb_queue_for(struct vb *vb, unsigned int order)
{
	return vb_by_report(vb) && vb_order_is_large(order) ? &vb->report :
							      &vb->inflate;
}

static struct page *vb_first_held(struct vb *vb)
{
	return list_first_entry_or_null(&vb->held, struct page, lru);
}

/* Fill a slot with the held chunks that go by its queue and come first. */
static void vb_slot_fill(struct vb *vb, struct vb_queue *q, struct vb_slot *slot)
{
	struct page *page;

	while ((page = vb_first_held(vb)) &&
	       vb_queue_for(vb, vb_chunk_order(page)) == q) {
		if (vb_slot_add(q, slot, page))
			continue;
		if (slot->nr_pages)
			return;
		/* From before a sleep, when the ring was larger. */
		list_del(&page->lru);
		vb_chunk_split(page, &vb->held);
	}
}

/*
 * Bring a batch of what is held in order when it can go out; false if it cannot. That
 * takes long, so it is done outside the lock. For that time the OOM path does not find
 * it, but what else is held or inflated.
 */
static bool vb_sort_held(struct vb *vb)
{
	unsigned long nr_named = 0, nr_reported = 0;
	struct page *page, *next;
	LIST_HEAD(named);
	LIST_HEAD(reported);

	spin_lock(&vb->lock);
	if (!vb_queue_has_room(&vb->inflate) ||
	    (vb_by_report(vb) && !vb_queue_has_room(&vb->report)) ||
	    vb->deflate.in_flight) {
		spin_unlock(&vb->lock);
		return false;
	}
	list_for_each_entry_safe(page, next, &vb->held, lru) {
		if (nr_named >= vb_batch_pages(&vb->inflate) ||
		    (vb_by_report(vb) &&
		     nr_reported >= vb_batch_pages(&vb->report)))
			break;
		if (vb_queue_for(vb, vb_chunk_order(page)) == &vb->report) {
			nr_reported += vb_chunk_pages(page);
			list_move_tail(&page->lru, &reported);
		} else {
			nr_named += vb_chunk_pages(page);
			list_move_tail(&page->lru, &named);
		}
	}
	spin_unlock(&vb->lock);

	vb_chunks_sort(&named);
	vb_chunks_sort(&reported);

	spin_lock(&vb->lock);
	list_splice(&named, &vb->held);
	list_splice(&reported, &vb->held);
	spin_unlock(&vb->lock);
	return true;
}

/*
 * Name held chunks to the host, as far as it can take them. A page that is on
 * its way back must not be named again before the host knows that: the two
 * queues have no order between them.
 */
static bool vb_send_held(struct vb *vb)
{
	struct vb_slot *slot;
	struct vb_queue *q;
	struct page *page;
	bool sent = false;

	lockdep_assert_held(&vb->lock);

	if (vb->deflate.in_flight)
		return false;
	while ((page = vb_first_held(vb))) {
		q = vb_queue_for(vb, vb_chunk_order(page));
		/* Free pages wait to be reported: it is their turn. */
		if (q == &vb->report && vb->report_waits)
			break;
		slot = vb_slot_get(q, VB_USE_BATCH);
		if (!slot)
			break;
		vb_slot_fill(vb, q, slot);
		if (vb_queue_submit(q, slot)) {
			list_splice_init(&slot->chunks, &vb->held);
			vb_slot_put(q, slot);
			break;
		}
		vb->nr[VB_HELD] -= slot->nr_pages;
		vb->nr[VB_IN_FLIGHT] += slot->nr_pages;
		sent = true;
	}
	/* What is left has to wait for the next batch. */
	if (!list_empty(&vb->held)) {
		vb_queue_kick(&vb->inflate);
		vb_queue_kick(&vb->report);
	}
	vb_queue_kick_full(&vb->inflate);
	vb_queue_kick_full(&vb->report);
	return sent;
}

/**
 * vb_total_ram() - all of the guest's RAM, also where MemTotal goes without the balloon
 * @vb: the balloon
 *
 * Return: pages.
 */
unsigned long vb_total_ram(const struct vb *vb)
{
	if (virtio_has_feature(vb->vdev, VIRTIO_BALLOON_F_DEFLATE_ON_OOM))
		return totalram_pages();
	return totalram_pages() + vb->nr[VB_INFLATED];
}

static unsigned long vb_room(const struct vb *vb, unsigned long wanted)
{
	long anon = global_node_page_state(NR_ACTIVE_ANON) +
		    global_node_page_state(NR_INACTIVE_ANON);
	unsigned long room;

	room = vb_room_pages(si_mem_available(), min(get_nr_swap_pages(), anon),
			     vb_reserve_pages(vb_total_ram(vb)));
	return vb_worth_taking(room, wanted, vb->failures) ? room : 0;
}

static void vb_say_first(struct vb *vb)
{
	if (test_and_set_bit(VB_SAID_FIRST, &vb->flags))
		return;
	dev_info(&vb->vdev->dev,
		 "first inflation: the host asks for %lu of %lu MiB; what the balloon holds is in debugfs, virtio_balloon/%s/state\n",
		 vb_mib(vb->target), vb_mib(vb_total_ram(vb)),
		 dev_name(&vb->vdev->dev));
}

/* No page could be had: say so, now and then, and come back later. */
static void vb_cannot(struct vb *vb)
{
	vb->failures++;
	vb->nr_alloc_fails++;
	vb->next_try = jiffies + msecs_to_jiffies(vb_backoff_ms(vb->failures));
	if (vb->failures < VB_SAY_FAILURES ||
	    (vb->next_said && time_before(jiffies, vb->next_said)))
		return;
	vb->next_said = jiffies + VB_SAY_INTERVAL;
	dev_info(&vb->vdev->dev,
		 "target out of reach: %lu of %lu MiB taken and the guest can spare no more; trying again as memory comes free\n",
		 vb_mib(vb_committed(vb)), vb_mib(vb->target));
}

static bool vb_resting(const struct vb *vb)
{
	return vb->failures && time_before(jiffies, vb->next_try);
}

/* One step towards a larger balloon. */
static bool vb_grow(struct vb *vb, unsigned long nr_pages)
{
	unsigned long got = 0;
	LIST_HEAD(chunks);
	bool sent = false;

	vb_queue_grow(&vb->inflate, vb->inflate.nr_wanted, GFP_KERNEL);
	if (vb_by_report(vb))
		vb_queue_grow(&vb->report, vb->report.nr_wanted, GFP_KERNEL);

	if (nr_pages &&
	    vb->nr[VB_HELD] < vb_batch_pages(vb_queue_for(vb, vb->alloc_order)) &&
	    !vb_resting(vb)) {
		vb_say_first(vb);
		nr_pages = min3(nr_pages, vb_step_pages(vb),
				vb_room(vb, nr_pages));
		got = vb_chunks_alloc(vb, &chunks, nr_pages);
		if (got)
			vb->failures = 0;
		else
			vb_cannot(vb);
	}

	spin_lock(&vb->lock);
	list_splice_tail(&chunks, &vb->held);
	vb->nr[VB_HELD] += got;
	spin_unlock(&vb->lock);

	if (vb_sort_held(vb)) {
		spin_lock(&vb->lock);
		sent = vb_send_held(vb);
		spin_unlock(&vb->lock);
	}
	return got || sent;
}

static bool vb_step(struct vb *vb)
{
	unsigned long wanted, have, held;

	spin_lock(&vb->lock);
	wanted = vb_wanted(vb);
	have = vb_committed(vb);
	held = vb->nr[VB_HELD];
	vb->resizing = have > wanted || held ||
		       (have < wanted && !vb_resting(vb));
	spin_unlock(&vb->lock);

	if (have > wanted)
		return vb_shrink(vb, have - wanted);
	if (have < wanted || held)
		return vb_grow(vb, wanted - have);
	return false;
}

/**
 * vb_settle() - make pages movable that were not when they came in
 * @vb: the balloon, locked
 *
 * Somebody had their locks.
 */
void vb_settle(struct vb *vb)
{
	LIST_HEAD(fixed);

	lockdep_assert_held(&vb->lock);

	if (!IS_ENABLED(CONFIG_BALLOON_COMPACTION))
		return;
	list_splice_init(&vb->fixed, &fixed);
	vb_chunks_insert(vb, &fixed);
}

/* A silent host gets less to hold; one line says that it is silent. */
static void vb_mind_silence(struct vb *vb, struct vb_queue *q)
{
	if (!q->in_flight || time_before(jiffies, q->stalled_since + HZ))
		return;
	q->window = vb_window_shrink(q->window, q->floor);
	if (time_before(jiffies, q->stalled_since + VB_SILENCE) ||
	    test_and_set_bit(VB_SILENT, &vb->flags) ||
	    (vb->next_silent && time_before(jiffies, vb->next_silent)))
		return;
	vb->next_silent = jiffies + VB_SAY_INTERVAL;
	dev_warn(&vb->vdev->dev,
		 "the host does not answer on %s: %lu MiB wait for it, the resize goes on when it does\n",
		 q->vq->name, vb_mib(vb->nr[VB_IN_FLIGHT] + vb->nr[VB_RETURNING]));
}

/*
 * A host that is silent there may still answer elsewhere. What it has by then stays in
 * flight until it does.
 */
static void vb_mind_report_silence(struct vb *vb)
{
	struct vb_queue *q = &vb->report;

	vb_mind_silence(vb, q);
	if (!q->in_flight || time_before(jiffies, q->stalled_since + VB_SILENCE))
		return;
	vb->large_by_report = false;
	vb_resize_kick(vb);
}

/*
 * When to look again if no answer and no new target comes first: at a host that
 * may have lost an interrupt, at pages that compaction holds, at memory that
 * may have come free. MAX_JIFFY_OFFSET if there is nothing to look at.
 */
static unsigned long vb_next_look(const struct vb *vb)
{
	unsigned long have = vb_committed(vb), wanted = vb_wanted(vb);
	unsigned long delay = MAX_JIFFY_OFFSET, now = jiffies;

	lockdep_assert_held(&vb->lock);

	if (vb_waits(vb))
		delay = HZ;
	else if (have > wanted)
		delay = msecs_to_jiffies(VB_ISOLATED_MS);
	if (have < wanted && vb->failures)
		delay = min(delay, time_after(vb->next_try, now) ?
				   vb->next_try - now : 0);
	return delay;
}

/* Leave the work: notify, report, and see that somebody wakes us. */
static bool vb_leave(struct vb *vb)
{
	unsigned long delay;
	bool again, idle;

	spin_lock(&vb->lock);
	vb_queue_kick(&vb->inflate);
	vb_queue_kick(&vb->deflate);
	vb_queue_kick(&vb->report);
	vb_settle(vb);
	vb_mind_silence(vb, &vb->inflate);
	vb_mind_silence(vb, &vb->deflate);
	if (vb_by_report(vb))
		vb_mind_report_silence(vb);
	again = !vb_queue_rearm(&vb->inflate) || !vb_queue_rearm(&vb->deflate) ||
		!vb_queue_rearm(&vb->report);
	idle = !vb_waits(vb) &&
	       (vb_committed(vb) == vb_wanted(vb) || vb_resting(vb));
	delay = vb_next_look(vb);
	spin_unlock(&vb->lock);

	if (!idle) {
		vb_update_actual(vb, VB_ACTUAL_PATIENCE);
	} else {
		vb_write_actual(vb);
		vb_queue_trim(&vb->inflate);
		vb_queue_trim(&vb->report);
		if (!vb->relief)
			vb_queue_trim(&vb->deflate);
		vb_may_sleep(vb, VB_WAKE_RESIZE);
	}
	if (delay != MAX_JIFFY_OFFSET)
		queue_delayed_work(vb->wq, &vb->resize, delay);
	return !again;
}

/*
 * `actual` tells of each batch. Where only one is out, it is over when its last answer
 * comes.
 */
static bool vb_reap_batch(struct vb_queue *q)
{
	return vb_queue_reap(q) && (vb_queue_pipelines(q) || !q->in_flight);
}

static bool vb_reap_all(struct vb *vb)
{
	bool broken, batch;

	spin_lock(&vb->lock);
	batch = vb_reap_batch(&vb->inflate);
	if (vb_reap_batch(&vb->deflate))
		batch = true;
	if (vb_reap_batch(&vb->report))
		batch = true;
	broken = vb_queue_broken(&vb->inflate) ||
		 vb_queue_broken(&vb->deflate) ||
		 vb_queue_broken(&vb->report);
	spin_unlock(&vb->lock);

	wake_up_all(&vb->acked);
	if (batch && !broken)
		vb_update_actual(vb, VB_ACTUAL_INTERVAL);
	return !broken;
}

static void vb_broke(struct vb *vb)
{
	dev_err(&vb->vdev->dev,
		"the device broke a queue: it is reset, and the guest gets %lu MiB back; unbind and bind the driver to start again\n",
		vb_mib(vb_committed(vb) + vb->nr[VB_RETURNING]));
	vb_reset(vb);
	vb_take_back(vb, false);
	vb_may_sleep(vb, VB_WAKE_RESIZE);
}

/* Steps until there is nothing to do or the time is up; false on a dead device. */
static bool vb_move(struct vb *vb, unsigned long until)
{
	do {
		if (vb_gone(vb))
			return false;
		if (!vb_reap_all(vb)) {
			vb_broke(vb);
			return false;
		}
		vb_read_target(vb);
		if (vb->relief)
			vb_queue_grow(&vb->deflate, VB_RELIEF_SLOTS, GFP_KERNEL);
		cond_resched();
	} while (vb_step(vb) && time_before(jiffies, until));
	return true;
}

/*
 * With a host that answers as fast as it is asked this could go on for the whole
 * resize. A system that wants to sleep waits for running works, so the work
 * makes room for that now and then.
 */
static void vb_resize_work(struct work_struct *work)
{
	struct vb *vb = container_of(to_delayed_work(work), struct vb, resize);
	unsigned long until = jiffies + VB_RUN;
	bool done;

	vb->alloc_order = vb->max_order;
	do {
		if (!vb_move(vb, until))
			return;
		done = vb_leave(vb);
	} while (!done && time_before(jiffies, until));
	/* It may be the time that ended this, here or before. */
	if (!done || time_after_eq(jiffies, until))
		vb_resize_kick(vb);
}

/**
 * vb_resize_init() - prepare the resize work
 * @vb: the balloon
 */
void vb_resize_init(struct vb *vb)
{
	spin_lock_init(&vb->lock);
	init_waitqueue_head(&vb->acked);
	INIT_LIST_HEAD(&vb->held);
	INIT_LIST_HEAD(&vb->large);
	INIT_LIST_HEAD(&vb->reported);
	INIT_LIST_HEAD(&vb->fixed);
	balloon_devinfo_init(&vb->bdi);
	vb->actual_written = get_jiffies_64();
	INIT_DELAYED_WORK(&vb->resize, vb_resize_work);
}

/**
 * vb_resize_kick() - have the resize work look at everything again, now
 * @vb: the balloon
 *
 * Context: any.
 */
void vb_resize_kick(struct vb *vb)
{
	mod_delayed_work(vb->wq, &vb->resize, 0);
}

/**
 * vb_drain_inflation() - wait for the host to take everything that it is given
 * @vb: the balloon
 * @until: jiffies at which to give up even on a host that answers
 *
 * Return: as of vb_queue_drain().
 */
bool vb_drain_inflation(struct vb *vb, unsigned long until)
{
	return vb_queue_drain(&vb->inflate, until) &&
	       (!vb_by_report(vb) || vb_queue_drain(&vb->report, until));
}

/**
 * vb_tell_all() - ask everything back from the host before it is left
 * @vb: the balloon, with the resize work disabled
 *
 * Gives up on a host that is silent for a second, slow or broken;
 * vb_take_back() gets the rest after the reset.
 */
void vb_tell_all(struct vb *vb)
{
	unsigned long until = jiffies + VB_TELL_PATIENCE;

	if (!vb_drain_inflation(vb, until))
		return;
	while (time_before(jiffies, until)) {
		if (vb_shrink(vb, ULONG_MAX)) {
			cond_resched();
			continue;
		}
		if (!vb_queue_drain(&vb->deflate, until) || !vb_committed(vb))
			return;
		/* What is left is compaction's. */
		msleep(VB_ISOLATED_MS);
	}
}

/**
 * vb_take_back() - end the host's hold on every chunk
 * @vb: the balloon, whose device was reset
 * @keep: the chunks stay in the balloon, as held
 *
 * Waits for compaction to let go of what it moves.
 */
void vb_take_back(struct vb *vb, bool keep)
{
	unsigned long taken, released = 0;
	LIST_HEAD(freed);

	do {
		spin_lock(&vb->lock);
		taken = vb_chunks_leave(vb, VB_SLOT_PAGES, &vb->held);
		vb->nr[VB_HELD] += taken;
		if (!keep)
			released = vb_release_unnamed(vb, VB_SLOT_PAGES,
						      &freed);
		spin_unlock(&vb->lock);

		vb_chunks_free(&freed);
		if (!taken && !released && vb->nr[VB_INFLATED])
			msleep(VB_ISOLATED_MS);
		cond_resched();
	} while (taken || released || vb->nr[VB_INFLATED]);
}
