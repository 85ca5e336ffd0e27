// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the balloon holds, and why: a directory per device under virtio_balloon/
 * in debugfs. "state" is for people, "stat" for programs: a name and a number a
 * line, in guest pages where the name ends in _pages.
 *
 * Copyright (C) the project's developers
 */
#include <linux/debugfs.h>
#include <linux/mm.h>
#include <linux/seq_file.h>

#include "balloon.h"

static struct dentry *vb_debugfs_root;

static const char *vb_activity(const struct vb *vb)
{
	unsigned long have = vb_committed(vb);

	if (test_bit(VB_DEAD, &vb->flags))
		return "device gone: the driver waits to be unbound";
	if (test_bit(VB_SILENT, &vb->flags) && vb_waits(vb))
		return "waiting: the host does not answer";
	if (have > vb->target)
		return "deflating";
	if (have == vb_wanted(vb) && vb->relief)
		return "held back: memory was given back on OOM";
	if (have < vb->target && vb->failures)
		return "cannot: the guest can spare no more memory";
	if (have < vb->target || vb->nr[VB_HELD] || vb->nr[VB_IN_FLIGHT])
		return "inflating";
	return "at target";
}

static u64 vb_kib(unsigned long nr_pages)
{
	return (u64)nr_pages << (PAGE_SHIFT - 10);
}

