// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines for the operator. What a guest or a VMM can cause is limited, so that
 * neither can fill the host's journal.
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "log.h"
#include "util.h"

/* A peer may cause so many lines in so much time. */
#define VUB_PEER_LINES		10
#define VUB_PEER_PERIOD		(10 * VUB_NSEC_PER_SEC)

static enum vub_log_level vub_level = VUB_INFO;

static const char *const vub_level_names[] = {
	[VUB_ERROR] = "error",
	[VUB_WARN] = "warning",
	[VUB_INFO] = "info",
	[VUB_DEBUG] = "debug",
};

/**
 * vub_log_set_level() - choose what is printed
 * @level: the least important kind that is
 */
void vub_log_set_level(enum vub_log_level level)
{
	vub_level = level;
}

/**
 * vub_log_parse_level() - read a level's name
 * @name: the name
 * @level: where the level goes
 *
 * Return: 0, or -EINVAL.
 */
int vub_log_parse_level(const char *name, enum vub_log_level *level)
{
	unsigned int i;

	for (i = 0; i < VUB_ARRAY_SIZE(vub_level_names); i++) {
		if (strcmp(name, vub_level_names[i]))
			continue;
		*level = i;
		return 0;
	}
	return -EINVAL;
}

static void __printf(2, 0)
vub_vlog(enum vub_log_level level, const char *format, va_list args)
{
	char line[512];

	if (level > vub_level)
		return;
	vsnprintf(line, sizeof(line), format, args);
	fprintf(stderr, "vhost-user-balloon: %s: %s\n", vub_level_names[level],
		line);
}

/**
 * vub_log() - print a line
 * @level: what it is about
 * @format: as for printf(), without a newline
 */
void vub_log(enum vub_log_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vub_vlog(level, format, args);
	va_end(args);
}

/* Whether a peer may have another line now. */
static bool vub_peer_may_log(void)
{
	static unsigned int nr_lines, nr_left_out;
	static uint64_t period_end;
	uint64_t now = vub_now();

	if (now >= period_end) {
		if (nr_left_out)
			vub_log(VUB_WARN, "%u more lines about guests left out",
				nr_left_out);
		nr_lines = 0;
		nr_left_out = 0;
		period_end = now + VUB_PEER_PERIOD;
	}
	if (nr_lines < VUB_PEER_LINES) {
		nr_lines++;
		return true;
	}
	nr_left_out++;
	return false;
}

/**
 * vub_peer_log() - print a line that a guest or a VMM has caused
 * @level: what it is about
 * @format: as for printf(), without a newline
 */
void vub_peer_log(enum vub_log_level level, const char *format, ...)
{
	va_list args;

	if (level > vub_level || !vub_peer_may_log())
		return;
	va_start(args, format);
	vub_vlog(level, format, args);
	va_end(args);
}
