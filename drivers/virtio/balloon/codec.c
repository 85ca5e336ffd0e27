// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Names pages the way of the virtio specification, section 5.5.6: an array of
 * 32-bit page frame numbers, in units of 4 KiB whatever the guest's page size.
 *
 * Copyright (C) the project's developers
 */
#include <asm/byteorder.h>
#include <linux/limits.h>
#include <linux/virtio_byteorder.h>

#include "codec.h"

/**
 * vb_encode_pfns() - append a run of pages to a PFN array
 * @pfns: where the first number goes
 * @little_endian: the device's byte order, see virtio_is_little_endian()
 * @pfn: first page frame, in guest pages
 * @nr_pages: length of the run, in guest pages
 *
 * Numbers ascend, so that hosts which merge neighbours can.
 *
 * Return: how many numbers were written, %VB_PFNS_PER_PAGE for each page.
 */
unsigned int vb_encode_pfns(__virtio32 *pfns, bool little_endian,
			    unsigned long pfn, unsigned long nr_pages)
{
	unsigned int nr_pfns = nr_pages * VB_PFNS_PER_PAGE;
	u32 first = pfn * VB_PFNS_PER_PAGE;
	unsigned int i;

	for (i = 0; i < nr_pfns; i++)
		pfns[i] = __cpu_to_virtio32(little_endian, first + i);
	return nr_pfns;
}

/**
 * vb_pfn_fits() - whether 32 bits can name a run of pages
 * @pfn: first page frame, in guest pages
 * @nr_pages: length of the run, in guest pages
 *
 * A guest with more than 16 TiB has pages that the array cannot name. Cut to
 * 32 bits they would name, and destroy, somebody else's memory.
 *
 * Return: true if the array can carry the run.
 */
bool vb_pfn_fits(unsigned long pfn, unsigned long nr_pages)
{
	return ((u64)pfn + nr_pages) * VB_PFNS_PER_PAGE - 1 <= U32_MAX;
}
