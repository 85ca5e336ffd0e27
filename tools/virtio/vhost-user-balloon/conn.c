// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The connection to the VMM: brings whole messages in, and answers out.
 *
 * Nothing here waits for the peer. A message may come in any number of pieces;
 * a peer that does not read its answers is disconnected.
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "conn.h"
#include "device.h"
#include "log.h"

/* A request pipe without room is tried again after so long. */
#define VUB_RETRY	(10 * VUB_NSEC_PER_MSEC)

union vub_control {
	struct cmsghdr align;
	char buf[CMSG_SPACE(sizeof(int) * VUB_FDS_MAX)];
};

/**
 * vub_conn_break() - end a connection
 * @conn: the connection; closed in a moment
 * @why: what the log says about it
 */
void vub_conn_break(struct vub_conn *conn, const char *why)
{
	if (conn->broken)
		return;
	conn->broken = true;
	vub_peer_warn("the VMM is disconnected: %s", why);
	/* The loop sees the end of it and closes. */
	shutdown(conn->source.fd, SHUT_RDWR);
}

/* End a connection for a message that cannot even be answered. */
static void vub_conn_bad_message(struct vub_conn *conn, const char *why)
{
	conn->dev->nr_bad_messages++;
	vub_conn_break(conn, why);
}

static void vub_message_close_fds(struct vub_message *msg)
{
	unsigned int i;

	for (i = 0; i < msg->nr_fds; i++) {
		if (msg->fd[i] >= 0)
			close(msg->fd[i]);
	}
	msg->nr_fds = 0;
}

/**
 * vub_conn_close() - end a connection
 * @conn: the connection
 */
void vub_conn_close(struct vub_conn *conn)
{
	struct vub_device *dev = conn->dev;
	int fd = conn->source.fd;

	vub_timer_cancel(&dev->loop, &conn->retry);
	vub_loop_remove(&dev->loop, &conn->source);
	close(fd);
	vub_message_close_fds(&conn->message);
	vub_conn_set_req_fd(conn, -1);
	vub_device_disconnect(dev);
	if (conn->served)
		vub_peer_info("the guest is gone");
	if (conn->closed)
		conn->closed(conn);
}

/* Keep descriptors that came with a piece; false if there are too many. */
static bool vub_conn_take_fds(struct vub_conn *conn, struct msghdr *hdr)
{
	struct vub_message *msg = &conn->message;
	bool fits = !(hdr->msg_flags & MSG_CTRUNC);
	struct cmsghdr *cmsg;

	for (cmsg = CMSG_FIRSTHDR(hdr); cmsg; cmsg = CMSG_NXTHDR(hdr, cmsg)) {
		size_t nr, i;

		if (cmsg->cmsg_level != SOL_SOCKET ||
		    cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		nr = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (i = 0; i < nr; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(fd),
			       sizeof(fd));
			if (msg->nr_fds < VUB_FDS_MAX) {
				msg->fd[msg->nr_fds++] = fd;
			} else {
				close(fd);
				fits = false;
			}
		}
	}
	return fits;
}

/* Where the rest of the header goes, or else of the payload. */
static struct iovec vub_conn_room(struct vub_conn *conn)
{
	struct vub_message *msg = &conn->message;
	size_t have = conn->have, size = sizeof(msg->header);

	if (have < size)
		return (struct iovec){ (char *)&msg->header + have,
				       size - have };
	have -= size;
	size = vub_min(msg->header.size, sizeof(msg->payload));
	return (struct iovec){ msg->payload + have, size - have };
}

/*
 * Receive more bytes of the message, which is not complete. Returns what
 * recvmsg() does; 0 is the end.
 */
static ssize_t vub_conn_receive(struct vub_conn *conn)
{
	union vub_control control;
	struct iovec iov = vub_conn_room(conn);
	struct msghdr hdr = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.buf,
		.msg_controllen = sizeof(control.buf),
	};
	ssize_t done;

	done = recvmsg(conn->source.fd, &hdr, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (done < 0)
		return done;
	if (!vub_conn_take_fds(conn, &hdr))
		vub_conn_bad_message(conn, "too many descriptors in a message");
	conn->have += (size_t)done;
	return done;
}

