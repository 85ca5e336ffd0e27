// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory statistics: the queue that runs the other way.
 *
 * The device keeps one buffer of statistics. When it gives the buffer back it
 * wants new figures, and gets them in the same buffer. Tags go in the order of
 * the UAPI; old hosts stop reading at the first tag that they do not know.
 *
 * Copyright (C) the project's developers
 */
#include <linux/mm.h>
#include <linux/scatterlist.h>
#include <linux/swap.h>

#include "balloon.h"

static unsigned int vb_stat_add(struct vb *vb, unsigned int nr, u16 tag,
				u64 val)
{
	vb->stats[nr].tag = cpu_to_virtio16(vb->vdev, tag);
	vb->stats[nr].val = cpu_to_virtio64(vb->vdev, val);
	return nr + 1;
}

static u64 vb_bytes(unsigned long nr_pages)
{
	return (u64)nr_pages << PAGE_SHIFT;
}

#ifdef CONFIG_VM_EVENT_COUNTERS
/* Tags that count events, and whether an event is a page's worth of bytes. */
static const struct {
	u16 tag;
	u16 event;
	bool pages;
} vb_event_tags[] = {
	{ VIRTIO_BALLOON_S_SWAP_IN, PSWPIN, true },
	{ VIRTIO_BALLOON_S_SWAP_OUT, PSWPOUT, true },
	{ VIRTIO_BALLOON_S_MAJFLT, PGMAJFAULT, false },
	{ VIRTIO_BALLOON_S_MINFLT, PGFAULT, false },
#ifdef CONFIG_HUGETLB_PAGE
	{ VIRTIO_BALLOON_S_HTLB_PGALLOC, HTLB_BUDDY_PGALLOC, false },
	{ VIRTIO_BALLOON_S_HTLB_PGFAIL, HTLB_BUDDY_PGALLOC_FAIL, false },
#endif
	{ VIRTIO_BALLOON_S_OOM_KILL, OOM_KILL, false },
	{ VIRTIO_BALLOON_S_ASYNC_SCAN, PGSCAN_KSWAPD, true },
	{ VIRTIO_BALLOON_S_DIRECT_SCAN, PGSCAN_DIRECT, true },
	{ VIRTIO_BALLOON_S_ASYNC_RECLAIM, PGSTEAL_KSWAPD, true },
	{ VIRTIO_BALLOON_S_DIRECT_RECLAIM, PGSTEAL_DIRECT, true },
};

/* Add the event tags from @first up to and without @end. */
static unsigned int vb_stats_events(struct vb *vb, unsigned int nr,
				    const unsigned long *events, u16 first,
				    u16 end)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(vb_event_tags); i++) {
		u16 tag = vb_event_tags[i].tag;
		u64 val = events[vb_event_tags[i].event];

		if (tag < first || tag >= end)
			continue;
		if (vb_event_tags[i].pages)
			val = vb_bytes(val);
		nr = vb_stat_add(vb, nr, tag, val);
	}
	return nr;
}

static u64 vb_alloc_stalls(const unsigned long *events)
{
	u64 stalls = 0;
	int zone;

	for (zone = 0; zone < MAX_NR_ZONES; zone++)
		stalls += events[ALLOCSTALL_NORMAL - ZONE_NORMAL + zone];
	return stalls;
}
#endif /* CONFIG_VM_EVENT_COUNTERS */

static unsigned int vb_stats_memory(struct vb *vb, unsigned int nr)
{
	struct sysinfo info;

	si_meminfo(&info);
	nr = vb_stat_add(vb, nr, VIRTIO_BALLOON_S_MEMFREE,
			 vb_bytes(info.freeram));
	nr = vb_stat_add(vb, nr, VIRTIO_BALLOON_S_MEMTOT,
			 vb_bytes(info.totalram));
	nr = vb_stat_add(vb, nr, VIRTIO_BALLOON_S_AVAIL,
			 vb_bytes(max(si_mem_available(), 0l)));
	return vb_stat_add(vb, nr, VIRTIO_BALLOON_S_CACHES,
			   vb_bytes(global_node_page_state(NR_FILE_PAGES)));
}

/* Fill vb->stats; returns how many entries there are. */
static unsigned int vb_stats_collect(struct vb *vb)
{
	unsigned int nr = 0;

#ifdef CONFIG_VM_EVENT_COUNTERS
	unsigned long events[NR_VM_EVENT_ITEMS];

	all_vm_events(events);
	/* The kernel counts every fault; the host wants the minor ones. */
	events[PGFAULT] -= min(events[PGFAULT], events[PGMAJFAULT]);
	nr = vb_stats_events(vb, nr, events, 0, VIRTIO_BALLOON_S_MEMFREE);
	nr = vb_stats_memory(vb, nr);
	nr = vb_stats_events(vb, nr, events, VIRTIO_BALLOON_S_MEMFREE,
			     VIRTIO_BALLOON_S_ALLOC_STALL);
	nr = vb_stat_add(vb, nr, VIRTIO_BALLOON_S_ALLOC_STALL,
			 vb_alloc_stalls(events));
	nr = vb_stats_events(vb, nr, events, VIRTIO_BALLOON_S_ALLOC_STALL,
			     VIRTIO_BALLOON_S_NR);
#else
	nr = vb_stats_memory(vb, nr);
#endif
	return nr;
}

/**
 * vb_stats_offer() - give the device a buffer of fresh statistics
 * @vb: the balloon; the device has no such buffer now
 *
 * Context: process context, after DRIVER_OK.
 */
void vb_stats_offer(struct vb *vb)
{
	struct scatterlist sg;

	if (!vb->stats_vq)
		return;
	sg_init_one(&sg, vb->stats,
		    vb_stats_collect(vb) * sizeof(vb->stats[0]));
	if (!virtqueue_add_outbuf(vb->stats_vq, &sg, 1, vb, GFP_KERNEL))
		virtqueue_kick(vb->stats_vq);
}

static void vb_stats_work(struct work_struct *work)
{
	struct vb *vb = container_of(work, struct vb, stats_work);
	unsigned int len;

	if (virtqueue_get_buf(vb->stats_vq, &len))
		vb_stats_offer(vb);
	vb_may_sleep(vb, VB_WAKE_STATS);
}

/**
 * vb_stats_callback() - the device wants new statistics
 * @vq: the statistics queue
 */
void vb_stats_callback(struct virtqueue *vq)
{
	struct vb *vb = vq->vdev->priv;

	if (vb_gone(vb))
		return;
	vb_stay_awake(vb, VB_WAKE_STATS);
	queue_work(vb->wq, &vb->stats_work);
}

/**
 * vb_stats_init() - prepare the statistics work
 * @vb: the balloon
 */
void vb_stats_init(struct vb *vb)
{
	INIT_WORK(&vb->stats_work, vb_stats_work);
}
