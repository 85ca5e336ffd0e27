// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The driver's side of free page reporting, and of page poison.
 *
 * The memory management isolates free blocks and hands them over in a
 * scatterlist; the device discards them and gives them back. Until it does they
 * are its own, so a report only ends when the device has answered or was reset.
 * Answers are looked for every second even without an interrupt.
 *
 * With inflate_by_reporting the resize work sends its large chunks by the same
 * queue, since hosts discard a range at a time there and a page at a time elsewhere.
 *
 * Copyright (C) the project's developers
 */
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/poison.h>
#include <linux/sizes.h>

#include "balloon.h"

/* How long removal waits for a report that is under way. */
#define VB_REPORT_PATIENCE	HZ
/* A device that has not answered a report for so many seconds is mentioned. */
#define VB_REPORT_SILENCE	10

static bool vb_inflate_by_reporting;
module_param_named(inflate_by_reporting, vb_inflate_by_reporting, bool, 0444);
MODULE_PARM_DESC(inflate_by_reporting,
		 "Give large blocks to a host that has free page reporting but no page bitmap as free pages, which is much faster (default: N)");

/**
 * vb_reporting_validate() - settle page poison and reporting before features
 * @vdev: the device
 *
 * A guest that fills or checks its free pages expects their contents to last.
 * A host that was not told so would give it back zeroed ones.
 */
void vb_reporting_validate(struct virtio_device *vdev)
{
	bool poisons = want_init_on_free() || page_poisoning_enabled_static();

	if (!poisons) {
		__virtio_clear_bit(vdev, VIRTIO_BALLOON_F_PAGE_POISON);
		return;
	}
	if (virtio_has_feature(vdev, VIRTIO_BALLOON_F_PAGE_POISON) ||
	    !virtio_has_feature(vdev, VIRTIO_BALLOON_F_REPORTING))
		return;
	__virtio_clear_bit(vdev, VIRTIO_BALLOON_F_REPORTING);
	dev_info(&vdev->dev,
		 "free page reporting is off: this guest initialises or poisons free pages and the host lacks page-poison; boot without init_on_free and page_poison, or turn page-poison on at the host\n");
}

/**
 * vb_reporting_write_poison() - tell the device what free pages contain
 * @vb: the balloon
 */
void vb_reporting_write_poison(struct vb *vb)
{
	u32 poison_val = want_init_on_free() ? 0 : PAGE_POISON * 0x01010101u;

	if (virtio_has_feature(vb->vdev, VIRTIO_BALLOON_F_PAGE_POISON))
		virtio_cwrite_le(vb->vdev, struct virtio_balloon_config,
				 poison_val, &poison_val);
}

/* Poisoned pages keep their content, so a host that was told so discards nothing. */
static bool vb_reports_are_discarded(const struct virtio_device *vdev)
{
	return !virtio_has_feature(vdev, VIRTIO_BALLOON_F_PAGE_POISON) ||
	       want_init_on_free();
}

/**
 * vb_reporting_attach() - start using the reporting queue
 * @vb: the balloon
 * @vq: the virtqueue, empty; NULL if the feature is not in use
 */
void vb_reporting_attach(struct vb *vb, struct virtqueue *vq)
{
	vb->large_by_report = vq && vb_inflate_by_reporting &&
			      !vb_by_bitmap(vb) &&
			      vb_order_is_large(vb->max_order) &&
			      vb_reports_are_discarded(vb->vdev);
	if (vq)
		vb_queue_attach(&vb->report, vq, VB_CODEC_RANGES);
}

/*
 * The resize work may wait for some of them, or for this queue; and it is who resets a
 * device that broke a queue.
 */
static void vb_report_take_answers(struct vb *vb)
{
	if (vb_queue_take_answers(&vb->report) || vb_queue_broken(&vb->report))
		vb_resize_kick(vb);
}

static bool vb_report_answered(struct vb *vb)
{
	bool answered;

	spin_lock(&vb->lock);
	vb_report_take_answers(vb);
	answered = !vb->report_slot.parts_left;
	spin_unlock(&vb->lock);
	return answered || test_bit(VB_QUIET, &vb->flags);
}

