/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The standard's PFN arrays. Pure functions, shared by the engine and KUnit.
 *
 * Copyright (C) the project's developers
 */
#ifndef _VIRTIO_BALLOON_CODEC_H
#define _VIRTIO_BALLOON_CODEC_H

#include <linux/mm.h>
#include <linux/virtio_balloon.h>
#include <linux/virtio_types.h>

/* Hosts in the field drop longer arrays. */
#define VB_PFNS_PER_BUFFER	256
/* PFNs of 4 KiB that one guest page stands for. */
#define VB_PFNS_PER_PAGE	(PAGE_SIZE >> VIRTIO_BALLOON_PFN_SHIFT)

unsigned int vb_encode_pfns(__virtio32 *pfns, bool little_endian,
			    unsigned long pfn, unsigned long nr_pages);
bool vb_pfn_fits(unsigned long pfn, unsigned long nr_pages);

#endif /* _VIRTIO_BALLOON_CODEC_H */
