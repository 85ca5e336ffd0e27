// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Free page hints: what a migration need not copy.
 *
 * The device starts a round by a new command id in config space. The driver
 * answers with a start command, free blocks of the largest order, and a stop
 * command when it has no more or the id has changed. Blocks stay allocated
 * until the id says done, so that the guest does not dirty them meanwhile, or
 * until the shrinker wants them. A block is only ever freed once the device has
 * returned its buffer: before that, a write to it could be lost.
 *
 * The work never waits: it does what the ring has room for and is queued again
 * by the device's answers and by config changes.
 *
 * Copyright (C) the project's developers
 */
#include <linux/gfp.h>
#include <linux/scatterlist.h>
#include <linux/slab.h>

#include "balloon.h"

#define VB_HINT_ORDER		MAX_PAGE_ORDER
#define VB_HINT_PAGES		BIT(VB_HINT_ORDER)
#define VB_HINT_BYTES		(PAGE_SIZE << VB_HINT_ORDER)
#define VB_HINT_GFP		(__GFP_NORETRY | __GFP_NOWARN | __GFP_NOMEMALLOC)

/* Most blocks that wait for the device, so that a silent one holds few. */
#define VB_HINT_WINDOW		32u
/* Ring entries for commands. */
#define VB_HINT_COMMANDS	1

static void vb_hint_pages_free(struct list_head *blocks)
{
	struct page *page, *next;

	list_for_each_entry_safe(page, next, blocks, lru) {
		list_del(&page->lru);
		__free_pages(page, VB_HINT_ORDER);
	}
}

static unsigned long vb_hints_give_back(struct vb_hints *hints,
					unsigned long nr_blocks)
{
	unsigned long done = 0;
	struct page *page;
	LIST_HEAD(blocks);

	spin_lock(&hints->lock);
	while (done < nr_blocks && !list_empty(&hints->taken)) {
		page = list_first_entry(&hints->taken, struct page, lru);
		list_move(&page->lru, &blocks);
		done++;
	}
	hints->nr_taken -= done;
	spin_unlock(&hints->lock);

	vb_hint_pages_free(&blocks);
	return done;
}

/* Sort what came back: commands are free again, blocks are done with. */
static void vb_hints_reap(struct vb_hints *hints)
{
	unsigned int len;
	void *token;

	lockdep_assert_held(&hints->lock);

	while ((token = virtqueue_get_buf(hints->vq, &len))) {
		if (token == &hints->start) {
			hints->start_busy = false;
		} else if (token == &hints->stop) {
			hints->stop_busy = false;
		} else {
			struct page *page = token;

			list_move(&page->lru, &hints->taken);
			hints->nr_offered--;
			hints->nr_taken++;
		}
	}
}

static bool vb_hints_send_command(struct vb_hints *hints, __virtio32 *command,
				  bool *busy)
{
	struct scatterlist sg;

	if (*busy)
		return false;
	sg_init_one(&sg, command, sizeof(*command));
	if (virtqueue_add_outbuf(hints->vq, &sg, 1, command, GFP_ATOMIC))
		return false;
	*busy = true;
	return true;
}

/* A round ends: there is nothing more, or the device has changed its mind. */
static bool vb_hints_send_stop(struct vb_hints *hints)
{
	hints->sending = false;
	hints->stop_due = !vb_hints_send_command(hints, &hints->stop,
						 &hints->stop_busy);
	return !hints->stop_due;
}

static bool vb_hints_send_start(struct vb *vb, u32 cmd_id)
{
	struct vb_hints *hints = &vb->hints;

	if (hints->start_busy)
		return false;
	hints->start = cpu_to_virtio32(vb->vdev, cmd_id);
	if (!vb_hints_send_command(hints, &hints->start, &hints->start_busy))
		return false;
	hints->cmd_id = cmd_id;
	hints->sending = true;
	return true;
}

