/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines for the operator, on standard error.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_LOG_H
#define VUB_LOG_H

#include "util.h"

/**
 * enum vub_log_level - what a line is about
 * @VUB_ERROR: the daemon cannot do what it was asked to
 * @VUB_WARN: something is wrong, and service goes on
 * @VUB_INFO: guests that come and go
 * @VUB_DEBUG: every message of the VMM
 */
enum vub_log_level {
	VUB_ERROR,
	VUB_WARN,
	VUB_INFO,
	VUB_DEBUG,
};

void vub_log_set_level(enum vub_log_level level);
int vub_log_parse_level(const char *name, enum vub_log_level *level);

void vub_log(enum vub_log_level level, const char *format, ...)
	__printf(2, 3);
void vub_peer_log(enum vub_log_level level, const char *format, ...)
	__printf(2, 3);

#define vub_err(...)	vub_log(VUB_ERROR, __VA_ARGS__)
#define vub_dbg(...)	vub_log(VUB_DEBUG, __VA_ARGS__)

/* The same for what a guest or a VMM can cause at will. */
#define vub_peer_warn(...)	vub_peer_log(VUB_WARN, __VA_ARGS__)
#define vub_peer_info(...)	vub_peer_log(VUB_INFO, __VA_ARGS__)

#endif /* VUB_LOG_H */