static bool vub_header_valid(const struct vub_header *header)
{
	return (header->flags & VUB_FLAG_VERSION_MASK) ==
	       VUB_PROTOCOL_VERSION && !(header->flags & VUB_FLAG_REPLY) &&
	       header->size <= VUB_PAYLOAD_MAX;
}

static void vub_conn_acknowledge(struct vub_conn *conn, int err)
{
	const struct vub_header *header = &conn->message.header;
	uint64_t status = err ? 1 : 0;

	if (conn->replied)
		return;
	if (conn->protocol_features & VUB_BIT(VUB_PROTOCOL_F_REPLY_ACK) &&
	    header->flags & VUB_FLAG_NEED_REPLY)
		vub_conn_reply(conn, &status, sizeof(status));
	else if (err)
		vub_conn_break(conn, "a message was refused, and the VMM wants no answer");
}

static void vub_conn_first(struct vub_conn *conn)
{
	if (conn->served)
		return;
	conn->served = true;
	conn->dev->nr_guests++;
	vub_peer_info("a VMM has connected");
}

static void vub_conn_handle(struct vub_conn *conn)
{
	struct vub_message *msg = &conn->message;
	int err;

	vub_conn_first(conn);
	conn->replied = false;
	err = vub_message_handle(conn, msg);
	if (err) {
		conn->dev->nr_bad_messages++;
		vub_peer_warn("message %u of the VMM refused: %s",
			      msg->header.request, strerror(-err));
	}
	vub_conn_acknowledge(conn, err);
	vub_message_close_fds(msg);
	conn->have = 0;
}

/* The message is complete; while it waits only the end is watched for. */
static void vub_conn_complete(struct vub_conn *conn)
{
	conn->waiting = vub_message_has_to_wait(conn, &conn->message);
	if (conn->waiting)
		vub_loop_change(&conn->dev->loop, &conn->source, 0);
	else
		vub_conn_handle(conn);
}

/**
 * vub_conn_resume() - handle a message that has waited for the batch
 * @conn: the connection, whose device has no batch
 */
void vub_conn_resume(struct vub_conn *conn)
{
	if (!conn->waiting || conn->broken)
		return;
	conn->waiting = false;
	vub_loop_change(&conn->dev->loop, &conn->source, EPOLLIN);
	vub_conn_handle(conn);
}

static void vub_conn_ready(struct vub_source *source, uint32_t events)
{
	struct vub_conn *conn = vub_container_of(source, struct vub_conn,
						 source);
	const struct vub_header *header = &conn->message.header;
	ssize_t done = 0;

	(void)events;
	if (!conn->broken && !conn->waiting)
		done = vub_conn_receive(conn);
	if (!done || conn->broken ||
	    (done < 0 && errno != EAGAIN && errno != EINTR)) {
		vub_conn_close(conn);
		return;
	}
	if (conn->have < sizeof(*header))
		return;
	if (!vub_header_valid(header))
		vub_conn_bad_message(conn, "a message with a wrong header");
	else if (conn->have == sizeof(*header) + header->size)
		vub_conn_complete(conn);
}

static void vub_conn_retry(struct vub_timer *timer);

/**
 * vub_conn_open() - begin to serve a VMM
 * @conn: the connection, all zeroes but for @conn->closed
 * @dev: the device, which has no VMM
 * @fd: the connected socket, taken over on success
 *
 * Return: 0 or a negative error.
 */
int vub_conn_open(struct vub_conn *conn, struct vub_device *dev, int fd)
{
	int err;

	conn->dev = dev;
	conn->req_fd = -1;
	conn->source.ready = vub_conn_ready;
	conn->retry.fire = vub_conn_retry;
	err = vub_loop_add(&dev->loop, &conn->source, fd, EPOLLIN);
	if (err)
		return err;
	dev->conn = conn;
	return 0;
}

