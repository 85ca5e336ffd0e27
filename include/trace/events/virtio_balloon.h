/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tracepoints of the virtio balloon. Counts are in guest pages unless the field
 * says otherwise.
 *
 * Copyright (C) the project's developers
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM virtio_balloon

#if !defined(_TRACE_VIRTIO_BALLOON_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_VIRTIO_BALLOON_H

#include <linux/tracepoint.h>
#include <linux/virtio.h>

/* The host has set another target. */
TRACE_EVENT(virtio_balloon_target,
	TP_PROTO(struct virtio_device *vdev, unsigned long target_pages,
		 unsigned long balloon_pages),
	TP_ARGS(vdev, target_pages, balloon_pages),
	TP_STRUCT__entry(
		__field(int, device)
		__field(unsigned long, target_pages)
		__field(unsigned long, balloon_pages)
	),
	TP_fast_assign(
		__entry->device = vdev->index;
		__entry->target_pages = target_pages;
		__entry->balloon_pages = balloon_pages;
	),
	TP_printk("virtio%d target_pages=%lu balloon_pages=%lu",
		  __entry->device, __entry->target_pages,
		  __entry->balloon_pages)
);

/*
 * The host is notified of a batch of buffers on a queue, by its index: 0, inflate, 1,
 * deflate, or that of the reporting queue, also for a report of free pages.
 */
TRACE_EVENT(virtio_balloon_batch,
	TP_PROTO(struct virtio_device *vdev, unsigned int queue,
		 unsigned int nr_buffers, unsigned int nr_in_flight),
	TP_ARGS(vdev, queue, nr_buffers, nr_in_flight),
	TP_STRUCT__entry(
		__field(int, device)
		__field(unsigned int, queue)
		__field(unsigned int, nr_buffers)
		__field(unsigned int, nr_in_flight)
	),
	TP_fast_assign(
		__entry->device = vdev->index;
		__entry->queue = queue;
		__entry->nr_buffers = nr_buffers;
		__entry->nr_in_flight = nr_in_flight;
	),
	TP_printk("virtio%d queue=%u buffers=%u in_flight_buffers=%u",
		  __entry->device, __entry->queue, __entry->nr_buffers,
		  __entry->nr_in_flight)
);

/* The OOM killer's notifier has taken pages out of the balloon. */
TRACE_EVENT(virtio_balloon_oom,
	TP_PROTO(struct virtio_device *vdev, unsigned long held_pages,
		 unsigned long inflated_pages, unsigned long left_pages),
	TP_ARGS(vdev, held_pages, inflated_pages, left_pages),
	TP_STRUCT__entry(
		__field(int, device)
		__field(unsigned long, held_pages)
		__field(unsigned long, inflated_pages)
		__field(unsigned long, left_pages)
	),
	TP_fast_assign(
		__entry->device = vdev->index;
		__entry->held_pages = held_pages;
		__entry->inflated_pages = inflated_pages;
		__entry->left_pages = left_pages;
	),
	TP_printk("virtio%d held_pages=%lu inflated_pages=%lu left_pages=%lu",
		  __entry->device, __entry->held_pages,
		  __entry->inflated_pages, __entry->left_pages)
);

/* Compaction has moved a ballooned page. */
TRACE_EVENT(virtio_balloon_migrate,
	TP_PROTO(struct virtio_device *vdev, unsigned long from_pfn,
		 unsigned long to_pfn),
	TP_ARGS(vdev, from_pfn, to_pfn),
	TP_STRUCT__entry(
		__field(int, device)
		__field(unsigned long, from_pfn)
		__field(unsigned long, to_pfn)
	),
	TP_fast_assign(
		__entry->device = vdev->index;
		__entry->from_pfn = from_pfn;
		__entry->to_pfn = to_pfn;
	),
	TP_printk("virtio%d from_pfn=%#lx to_pfn=%#lx", __entry->device,
		  __entry->from_pfn, __entry->to_pfn)
);

#endif /* _TRACE_VIRTIO_BALLOON_H */

#include <trace/define_trace.h>
