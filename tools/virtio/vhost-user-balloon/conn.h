/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The connection to the VMM.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_CONN_H
#define VUB_CONN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "loop.h"
#include "protocol.h"
#include "util.h"

struct vub_device;

/**
 * struct vub_message - a request of the VMM
 * @header: its header
 * @payload: its payload, @header.size bytes
 * @fd: its descriptors; closed after it was handled, except where they are -1
 * @nr_fds: how many came
 */
struct vub_message {
	struct vub_header header;
	char payload[VUB_PAYLOAD_MAX];
	int fd[VUB_FDS_MAX];
	unsigned int nr_fds;
};

/**
 * struct vub_conn - the connection
 * @dev: the device
 * @source: the socket
 * @req_fd: where the device's own requests go to, or -1
 * @protocol_features: what both ends understand
 * @have: bytes of @message that have come
 * @message: the request that is coming in
 * @waiting: the request is complete, and waits until the batch is done
 * @served: a message was handled: it is no mere look at whether we live
 * @replied: it was answered with more than an acknowledgment
 * @retry: for a request of the device that @req_fd had no room for
 * @config_due: the driver has to be told to read config space again
 * @calls_due: queues whose driver has to be called, a bit each
 * @broken: the connection ends, and nothing is received any more
 * @closed: called when it has ended
 */
struct vub_conn {
	struct vub_device *dev;
	struct vub_source source;
	int req_fd;
	uint64_t protocol_features;
	size_t have;
	struct vub_message message;
	bool waiting;
	bool served;
	bool replied;
	struct vub_timer retry;
	bool config_due;
	uint32_t calls_due;
	bool broken;
	void (*closed)(struct vub_conn *conn);
};

int vub_conn_open(struct vub_conn *conn, struct vub_device *dev, int fd);
void vub_conn_close(struct vub_conn *conn);
void vub_conn_break(struct vub_conn *conn, const char *why);
void vub_conn_resume(struct vub_conn *conn);
void vub_conn_reply(struct vub_conn *conn, const void *payload, size_t size);
void vub_conn_call(struct vub_conn *conn, unsigned int index);
void vub_conn_config_changed(struct vub_conn *conn);
void vub_conn_set_req_fd(struct vub_conn *conn, int fd);

/* messages.c */
bool vub_message_has_to_wait(const struct vub_conn *conn,
			     const struct vub_message *msg);
int vub_message_handle(struct vub_conn *conn, struct vub_message *msg);

#endif /* VUB_CONN_H */