/**
 * vub_conn_reply() - answer a message
 * @conn: the connection, in the middle of handling it
 * @payload: the answer
 * @size: bytes
 */
void vub_conn_reply(struct vub_conn *conn, const void *payload, size_t size)
{
	struct vub_header header = {
		.request = conn->message.header.request,
		.flags = VUB_PROTOCOL_VERSION | VUB_FLAG_REPLY,
		.size = (uint32_t)size,
	};
	struct iovec iov[] = {
		{ &header, sizeof(header) },
		{ (void *)payload, size },
	};
	struct msghdr hdr = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t done;

	conn->replied = true;
	done = sendmsg(conn->source.fd, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (done != (ssize_t)(sizeof(header) + size))
		vub_conn_break(conn, "it does not read its answers");
}

/* Send a request of the device; false if there is no room for it now. */
static bool vub_conn_request(struct vub_conn *conn, uint32_t request,
			     const void *payload, size_t size)
{
	char buf[sizeof(struct vub_header) + sizeof(struct vub_vring_state)];
	struct vub_header header = {
		.request = request,
		.flags = VUB_PROTOCOL_VERSION,
		.size = (uint32_t)size,
	};
	ssize_t done;

	memcpy(buf, &header, sizeof(header));
	memcpy(buf + sizeof(header), payload, size);
	/* A pipe or a socket; less than PIPE_BUF goes whole or not at all. */
	done = write(conn->req_fd, buf, sizeof(header) + size);
	if (done < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (done != (ssize_t)(sizeof(header) + size))
		vub_conn_set_req_fd(conn, -1);
	return true;
}

static bool vub_conn_request_call(struct vub_conn *conn, unsigned int index)
{
	struct vub_vring_state state = { .index = index };

	return vub_conn_request(conn, VUB_BACKEND_VRING_CALL, &state,
				sizeof(state));
}

/* Send what is due, as far as there is room. */
static void vub_conn_flush(struct vub_conn *conn)
{
	while (conn->req_fd >= 0 && conn->calls_due) {
		unsigned int index = (unsigned int)__builtin_ctz(conn->calls_due);

		if (!vub_conn_request_call(conn, index))
			goto later;
		conn->calls_due &= conn->calls_due - 1;
	}
	if (conn->req_fd >= 0 && conn->config_due) {
		if (!vub_conn_request(conn, VUB_BACKEND_CONFIG_CHANGE, "", 0))
			goto later;
		conn->config_due = false;
	}
	return;
later:
	vub_timer_set(&conn->dev->loop, &conn->retry, vub_now() + VUB_RETRY);
}

static void vub_conn_retry(struct vub_timer *timer)
{
	vub_conn_flush(vub_container_of(timer, struct vub_conn, retry));
}

/**
 * vub_conn_call() - call a driver by message
 * @conn: the connection
 * @index: the queue's number
 */
void vub_conn_call(struct vub_conn *conn, unsigned int index)
{
	if (!(conn->protocol_features & VUB_BIT(VUB_PROTOCOL_F_INBAND)))
		return;
	conn->calls_due |= 1u << index;
	vub_conn_flush(conn);
}

/**
 * vub_conn_config_changed() - tell the driver to read config space again
 * @conn: the connection; if it is not ready for that the driver has not begun,
 *	  and reads config space when it does
 */
void vub_conn_config_changed(struct vub_conn *conn)
{
	conn->config_due = true;
	vub_conn_flush(conn);
}

/**
 * vub_conn_set_req_fd() - choose where the device's requests go to
 * @conn: the connection
 * @fd: the descriptor, taken over; -1 for none
 */
void vub_conn_set_req_fd(struct vub_conn *conn, int fd)
{
	if (conn->req_fd >= 0)
		close(conn->req_fd);
	conn->req_fd = fd;
	if (fd >= 0)
		fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}