static bool vb_hints_add_block(struct vb_hints *hints, struct page *page)
{
	struct scatterlist sg;

	sg_init_table(&sg, 1);
	sg_set_page(&sg, page, VB_HINT_BYTES, 0);
	if (virtqueue_add_inbuf(hints->vq, &sg, 1, page, GFP_ATOMIC))
		return false;
	list_add(&page->lru, &hints->offered);
	hints->nr_offered++;
	return true;
}

/*
 * Offer one block; false when the round has to wait. The block is allocated
 * without the lock, which the shrinker takes; nobody else adds to the queue.
 */
static bool vb_hints_send_block(struct vb_hints *hints)
{
	struct page *page;
	bool sent;

	if (hints->nr_offered >= VB_HINT_WINDOW ||
	    hints->vq->num_free <= VB_HINT_COMMANDS)
		return false;
	page = alloc_pages(VB_HINT_GFP, VB_HINT_ORDER);

	spin_lock(&hints->lock);
	sent = page ? vb_hints_add_block(hints, page) :
		      vb_hints_send_stop(hints);
	spin_unlock(&hints->lock);
	if (page && !sent)
		__free_pages(page, VB_HINT_ORDER);
	return sent;
}

static bool vb_hints_is_new(const struct vb_hints *hints, u32 host_id)
{
	return host_id != VIRTIO_BALLOON_CMD_ID_STOP &&
	       host_id != VIRTIO_BALLOON_CMD_ID_DONE &&
	       host_id != hints->cmd_id;
}

/* One step of the protocol; false when there is nothing to do or no room. */
static bool vb_hints_step(struct vb *vb, u32 host_id)
{
	struct vb_hints *hints = &vb->hints;
	bool sending, done = false;

	spin_lock(&hints->lock);
	vb_hints_reap(hints);
	if (hints->stop_due || (hints->sending && host_id != hints->cmd_id))
		done = vb_hints_send_stop(hints);
	else if (!hints->sending && vb_hints_is_new(hints, host_id))
		done = vb_hints_send_start(vb, host_id);
	sending = hints->sending;
	spin_unlock(&hints->lock);

	return done || (sending && vb_hints_send_block(hints));
}

static void vb_hints_read_id(struct vb *vb)
{
	if (test_and_clear_bit(VB_HINTS_CHANGED, &vb->flags))
		virtio_cread_le(vb->vdev, struct virtio_balloon_config,
				free_page_hint_cmd_id, &vb->hints.host_id);
}

/* Notify the device; false if it has returned something meanwhile. */
static bool vb_hints_leave(struct vb_hints *hints)
{
	bool quiet;

	spin_lock(&hints->lock);
	virtqueue_kick(hints->vq);
	quiet = virtqueue_enable_cb(hints->vq);
	spin_unlock(&hints->lock);
	return quiet;
}

static void vb_hints_work(struct work_struct *work)
{
	struct vb *vb = container_of(work, struct vb, hints.work);
	struct vb_hints *hints = &vb->hints;

	if (vb_gone(vb))
		return;
	do {
		virtqueue_disable_cb(hints->vq);
		do {
			cond_resched();
			vb_hints_read_id(vb);
		} while (vb_hints_step(vb, hints->host_id) && !vb_gone(vb));

		if (hints->host_id == VIRTIO_BALLOON_CMD_ID_DONE)
			vb_hints_give_back(hints, ULONG_MAX);
	} while (!vb_hints_leave(hints) && !vb_gone(vb));
}

/**
 * vb_hints_kick() - look at the command id and at the queue
 * @vb: the balloon
 *
 * Context: any.
 */
void vb_hints_kick(struct vb *vb)
{
	if (vb->hints.vq)
		queue_work(vb->wq, &vb->hints.work);
}

/**
 * vb_hints_callback() - the device has returned hints or commands
 * @vq: the hint queue
 */
void vb_hints_callback(struct virtqueue *vq)
{
	vb_hints_kick(vq->vdev->priv);
}

