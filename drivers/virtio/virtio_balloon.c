// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The virtio balloon: memory that an operator takes from a guest and gives back.
 *
 * This file is where the device comes and goes: features, queues, probe and
 * removal, sleep and wake-up. The model and its vocabulary are at the top of
 * balloon/balloon.h; each concern has a file in balloon/.
 *
 * Copyright (C) the project's developers
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <uapi/linux/virtio_ring.h>

#include "balloon/balloon.h"
#include "balloon/policy.h"

#define CREATE_TRACE_POINTS
#include <trace/events/virtio_balloon.h>

/* How long falling asleep waits for what is in flight. */
#define VB_SLEEP_PATIENCE	(2 * HZ)
/* What a status register reads when its device is no longer there. */
#define VB_STATUS_GONE	0xff

/* Queue numbers, were all features offered; transports close the gaps. */
enum vb_vq {
	VB_VQ_INFLATE,
	VB_VQ_DEFLATE,
	VB_VQ_STATS,
	VB_VQ_HINTS,
	VB_VQ_REPORTING,
	VB_NR_VQS
};

/**
 * vb_stay_awake() - keep the system from sleeping
 * @vb: the balloon
 * @reason: what there is to do
 *
 * Context: any.
 */
void vb_stay_awake(struct vb *vb, enum vb_wake_reason reason)
{
	unsigned long flags;

	spin_lock_irqsave(&vb->wake_lock, flags);
	if (!vb->wake_reasons)
		pm_stay_awake(&vb->vdev->dev);
	vb->wake_reasons |= reason;
	spin_unlock_irqrestore(&vb->wake_lock, flags);
}

/**
 * vb_may_sleep() - one reason to stay awake is gone
 * @vb: the balloon
 * @reason: what has been done
 *
 * Context: any.
 */
void vb_may_sleep(struct vb *vb, enum vb_wake_reason reason)
{
	unsigned long flags;

	spin_lock_irqsave(&vb->wake_lock, flags);
	if (vb->wake_reasons) {
		vb->wake_reasons &= ~reason;
		if (!vb->wake_reasons)
			pm_relax(&vb->vdev->dev);
	}
	spin_unlock_irqrestore(&vb->wake_lock, flags);
}

/* An answer on inflateq, deflateq or the reporting queue. */
static void vb_answered(struct virtqueue *vq)
{
	struct vb *vb = vq->vdev->priv;

	wake_up_all(&vb->acked);
	if (vq != vb->report.vq || vb_by_report(vb))
		vb_resize_kick(vb);
}

static void vb_config_changed(struct virtio_device *vdev)
{
	struct vb *vb = vdev->priv;

	if (vb_gone(vb))
		return;
	set_bit(VB_CONFIG_CHANGED, &vb->flags);
	set_bit(VB_HINTS_CHANGED, &vb->flags);
	vb_stay_awake(vb, VB_WAKE_RESIZE);
	vb_resize_kick(vb);
	vb_hints_kick(vb);
}

static void vb_want_vq(struct vb *vb, struct virtqueue_info *info,
		       unsigned int feature, const char *name,
		       vq_callback_t *callback)
{
	if (!virtio_has_feature(vb->vdev, feature))
		return;
	info->name = name;
	info->callback = callback;
}

