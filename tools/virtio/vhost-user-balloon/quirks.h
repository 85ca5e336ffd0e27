/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Misbehaviour on demand, for tests of drivers.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_QUIRKS_H
#define VUB_QUIRKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Config space has so many fields of 32 bits. */
#define VUB_CONFIG_FIELDS	4

/**
 * struct vub_queue_quirks - how a queue misbehaves
 * @nr_drop: buffers that are never given back, from the next one on
 * @hold: buffers are kept until this is off
 * @delay_ms: buffers are kept for so long
 * @serial: the delay of one begins when the one before it is over
 * @reverse: those that were taken together are given back in reverse order
 * @duplicate: each is given back twice
 * @silent: the driver is not called
 * @poll: buffers are looked for all the time, not only when there was a kick
 */
struct vub_queue_quirks {
	uint64_t nr_drop;
	bool hold;
	uint32_t delay_ms;
	bool serial;
	bool reverse;
	bool duplicate;
	bool silent;
	bool poll;
};

/**
 * struct vub_fill - memory that is filled instead of released
 * @on: whether it is
 * @pattern: what every byte is filled with
 * @nr_filled: pages that were filled
 * @nr_checked: pages that were looked at when they were deflated
 * @nr_damaged: pages that were not as they were left
 */
struct vub_fill {
	bool on;
	uint8_t pattern;
	uint64_t nr_filled;
	uint64_t nr_checked;
	uint64_t nr_damaged;
};

/**
 * struct vub_lie - a field of config space that is not what it should be
 * @on: whether it is so
 * @value: what the driver reads
 */
struct vub_lie {
	bool on;
	uint32_t value;
};

void vub_fill_pages(struct vub_fill *fill, char *memory, size_t size);
void vub_fill_check(struct vub_fill *fill, const char *memory, size_t size);

#endif /* VUB_QUIRKS_H */
