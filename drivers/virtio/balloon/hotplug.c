// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory that is about to be unplugged: large chunks in it become single pages, which
 * can be moved away as everybody else's. The kernel lets ballooned pages pass as long
 * as somebody listens here.
 *
 * Areas of the contiguous memory allocator need no such care: large chunks never come
 * from memory that has to stay movable.
 *
 * Copyright (C) the project's developers
 */
#include <linux/memory.h>
#include <linux/mm.h>

#include "balloon.h"

/* Longest that unplugging waits for the host. */
#define VB_OFFLINE_PATIENCE	HZ

/* Split one large chunk that has to leave; false if there is none. */
static bool vb_split_leaving(struct vb *vb)
{
	struct page *page;
	LIST_HEAD(found);
	bool any;

	spin_lock(&vb->lock);
	list_for_each_entry(page, &vb->large, lru) {
		if (!vb_chunk_leaves(vb, page))
			continue;
		list_move(&page->lru, &found);
		break;
	}
	any = !list_empty(&found);
	vb_chunks_insert(vb, &found);
	spin_unlock(&vb->lock);
	return any;
}

/* Chunks that need no message can go; nobody gets them again from such a block. */
static void vb_release_leaving(struct vb *vb)
{
	struct page *page, *next;
	LIST_HEAD(freed);

	spin_lock(&vb->lock);
	list_for_each_entry_safe(page, next, &vb->held, lru) {
		if (!vb_chunk_leaves(vb, page))
			continue;
		list_move_tail(&page->lru, &freed);
		vb->nr[VB_HELD] -= vb_chunk_pages(page);
	}
	list_for_each_entry_safe(page, next, &vb->reported, lru)
		if (vb_chunk_leaves(vb, page))
			vb_reported_remove(vb, page, &freed);
	spin_unlock(&vb->lock);
	vb_chunks_free(&freed);
}

static void vb_set_leaving(struct vb *vb, unsigned long start, unsigned long end)
{
	spin_lock(&vb->lock);
	vb->leaving_start = start;
	vb->leaving_end = end;
	spin_unlock(&vb->lock);
}

/*
 * The kernel gives up at the first page that can neither be freed nor moved. So what is
 * on its way to the host, or back, has to arrive before: chunks that leave are split or
 * released as they do, see vb_chunks_insert() and vb_report_done().
 */
static void vb_make_way(struct vb *vb)
{
	unsigned long until = jiffies + VB_OFFLINE_PATIENCE;

	vb_release_leaving(vb);
	vb_drain_inflation(vb, until);
	vb_queue_drain(&vb->deflate, until);
	/* What the host has by the reporting queue by now, or was held meanwhile. */
	vb_release_leaving(vb);
	while (vb_split_leaving(vb))
		cond_resched();

	spin_lock(&vb->lock);
	vb_settle(vb);
	spin_unlock(&vb->lock);
	vb_resize_kick(vb);
}

static int vb_memory_notify(struct notifier_block *nb, unsigned long action,
			    void *arg)
{
	struct vb *vb = container_of(nb, struct vb, memory_nb);
	const struct memory_notify *notify = arg;

	switch (action) {
	case MEM_GOING_OFFLINE:
		vb_set_leaving(vb, notify->start_pfn,
			       notify->start_pfn + notify->nr_pages);
		vb_make_way(vb);
		break;
	case MEM_OFFLINE:
	case MEM_CANCEL_OFFLINE:
		vb_set_leaving(vb, 0, 0);
		break;
	}
	return NOTIFY_OK;
}

/**
 * vb_hotplug_register() - begin to make way for memory hot-unplug
 * @vb: the balloon
 *
 * Return: 0, or the error of register_memory_notifier().
 */
int vb_hotplug_register(struct vb *vb)
{
	vb->memory_nb.notifier_call = vb_memory_notify;
	return register_memory_notifier(&vb->memory_nb);
}

/**
 * vb_hotplug_unregister() - the reverse of vb_hotplug_register()
 * @vb: the balloon
 */
void vb_hotplug_unregister(struct vb *vb)
{
	unregister_memory_notifier(&vb->memory_nb);
}