static int vb_find_vqs(struct vb *vb)
{
	struct virtqueue_info info[VB_NR_VQS] = {
		[VB_VQ_INFLATE] = { "inflate", vb_answered },
		[VB_VQ_DEFLATE] = { "deflate", vb_answered },
	};
	struct virtqueue *vqs[VB_NR_VQS] = {};
	enum vb_codec codec;
	unsigned int parts;
	int err;

	vb_want_vq(vb, &info[VB_VQ_STATS], VIRTIO_BALLOON_F_STATS_VQ,
		   "stats", vb_stats_callback);
	vb_want_vq(vb, &info[VB_VQ_HINTS], VIRTIO_BALLOON_F_FREE_PAGE_HINT,
		   "hints", vb_hints_callback);
	vb_want_vq(vb, &info[VB_VQ_REPORTING], VIRTIO_BALLOON_F_REPORTING,
		   "reporting", vb_answered);
	err = virtio_find_vqs(vb->vdev, VB_NR_VQS, vqs, info, NULL);
	if (err == -ENOENT) {
		dev_warn(&vb->vdev->dev,
			 "a queue of a feature that the host offers is missing: going on without statistics, hints and reporting\n");
		memset(&info[VB_VQ_STATS], 0,
		       sizeof(info) - VB_VQ_STATS * sizeof(info[0]));
		err = virtio_find_vqs(vb->vdev, VB_NR_VQS, vqs, info, NULL);
	}
	if (err)
		return err;

	codec = vb_by_bitmap(vb) ? VB_CODEC_BITMAP : VB_CODEC_PFNS;
	vb_queue_attach(&vb->inflate, vqs[VB_VQ_INFLATE], codec);
	vb_queue_attach(&vb->deflate, vqs[VB_VQ_DEFLATE], codec);
	parts = min(vb->inflate.floor, vb->deflate.floor);
	vb->max_order = vb_pick_order(parts * VB_PFNS_PER_BUFFER /
				      VB_PFNS_PER_PAGE, VB_MAX_ORDER);
	vb->stats_vq = vqs[VB_VQ_STATS];
	vb_reporting_attach(vb, vqs[VB_VQ_REPORTING]);
	vb_hints_attach(vb, vqs[VB_VQ_HINTS]);
	return 0;
}

/* With the queues in place, let the device and the works go. */
static void vb_start(struct vb *vb)
{
	/* Whatever the device remembers of another driver is to be corrected. */
	vb->actual = U32_MAX;
	vb_reporting_write_poison(vb);
	virtio_device_ready(vb->vdev);
	clear_bit(VB_QUIET, &vb->flags);
	clear_bit(VB_DEAD, &vb->flags);
	clear_bit(VB_STOPPING, &vb->flags);
	enable_delayed_work(&vb->resize);
	enable_work(&vb->stats_work);
	enable_work(&vb->hints.work);
	vb_stats_offer(vb);
	vb_config_changed(vb->vdev);
}

/*
 * Stop the works. What the device has of ours it still has; nothing new starts,
 * and what runs has ended on return, save for a report.
 */
static void vb_stop(struct vb *vb)
{
	/* After a sleep that it could not come back from it has not started. */
	if (test_and_set_bit(VB_STOPPING, &vb->flags))
		return;
	wake_up_all(&vb->acked);
	disable_delayed_work_sync(&vb->resize);
	disable_work_sync(&vb->stats_work);
	disable_work_sync(&vb->hints.work);
	vb_may_sleep(vb, VB_WAKE_RESIZE | VB_WAKE_STATS);
}

/*
 * A device that was pulled out reads all ones, and would never be seen to have finished
 * its reset.
 */
static void vb_reset_device(struct virtio_device *vdev)
{
	u8 status = vdev->config->get_status(vdev);

	if (status && status != VB_STATUS_GONE)
		virtio_reset_device(vdev);
}

/**
 * vb_reset() - reset the device and get everything off the queues
 * @vb: the balloon, with the resize work disabled or calling
 *
 * From here on the host may touch no page of ours. Once that is so, this only takes
 * away the mark of a device that could not be restored after a sleep.
 */
void vb_reset(struct vb *vb)
{
	struct virtio_device *vdev = vb->vdev;

	if (test_and_set_bit(VB_DEAD, &vb->flags)) {
		vb_reset_device(vdev);
		return;
	}
	/* First nobody may kick or be called any more, then comes the reset. */
	virtio_break_device(vdev);
	virtio_synchronize_cbs(vdev);
	cancel_work_sync(&vb->stats_work);
	cancel_work_sync(&vb->hints.work);
	spin_lock(&vb->lock);
	spin_unlock(&vb->lock);
	vb_reset_device(vdev);
	set_bit(VB_QUIET, &vb->flags);
	wake_up_all(&vb->acked);
	vb_queue_detach(&vb->inflate);
	vb_queue_detach(&vb->deflate);
	vb_queue_detach(&vb->report);
	vb_hints_detach(vb);
}

