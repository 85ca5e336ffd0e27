/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the operator asked for on the command line.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_OPTIONS_H
#define VUB_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "log.h"

/**
 * enum vub_layout - how queues are numbered
 * @VUB_LAYOUT_DENSE: over the offered features, as every host does it
 * @VUB_LAYOUT_SPEC: by the fixed numbers of the virtio specification
 */
enum vub_layout {
	VUB_LAYOUT_DENSE,
	VUB_LAYOUT_SPEC,
};

/**
 * struct vub_options - the command line
 * @socket_path: where the VMM connects to; NULL with @fd
 * @fd: the same as an inherited descriptor, or -1
 * @qmp_path: where the operator connects to; NULL for none
 * @id: the device's name in QMP paths
 * @features: virtio features that are offered
 * @ram_size: bytes that the guest has; 0: as much as the VMM shares
 * @poll_interval: seconds between two statistics; 0: none
 * @log_level: what is logged
 * @reconnect: wait for the next guest when one is gone
 * @in_band: offer notifications as messages
 * @by_page: release page by page, as other hosts do
 * @grain: release nothing smaller than so many bytes
 * @layout: how queues are numbered
 * @test_commands: take orders to misbehave
 * @sandbox: give up what the daemon needs no longer
 */
struct vub_options {
	const char *socket_path;
	int fd;
	const char *qmp_path;
	const char *id;
	uint64_t features;
	uint64_t ram_size;
	uint32_t poll_interval;
	enum vub_log_level log_level;
	bool reconnect;
	bool in_band;
	bool by_page;
	uint64_t grain;
	enum vub_layout layout;
	bool test_commands;
	bool sandbox;
};

/**
 * enum vub_parsed - what to do after the command line was read
 * @VUB_RUN: serve
 * @VUB_DONE: all was printed that was asked for
 * @VUB_BAD: it was wrong; what was printed
 */
enum vub_parsed {
	VUB_RUN,
	VUB_DONE,
	VUB_BAD,
};

enum vub_parsed vub_options_parse(struct vub_options *options, int argc,
				  char **argv);

#endif /* VUB_OPTIONS_H */
