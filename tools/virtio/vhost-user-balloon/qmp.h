/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The operators' socket: QEMU's machine protocol, as far as a balloon needs it.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_QMP_H
#define VUB_QMP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/time.h>

#include "loop.h"
#include "util.h"

struct vub_device;
struct vub_qmp;

/* The longest command. */
#define VUB_QMP_MAX_COMMAND	65536

/**
 * struct vub_qmp_client - an operator
 * @next: the next one
 * @qmp: the socket
 * @source: the connection
 * @in: the command that is coming in
 * @nr_in: bytes of it
 * @depth: open braces and brackets in it
 * @in_string: it is inside a string
 * @escaped: the next character of that string is not special
 * @out: what is still to be sent
 * @nr_out: bytes of it
 * @negotiated: qmp_capabilities was given
 * @gone: to be closed after this event
 */
struct vub_qmp_client {
	struct vub_qmp_client *next;
	struct vub_qmp *qmp;
	struct vub_source source;
	char in[VUB_QMP_MAX_COMMAND];
	size_t nr_in;
	unsigned int depth;
	bool in_string;
	bool escaped;
	char *out;
	size_t nr_out;
	bool negotiated;
	bool gone;
};

/**
 * struct vub_qmp - the socket
 * @dev: the device
 * @listener: where operators connect to
 * @clients: those that are connected
 * @nr_clients: how many there are
 * @event_timer: set while another event would come too early
 * @event_due: there is an event to send when it would not
 * @actual: what it says
 * @changed: when that came to be
 */
struct vub_qmp {
	struct vub_device *dev;
	struct vub_source listener;
	struct vub_qmp_client *clients;
	unsigned int nr_clients;
	struct vub_timer event_timer;
	bool event_due;
	uint64_t actual;
	struct timeval changed;
};

/**
 * struct vub_reply - what comes of a command
 * @value: what it returns; NULL: see @text
 * @text: the same as text, where jansson cannot express it; NULL: an error
 * @error_class: the error's class
 * @error_desc: what is wrong, in words: text of any length
 */
struct vub_reply {
	json_t *value;
	char *text;
	const char *error_class;
	json_t *error_desc;
};

/* qmp.c */
int vub_qmp_open(struct vub_qmp *qmp, struct vub_device *dev, int listen_fd);
void vub_qmp_close(struct vub_qmp *qmp);
void vub_qmp_balloon_change(struct vub_qmp *qmp);

/* qmp_commands.c */
json_t *vub_qmp_version(void);
void vub_qmp_execute(struct vub_qmp_client *client, const char *name,
		     const json_t *args, struct vub_reply *reply);
void vub_reply_error(struct vub_reply *reply, const char *error_class,
		     const char *format, ...)
	__printf(3, 4);
void vub_reply_nothing(struct vub_reply *reply);
bool vub_arg_int(const json_t *args, const char *name, json_int_t min,
		 json_int_t max, json_int_t *value, struct vub_reply *reply);

/* qmp_device.c */
json_t *vub_qmp_device(const struct vub_device *dev);

/* qmp_misbehave.c */
void vub_qmp_misbehave(struct vub_device *dev, const json_t *args,
		       struct vub_reply *reply);

#endif /* VUB_QMP_H */
