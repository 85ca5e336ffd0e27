// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Deflate on OOM: memory for a guest that has none left.
 *
 * The notifier is called under the OOM killer's lock, by a task that wants
 * memory. So nothing is allocated here and no configuration is written. What
 * needs no message goes first, then inflated chunks, as many as one slot
 * carries. With MUST_TELL_HOST the host's answer is waited for, but not for
 * long; otherwise a slow host cannot keep the guest from its memory. What was
 * given is not taken again until the host asks for another target.
 *
 * Copyright (C) the project's developers
 */
#include <linux/oom.h>
#include <trace/events/virtio_balloon.h>

#include "balloon.h"

#define VB_OOM_PRIORITY		80
/* With MUST_TELL_HOST, a host that takes longer does not help this time. */
#define VB_OOM_PATIENCE		(HZ / 2)
/* After an OOM the balloon does not grow for so long. */
#define VB_OOM_REST		(4 * HZ)

static bool vb_oom_returned(struct vb *vb, u64 goal)
{
	bool returned;

	spin_lock(&vb->lock);
	vb_queue_take_answers(&vb->deflate);
	returned = vb->nr_returned >= goal;
	spin_unlock(&vb->lock);
	return returned;
}

/* What was given is not taken again, and what is left to take can wait. */
static void vb_oom_note(struct vb *vb, unsigned long given)
{
	lockdep_assert_held(&vb->lock);

	vb->nr_oom_calls++;
	vb->nr_oom_pages += given;
	if (!given)
		return;
	vb->relief = min(vb->relief + given, vb->target);
	vb->failures = max(vb->failures, 1u);
	vb->next_try = jiffies + VB_OOM_REST;
}

static int vb_oom_notify(struct notifier_block *nb, unsigned long unused,
			 void *arg)
{
	struct vb *vb = container_of(nb, struct vb, oom_nb);
	unsigned long *freed = arg;
	unsigned long given, asked = 0;
	LIST_HEAD(chunks);
	u64 goal;

	spin_lock(&vb->lock);
	vb_queue_take_answers(&vb->deflate);
	vb_queue_take_answers(&vb->report);
	goal = vb->nr_returned;
	given = vb_release_unnamed(vb, VB_SLOT_PAGES, &chunks);
	if (given < VB_SLOT_PAGES)
		asked = vb_deflate_some(vb, VB_SLOT_PAGES - given, VB_USE_OOM,
					&chunks);
	if (!given && !asked && !vb_must_tell(vb)) {
		/*
		 * The host has every slot and gives none back. It need not be
		 * asked, and a killed process is worse than a host that thinks
		 * the balloon larger than it is.
		 */
		given = vb_chunks_leave(vb, VB_SLOT_PAGES, &chunks);
		vb->nr_oom_untold += given;
	}
	vb_queue_kick(&vb->deflate);
	vb_oom_note(vb, given + asked);
	trace_virtio_balloon_oom(vb->vdev, given, asked, vb_committed(vb));
	spin_unlock(&vb->lock);

	vb_chunks_free(&chunks);
	wake_up_all(&vb->acked);
	vb_resize_kick(vb);
	if (asked && vb_must_tell(vb)) {
		goal += asked;
		wait_event_timeout(vb->acked, vb_oom_returned(vb, goal),
				   VB_OOM_PATIENCE);
		if (!vb_oom_returned(vb, goal))
			asked = 0;
	}
	*freed += given + asked;
	return NOTIFY_OK;
}

/**
 * vb_oom_register() - begin to deflate on OOM, if the host wants that
 * @vb: the balloon
 *
 * Return: 0, or the error of register_oom_notifier().
 */
int vb_oom_register(struct vb *vb)
{
	if (!virtio_has_feature(vb->vdev, VIRTIO_BALLOON_F_DEFLATE_ON_OOM))
		return 0;
	vb->oom_nb.notifier_call = vb_oom_notify;
	vb->oom_nb.priority = VB_OOM_PRIORITY;
	return register_oom_notifier(&vb->oom_nb);
}

/**
 * vb_oom_unregister() - the reverse of vb_oom_register()
 * @vb: the balloon
 */
void vb_oom_unregister(struct vb *vb)
{
	if (virtio_has_feature(vb->vdev, VIRTIO_BALLOON_F_DEFLATE_ON_OOM))
		unregister_oom_notifier(&vb->oom_nb);
}