static int vb_report_wait(struct vb *vb)
{
	unsigned int seconds = 0;

	while (!wait_event_timeout(vb->acked, vb_report_answered(vb), HZ)) {
		if (++seconds != VB_REPORT_SILENCE)
			continue;
		dev_warn_once(&vb->vdev->dev,
			      "the host does not answer on the reporting queue: free page reporting waits for it; check that the host numbers its queues over the features that it offers\n");
	}
	return vb->report_slot.parts_left ? -EIO : 0;
}

/* Send a report, or find that it cannot be; false if the ring has no room now. */
static bool vb_report_send(struct vb *vb, struct scatterlist *sg,
			   unsigned int nents, int *err)
{
	struct vb_queue *q = &vb->report;
	bool room = true;

	spin_lock(&vb->lock);
	vb_report_take_answers(vb);
	if (vb_gone(vb) || !q->vq) {
		*err = -ENODEV;
	} else if (q->vq->num_free < nents) {
		room = false;
	} else {
		vb->report_slot = (struct vb_slot){ .waited = true };
		*err = vb_queue_submit_ranges(q, &vb->report_slot, sg, nents);
		vb_queue_kick(q);
	}
	vb->report_waits = !room;
	spin_unlock(&vb->lock);
	return room;
}

/* One buffer of as many blocks as the ring takes. */
static int vb_report_piece(struct vb *vb, struct scatterlist *sg,
			   unsigned int nents)
{
	int err = 0;

	/* Large chunks may fill the ring; with their answers there is room. */
	while (!wait_event_timeout(vb->acked,
				   vb_report_send(vb, sg, nents, &err), HZ))
		;
	return err ?: vb_report_wait(vb);
}

static unsigned long vb_report_pages(struct scatterlist *sg, unsigned int nents)
{
	unsigned long bytes = 0;

	while (nents--)
		bytes += sg++->length;
	return bytes >> PAGE_SHIFT;
}

static int vb_report(struct page_reporting_dev_info *prdi,
		     struct scatterlist *sg, unsigned int nents)
{
	struct vb *vb = container_of(prdi, struct vb, prdi);
	unsigned int done, len;
	int err = 0;

	WRITE_ONCE(vb->reporting_busy, true);
	/* Pairs with the barrier in vb_reporting_quiesce(). */
	smp_mb();
	if (vb_gone(vb)) {
		err = -ENODEV;
		goto out;
	}
	for (done = 0; done < nents && !err; done += len) {
		len = min(nents - done, vb->report.parts);
		err = vb_report_piece(vb, sg + done, len);
	}
	if (!err) {
		vb->nr_reports++;
		vb->nr_reported_pages += vb_report_pages(sg, nents);
	}
out:
	WRITE_ONCE(vb->reporting_busy, false);
	wake_up_all(&vb->acked);
	return err;
}

/**
 * vb_reporting_register() - begin to report free pages
 * @vb: the balloon, after DRIVER_OK
 *
 * Not being able to costs the feature and nothing else.
 */
void vb_reporting_register(struct vb *vb)
{
	bool big_pages = VB_PFNS_PER_PAGE > 1;
	int err;

	if (!vb->report.vq)
		return;
	vb->prdi.report = vb_report;
	/*
	 * A pageblock of such pages can be half a gigabyte, which is hardly
	 * ever free as a whole. Two megabytes suit the host's huge pages.
	 */
	if (big_pages && pageblock_order > get_order(SZ_2M))
		vb->prdi.order = get_order(SZ_2M);
	err = page_reporting_register(&vb->prdi);
	if (err) {
		dev_warn(&vb->vdev->dev,
			 "free page reporting is off: %pe%s\n", ERR_PTR(err),
			 err == -EBUSY ? ", another device reports already" : "");
		return;
	}
	set_bit(VB_REPORTING, &vb->flags);
}

/**
 * vb_reporting_quiesce() - let a report end before the device is reset
 * @vb: the balloon, stopping: no report starts any more
 */
void vb_reporting_quiesce(struct vb *vb)
{
	/* Pairs with the barrier in vb_report(). */
	smp_mb();
	/* The resize work may have ended with the interrupt off. */
	wake_up_all(&vb->acked);
	wait_event_timeout(vb->acked, !READ_ONCE(vb->reporting_busy),
			   VB_REPORT_PATIENCE);
}

/**
 * vb_reporting_unregister() - stop reporting for good
 * @vb: the balloon, whose device was reset
 */
void vb_reporting_unregister(struct vb *vb)
{
	if (test_and_clear_bit(VB_REPORTING, &vb->flags))
		page_reporting_unregister(&vb->prdi);
}