static unsigned long vb_hints_count(struct shrinker *shrinker,
				    struct shrink_control *sc)
{
	struct vb *vb = shrinker->private_data;

	return READ_ONCE(vb->hints.nr_taken) * VB_HINT_PAGES;
}

static unsigned long vb_hints_scan(struct shrinker *shrinker,
				   struct shrink_control *sc)
{
	struct vb *vb = shrinker->private_data;
	unsigned long nr_blocks = DIV_ROUND_UP(sc->nr_to_scan, VB_HINT_PAGES);
	unsigned long done = vb_hints_give_back(&vb->hints, nr_blocks);

	return done ? done * VB_HINT_PAGES : SHRINK_STOP;
}

/**
 * vb_hints_init() - prepare what needs no queue
 * @vb: the balloon
 */
void vb_hints_init(struct vb *vb)
{
	spin_lock_init(&vb->hints.lock);
	INIT_LIST_HEAD(&vb->hints.offered);
	INIT_LIST_HEAD(&vb->hints.taken);
	INIT_WORK(&vb->hints.work, vb_hints_work);
}

/**
 * vb_hints_register() - register the shrinker
 * @vb: the balloon
 *
 * Return: 0, or -ENOMEM.
 */
int vb_hints_register(struct vb *vb)
{
	struct shrinker *shrinker;

	if (!virtio_has_feature(vb->vdev, VIRTIO_BALLOON_F_FREE_PAGE_HINT))
		return 0;
	shrinker = shrinker_alloc(0, "virtio-balloon");
	if (!shrinker)
		return -ENOMEM;
	shrinker->count_objects = vb_hints_count;
	shrinker->scan_objects = vb_hints_scan;
	shrinker->private_data = vb;
	vb->hints.shrinker = shrinker;
	shrinker_register(shrinker);
	return 0;
}

/**
 * vb_hints_unregister() - the reverse of vb_hints_register()
 * @vb: the balloon
 */
void vb_hints_unregister(struct vb *vb)
{
	if (vb->hints.shrinker)
		shrinker_free(vb->hints.shrinker);
	vb->hints.shrinker = NULL;
}

/**
 * vb_hints_attach() - start using the hint queue
 * @vb: the balloon
 * @vq: the queue, or NULL if there is none
 *
 * A ring that has no room for a block beside a command is of no use: the
 * feature is not used then.
 */
void vb_hints_attach(struct vb *vb, struct virtqueue *vq)
{
	struct vb_hints *hints = &vb->hints;

	if (vq && virtqueue_get_vring_size(vq) <= VB_HINT_COMMANDS) {
		dev_warn(&vb->vdev->dev,
			 "free page hints are off: their queue has %u entry, 2 are needed\n",
			 virtqueue_get_vring_size(vq));
		vq = NULL;
	}
	hints->vq = vq;
	hints->host_id = VIRTIO_BALLOON_CMD_ID_STOP;
	hints->cmd_id = VIRTIO_BALLOON_CMD_ID_STOP;
	hints->stop = cpu_to_virtio32(vb->vdev, VIRTIO_BALLOON_CMD_ID_STOP);
	hints->sending = false;
	hints->stop_due = false;
	hints->start_busy = false;
	hints->stop_busy = false;
}

/**
 * vb_hints_detach() - give every block back
 * @vb: the balloon, whose device was reset; the work is not running
 */
void vb_hints_detach(struct vb *vb)
{
	struct vb_hints *hints = &vb->hints;

	spin_lock(&hints->lock);
	while (hints->vq && virtqueue_detach_unused_buf(hints->vq))
		;
	hints->vq = NULL;
	list_splice_init(&hints->offered, &hints->taken);
	hints->nr_taken += hints->nr_offered;
	hints->nr_offered = 0;
	spin_unlock(&hints->lock);
	vb_hints_give_back(hints, ULONG_MAX);
}