static int state_show(struct seq_file *m, void *unused)
{
	struct vb *vb = m->private;

	spin_lock(&vb->lock);
	seq_printf(m, "%s\n", vb_activity(vb));
	seq_printf(m, "target:    %12llu KiB, asked for by the host\n",
		   vb_kib(vb->target));
	seq_printf(m, "inflated:  %12llu KiB, the host has them\n",
		   vb_kib(vb->nr[VB_INFLATED]));
	seq_printf(m, "in flight: %12llu KiB, being named to the host\n",
		   vb_kib(vb->nr[VB_IN_FLIGHT]));
	seq_printf(m, "held:      %12llu KiB, the host does not know yet\n",
		   vb_kib(vb->nr[VB_HELD]));
	seq_printf(m, "returning: %12llu KiB, asked back from the host\n",
		   vb_kib(vb->nr[VB_RETURNING]));
	seq_printf(m, "relief:    %12llu KiB, given back on OOM and not taken again before the target changes\n",
		   vb_kib(vb->relief));
	spin_unlock(&vb->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(state);

static void vb_show_queue(struct seq_file *m, const char *name,
			  const struct vb_queue *q)
{
	seq_printf(m, "%s_kicks %llu\n", name, q->nr_kicks);
	seq_printf(m, "%s_buffers %llu\n", name, q->nr_buffers);
	seq_printf(m, "%s_pfns %llu\n", name, q->nr_pages * VB_PFNS_PER_PAGE);
	seq_printf(m, "%s_window %u\n", name, q->window);
	seq_printf(m, "%s_in_flight_buffers %u\n", name, q->in_flight);
	seq_printf(m, "%s_slots %u\n", name, q->nr_slots + 1);
}

static int stat_show(struct seq_file *m, void *unused)
{
	struct vb *vb = m->private;

	spin_lock(&vb->lock);
	seq_printf(m, "target_pages %lu\n", vb->target);
	seq_printf(m, "actual_pages %lu\n", vb_actual(vb));
	seq_printf(m, "held_pages %lu\n", vb->nr[VB_HELD]);
	seq_printf(m, "in_flight_pages %lu\n", vb->nr[VB_IN_FLIGHT]);
	seq_printf(m, "inflated_pages %lu\n", vb->nr[VB_INFLATED]);
	seq_printf(m, "returning_pages %lu\n", vb->nr[VB_RETURNING]);
	seq_printf(m, "inflated_by_report_pages %lu\n", vb->nr_reported);
	seq_printf(m, "isolated_pages %lu\n", vb->bdi.isolated_pages);
	seq_printf(m, "relief_pages %lu\n", vb->relief);
	vb_show_queue(m, "inflate", &vb->inflate);
	vb_show_queue(m, "deflate", &vb->deflate);
	vb_show_queue(m, "report", &vb->report);
	seq_printf(m, "max_buffer_bytes %u\n",
		   max(vb->inflate.longest, vb->deflate.longest));
	seq_printf(m, "alloc_fails %llu\n", vb->nr_alloc_fails);
	seq_printf(m, "oom_calls %llu\n", vb->nr_oom_calls);
	seq_printf(m, "oom_pages %llu\n", vb->nr_oom_pages);
	seq_printf(m, "oom_untold_pages %llu\n", vb->nr_oom_untold);
	seq_printf(m, "migrations %llu\n", vb->nr_migrations);
	seq_printf(m, "hint_offered_blocks %lu\n", vb->hints.nr_offered);
	seq_printf(m, "hint_taken_blocks %lu\n", vb->hints.nr_taken);
	seq_printf(m, "reports %llu\n", vb->nr_reports);
	seq_printf(m, "reported_pages %llu\n", vb->nr_reported_pages);
	spin_unlock(&vb->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stat);

static void vb_show_buckets(struct seq_file *m, const char *name,
			    const char *what, const u64 *buckets, bool powers)
{
	unsigned int i;

	for (i = 0; i < VB_DENSITY_BUCKETS; i++)
		seq_printf(m, "%s_%s_%u %llu\n", name, what,
			   powers ? 1u << i : i, buckets[i]);
}

static u64 vb_per_gib(u64 value, u64 nr_pfns)
{
	return nr_pfns ? mul_u64_u64_div_u64(value, 1ull << 18, nr_pfns) : 0;
}

static void vb_show_density(struct seq_file *m, const char *name,
			    const struct vb_density *density)
{
	seq_printf(m, "%s_pfns %llu\n", name, density->nr_pfns);
	seq_printf(m, "%s_windows %llu\n", name, density->nr_windows);
	seq_printf(m, "%s_windows_per_gib %llu\n", name,
		   vb_per_gib(density->nr_windows, density->nr_pfns));
	seq_printf(m, "%s_bytes %llu\n", name, density->nr_bytes);
	seq_printf(m, "%s_bytes_per_gib %llu\n", name,
		   vb_per_gib(density->nr_bytes, density->nr_pfns));
	seq_printf(m, "%s_singles %llu\n", name, density->nr_singles);
	vb_show_buckets(m, name, "window_bits", density->bits, true);
	vb_show_buckets(m, name, "run_pfns", density->runs, true);
	vb_show_buckets(m, name, "block_order", density->orders, false);
}

static int bitmap_show(struct seq_file *m, void *unused)
{
	struct vb *vb = m->private;

	spin_lock(&vb->lock);
	vb_show_density(m, "inflate", &vb->inflate.density);
	vb_show_density(m, "deflate", &vb->deflate.density);
	spin_unlock(&vb->lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(bitmap);

/**
 * vb_debugfs_create() - make a device's directory
 * @vb: the balloon
 */
void vb_debugfs_create(struct vb *vb)
{
	vb->debugfs = debugfs_create_dir(dev_name(&vb->vdev->dev),
					 vb_debugfs_root);
	debugfs_create_file("state", 0400, vb->debugfs, vb, &state_fops);
	debugfs_create_file("stat", 0400, vb->debugfs, vb, &stat_fops);
	if (vb_by_bitmap(vb))
		debugfs_create_file("bitmap", 0400, vb->debugfs, vb,
				    &bitmap_fops);
}

/**
 * vb_debugfs_remove() - the reverse of vb_debugfs_create()
 * @vb: the balloon
 */
void vb_debugfs_remove(struct vb *vb)
{
	debugfs_remove_recursive(vb->debugfs);
}

/** vb_debugfs_init() - make the directory for all devices */
void vb_debugfs_init(void)
{
	vb_debugfs_root = debugfs_create_dir("virtio_balloon", NULL);
}

/** vb_debugfs_exit() - the reverse of vb_debugfs_init() */
void vb_debugfs_exit(void)
{
	debugfs_remove_recursive(vb_debugfs_root);
}