/* The queues are gone already if the device could not be restored after a sleep. */
static void vb_del_vqs(struct virtio_device *vdev)
{
	if (!list_empty(&vdev->vqs))
		vdev->config->del_vqs(vdev);
}

static void vb_destroy(struct vb *vb)
{
	vb_hints_unregister(vb);
	vb_queue_destroy(&vb->inflate);
	vb_queue_destroy(&vb->deflate);
	vb_queue_destroy(&vb->report);
	if (vb->wq)
		destroy_workqueue(vb->wq);
	kfree(vb);
}

/*
 * High priority, so that a raised limit is felt on a busy guest; with a
 * rescuer, since deflating must not wait for memory to make a worker.
 */
static int vb_create_parts(struct vb *vb)
{
	int err;

	vb->wq = alloc_workqueue("vballoon-%s", WQ_FREEZABLE | WQ_HIGHPRI |
				 WQ_UNBOUND | WQ_MEM_RECLAIM, 0,
				 dev_name(&vb->vdev->dev));
	if (!vb->wq)
		return -ENOMEM;
	err = vb_queue_init(vb, &vb->inflate, vb_inflate_done);
	if (!err)
		err = vb_queue_init(vb, &vb->deflate, vb_deflate_done);
	if (!err)
		err = vb_queue_init(vb, &vb->report, vb_report_done);
	if (!err)
		err = vb_hints_register(vb);
	return err;
}

static struct vb *vb_create(struct virtio_device *vdev)
{
	struct vb *vb = kzalloc(sizeof(*vb), GFP_KERNEL);
	int err;

	if (!vb)
		return ERR_PTR(-ENOMEM);
	vb->vdev = vdev;
	vdev->priv = vb;
	set_bit(VB_STOPPING, &vb->flags);
	spin_lock_init(&vb->wake_lock);
	vb_resize_init(vb);
	vb_stats_init(vb);
	vb_hints_init(vb);
	disable_delayed_work(&vb->resize);
	disable_work(&vb->stats_work);
	disable_work(&vb->hints.work);
#ifdef CONFIG_BALLOON_COMPACTION
	vb->bdi.migratepage = vb_migrate;
#endif
	err = vb_create_parts(vb);
	if (err) {
		vb_destroy(vb);
		return ERR_PTR(err);
	}
	return vb;
}

static int vb_probe(struct virtio_device *vdev)
{
	struct vb *vb;
	int err;

	if (!vdev->config->get) {
		dev_err(&vdev->dev,
			"no access to config space: the transport must offer it for a balloon\n");
		return -EINVAL;
	}
	vb = vb_create(vdev);
	if (IS_ERR(vb))
		return PTR_ERR(vb);

	err = vb_find_vqs(vb);
	if (err)
		goto out_destroy;
	err = vb_oom_register(vb);
	if (err)
		goto out_del_vqs;
	err = vb_hotplug_register(vb);
	if (err)
		goto out_oom;

	device_set_wakeup_capable(&vdev->dev, true);
	vb_start(vb);
	vb_reporting_register(vb);
	vb_debugfs_create(vb);
	return 0;

out_oom:
	vb_oom_unregister(vb);
out_del_vqs:
	vb_del_vqs(vdev);
out_destroy:
	vb_destroy(vb);
	return err;
}

static void vb_remove(struct virtio_device *vdev)
{
	struct vb *vb = vdev->priv;

	vb_debugfs_remove(vb);
	vb_oom_unregister(vb);
	vb_hotplug_unregister(vb);
	vb_stop(vb);
	vb_tell_all(vb);
	vb_write_actual(vb);
	vb_reporting_quiesce(vb);
	vb_reset(vb);
	vb_reporting_unregister(vb);
	vb_take_back(vb, false);
	vb_del_vqs(vdev);
	vb_destroy(vb);
}

/*
 * A device that sleeps forgets what it was told, and after hibernation it is
 * another one. So the pages stay in the balloon, where they take no room in the
 * image, but as held ones; they are named again on wake-up.
 */
