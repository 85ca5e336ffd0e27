// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compaction moves a ballooned page: the new page goes to the host and the old
 * one comes back.
 *
 * Nobody waits for an answer here. The new page becomes movable, and the old one
 * is freed, when the host has answered: were it free before, it could be the
 * next new page, and named as inflated before the host knows that it came back.
 * A page that finds no room in the rings, or a resize under way, stays where it
 * is; compaction tries again. Only memory hot-unplug waits for room.
 *
 * Copyright (C) the project's developers
 */
#include <linux/mm.h>
#include <trace/events/virtio_balloon.h>

#include "balloon.h"

/*
 * Pages that can be on their way at once: what compaction isolates at a time.
 * With less, most of them would find no room, and it would give up on them.
 */
#define VB_MIGRATE_SLOTS	32
/* Longest that moving one page waits for room. */
#define VB_MIGRATE_PATIENCE	(HZ / 10 ?: 1)

/* The old page leaves the balloon. Its lru is compaction's. */
static void vb_migrate_leave(struct vb *vb, struct page *page)
{
	unsigned long flags;

	spin_lock_irqsave(&vb->bdi.pages_lock, flags);
	balloon_page_finalize(page);
	vb->bdi.isolated_pages--;
	spin_unlock_irqrestore(&vb->bdi.pages_lock, flags);
	vb_account_leave(vb, page, true);
	vb->nr_migrations++;
	count_vm_event(BALLOON_MIGRATE);
}

/* The new page sets out for the host. */
static void vb_migrate_enter(struct vb *vb, struct vb_slot *slot,
			     struct page *page)
{
	get_page(page);
	set_page_private(page, 0);
	vb_chunk_mark(page);
	slot->migration = true;
	WARN_ON_ONCE(!vb_slot_name(&vb->inflate, slot, page, 0));
	list_add_tail(&page->lru, &slot->chunks);
	if (!vb_queue_submit(&vb->inflate, slot)) {
		vb->nr[VB_IN_FLIGHT]++;
		vb->nr_moving++;
		return;
	}
	/* The queue broke just now, and the reset will find the page here. */
	list_splice_init(&slot->chunks, &vb->held);
	vb->nr[VB_HELD]++;
	count_vm_event(BALLOON_DEFLATE);
	vb_slot_put(&vb->inflate, slot);
}

/*
 * Whether a page should wait for room in the rings: not compaction's, which can do
 * without, but one that is in the way of memory hot-unplug, as long as the host answers.
 */
static bool vb_worth_waiting(const struct vb *vb, const struct page *page)
{
	const struct vb_queue *inflate = &vb->inflate, *deflate = &vb->deflate;
	unsigned long pfn = page_to_pfn(page);

	return pfn >= vb->leaving_start && pfn < vb->leaving_end &&
	       (inflate->in_flight || deflate->in_flight) &&
	       (!inflate->in_flight ||
		time_before(jiffies, inflate->stalled_since + HZ)) &&
	       (!deflate->in_flight ||
		time_before(jiffies, deflate->stalled_since + HZ));
}

static unsigned int vb_moves_in_flight(const struct vb *vb)
{
	return READ_ONCE(vb->inflate.in_flight) +
	       READ_ONCE(vb->deflate.in_flight);
}

/*
 * Return: MIGRATEPAGE_SUCCESS; -EBUSY if it is worth waiting until less than
 * @in_flight buffers are, and -EAGAIN if the page has to stay where it is for now.
 */
static int vb_migrate_try(struct vb *vb, struct page *newpage, struct page *page,
			  unsigned int *in_flight)
{
	struct vb_slot *out = NULL, *in = NULL;
	int ret = -EAGAIN;

	vb_queue_grow(&vb->inflate, VB_MIGRATE_SLOTS, GFP_NOWAIT);
	vb_queue_grow(&vb->deflate, VB_MIGRATE_SLOTS, GFP_NOWAIT);

	spin_lock(&vb->lock);
	vb_queue_reap(&vb->inflate);
	vb_queue_reap(&vb->deflate);
	if (vb_gone(vb) || vb->resizing || vb->deflate.in_batch)
		goto out_unlock;
	out = vb_slot_get(&vb->deflate, VB_USE_MOVE);
	if (out)
		in = vb_slot_get(&vb->inflate, VB_USE_MOVE);
	if (!in) {
		*in_flight = vb_moves_in_flight(vb);
		ret = vb_worth_waiting(vb, page) ? -EBUSY : -EAGAIN;
		goto out_unlock;
	}
	if (!vb_slot_name(&vb->deflate, out, page, 0))
		goto out_unlock;
	out->moved = page;
	if (vb_queue_submit(&vb->deflate, out))
		goto out_unlock;

	vb_migrate_leave(vb, page);
	__SetPageOffline(page);
	vb_migrate_enter(vb, in, newpage);
	trace_virtio_balloon_migrate(vb->vdev, page_to_pfn(page),
				     page_to_pfn(newpage));
	in = NULL;
	out = NULL;
	ret = MIGRATEPAGE_SUCCESS;
out_unlock:
	if (in)
		vb_slot_put(&vb->inflate, in);
	if (out)
		vb_slot_put(&vb->deflate, out);
	/* Inside the lock: once it is free and the page gone, so may @vb be. */
	wake_up_all(&vb->acked);
	vb_resize_kick(vb);
	spin_unlock(&vb->lock);
	return ret;
}

/**
 * vb_migrate() - the balloon's part of moving a page
 * @bdi: the balloon's page list
 * @newpage: where to, locked, with one reference that is not ours
 * @page: where from, locked and isolated
 * @mode: whether waiting for the host is out of the question
 *
 * Return: MIGRATEPAGE_SUCCESS, or -EAGAIN while the host is busy or gone.
 */
int vb_migrate(struct balloon_dev_info *bdi, struct page *newpage,
	       struct page *page, enum migrate_mode mode)
{
	struct vb *vb = container_of(bdi, struct vb, bdi);
	unsigned int in_flight;
	int ret;

	if (!vb_by_bitmap(vb) && !vb_pfn_fits(page_to_pfn(newpage), 1))
		return -EAGAIN;
	ret = vb_migrate_try(vb, newpage, page, &in_flight);
	/* The page is isolated, so @vb stays. */
	if (ret == -EBUSY && mode == MIGRATE_SYNC) {
		wait_event_timeout(vb->acked, vb_gone(vb) ||
				   vb_moves_in_flight(vb) < in_flight,
				   VB_MIGRATE_PATIENCE);
		ret = vb_migrate_try(vb, newpage, page, &in_flight);
	}
	return ret == -EBUSY ? -EAGAIN : ret;
}