static __maybe_unused int vb_freeze(struct virtio_device *vdev)
{
	struct vb *vb = vdev->priv;
	unsigned long until = jiffies + VB_SLEEP_PATIENCE;

	vb_stop(vb);
	vb_drain_inflation(vb, until);
	vb_queue_drain(&vb->deflate, until);
	vb_reporting_quiesce(vb);
	vb_reset(vb);
	vb_take_back(vb, true);
	vb_del_vqs(vdev);
	return 0;
}

/*
 * What was negotiated holds over a sleep. A host that does not know of it any more, as
 * another one after hibernation may be, would take windows for PFN arrays.
 */
static int vb_check_features(struct virtio_device *vdev)
{
	u64 lost = vdev->features & ~vdev->config->get_features(vdev);

	if (!lost)
		return 0;
	dev_err(&vdev->dev,
		"the host does not offer features %#llx any more, which it had before the sleep: start it as before, or unbind and bind the driver\n",
		lost);
	return -EINVAL;
}

static __maybe_unused int vb_restore(struct virtio_device *vdev)
{
	struct vb *vb = vdev->priv;
	int err;

	err = vb_check_features(vdev);
	if (!err)
		err = vb_find_vqs(vb);
	if (err) {
		dev_err(&vdev->dev,
			"no balloon after sleep: %pe; the guest gets its memory back\n",
			ERR_PTR(err));
		vb_take_back(vb, false);
		return err;
	}
	vb_start(vb);
	return 0;
}

static int vb_validate(struct virtio_device *vdev)
{
	vb_reporting_validate(vdev);
	/* An indirect descriptor would have to be allocated under pressure. */
	__virtio_clear_bit(vdev, VIRTIO_RING_F_INDIRECT_DESC);
	/* The balloon names guest-physical pages: no translation can hold. */
	if (virtio_has_feature(vdev, VIRTIO_F_ACCESS_PLATFORM)) {
		dev_info(&vdev->dev,
			 "ACCESS_PLATFORM refused: a balloon names guest-physical memory, which a translated address cannot; a host that insists has no balloon\n");
		__virtio_clear_bit(vdev, VIRTIO_F_ACCESS_PLATFORM);
	}
	return 0;
}

static const unsigned int vb_features[] = {
	/* what the device does with the balloon's pages */
	VIRTIO_BALLOON_F_DEFLATE_ON_OOM,
	VIRTIO_BALLOON_F_MUST_TELL_HOST,
	VIRTIO_BALLOON_F_PAGE_BITMAP,
	/* what it wants to know */
	VIRTIO_BALLOON_F_STATS_VQ,
	/* what it does with free pages */
	VIRTIO_BALLOON_F_FREE_PAGE_HINT,
	VIRTIO_BALLOON_F_REPORTING,
	VIRTIO_BALLOON_F_PAGE_POISON,
};

static const struct virtio_device_id vb_ids[] = {
	{ VIRTIO_ID_BALLOON, VIRTIO_DEV_ANY_ID },
	{ },
};
MODULE_DEVICE_TABLE(virtio, vb_ids);

static struct virtio_driver vb_driver = {
	.driver.name = KBUILD_MODNAME,
	.id_table = vb_ids,
	.feature_table = vb_features,
	.feature_table_size = ARRAY_SIZE(vb_features),
	.validate = vb_validate,
	.probe = vb_probe,
	.remove = vb_remove,
	.config_changed = vb_config_changed,
#ifdef CONFIG_PM_SLEEP
	.freeze = vb_freeze,
	.restore = vb_restore,
#endif
};

static int __init vb_init(void)
{
	int err;

	vb_debugfs_init();
	err = register_virtio_driver(&vb_driver);
	if (err)
		vb_debugfs_exit();
	return err;
}
module_init(vb_init);

static void __exit vb_exit(void)
{
	unregister_virtio_driver(&vb_driver);
	vb_debugfs_exit();
}
module_exit(vb_exit);

MODULE_DESCRIPTION("Virtio memory balloon");
MODULE_LICENSE("GPL");
