// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the messages of the VMM, and the queues that they set up. The input is
 * a row of steps, each with a head of four bytes: what it is about, its kind, the
 * length of what follows, and flags. Most steps are messages, which come through
 * a socket; chance alone would rarely find out what a queue needs, so others set
 * one up, offer a buffer or change the guest's memory.
 *
 * Copyright (C) the project's developers
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../conn.h"
#include "../device.h"
#include "../log.h"
#include "fuzz.h"

/* Guest memory, and what lies where in it. */
#define SIZE		65536
#define DESC		0
#define USED		4096
#define AVAIL		8192
#define PAYLOAD		16384

/* The last byte of a step's head. */
#define LONG		1	/* 256 bytes more follow */
#define RAW		2	/* the header's size and flags follow, as they are */
#define NO_ANSWER	4	/* the VMM wants no answer */
#define PIECES		8	/* the message comes in two pieces */

static struct vub_device dev;
static struct vub_conn conn;
static int peer;
static bool closed;
/* Buffers that were offered on this connection. */
static uint16_t avail_idx;
static struct vub_options options = {
	.features = ~UINT64_C(0),
	.reconnect = true,
	.in_band = true,
};

static int make_fd(uint8_t kind)
{
	int fd;

	if (kind % 4)
		return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, SIZE))
		abort();
	return fd;
}

static void conn_closed(struct vub_conn *unused)
{
	(void)unused;
	closed = true;
}

static void open_conn(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		       pair))
		abort();
	memset(&conn, 0, sizeof(conn));
	conn.closed = conn_closed;
	if (vub_conn_open(&conn, &dev, pair[0]))
		abort();
	conn.protocol_features = ~UINT64_C(0);
	peer = pair[1];
	closed = false;
	avail_idx = 0;
}

/* A memory table that is right makes the rest of the input matter more. */
static void share_memory(void)
{
	struct vub_region region = { .size = SIZE };

	region.fd = make_fd(0);
	if (vub_memory_add(&dev.memory, &region))
		abort();
	vub_memory_settle(&dev.memory);
}

/* Have the message received, as the loop would, and forget the answers. */
static void receive(void)
{
	char answers[4096];
	int left = 0;

	while (!closed && (conn.broken || conn.waiting ||
			   (!ioctl(conn.source.fd, FIONREAD, &left) && left))) {
		if (!conn.waiting || conn.broken)
			conn.source.ready(&conn.source, EPOLLIN);
		if (conn.have > sizeof(conn.message.header) + VUB_PAYLOAD_MAX)
			abort();
		vub_device_work(&dev);
	}
	while (recv(peer, answers, sizeof(answers), MSG_DONTWAIT) > 0)
		;
}

static void send_bytes(const char *data, size_t size, const int *fds,
		       unsigned int nr_fds)
{
	union {
		struct cmsghdr header;
		char buf[CMSG_SPACE(sizeof(int) * VUB_FDS_MAX)];
	} control = { .header = {
		.cmsg_len = CMSG_LEN(nr_fds * sizeof(int)),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS,
	} };
	struct iovec iov = { (char *)data, size };
	struct msghdr hdr = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nr_fds) {
		memcpy(CMSG_DATA(&control.header), fds, nr_fds * sizeof(int));
		hdr.msg_control = control.buf;
		hdr.msg_controllen = CMSG_SPACE(nr_fds * sizeof(int));
	}
	sendmsg(peer, &hdr, MSG_DONTWAIT | MSG_NOSIGNAL);
	receive();
}

static void send_message(struct vub_header header, const uint8_t *data,
			 size_t size, unsigned int nr_fds, uint8_t flags)
{
	char bytes[sizeof(header) + 512];
	int fds[VUB_FDS_MAX] = { 0 };
	size_t first = 0;
	unsigned int i;

	header.flags = VUB_PROTOCOL_VERSION;
	header.size = (uint32_t)size;
	if (!(flags & NO_ANSWER))
		header.flags |= VUB_FLAG_NEED_REPLY;
	if (flags & RAW)
		memcpy(&header.flags, data,
		       vub_min(size, sizeof(header) -
			       offsetof(struct vub_header, flags)));
	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), data, size);
	for (i = 0; i < nr_fds; i++)
		fds[i] = make_fd(size ? data[i % size] : 0);

	size += sizeof(header);
	if (flags & PIECES)
		first = flags % size;
	if (first)
		send_bytes(bytes, first, fds, nr_fds);
	send_bytes(bytes + first, size - first, fds, first ? 0 : nr_fds);
	for (i = 0; i < nr_fds; i++)
		close(fds[i]);
}

static void set_up_queue(uint8_t index, uint8_t nr)
{
	struct vub_vring_state state = { index % VUB_MAX_QUEUES, 1u << nr % 8 };
	struct vub_vring_addr addr = { state.index, 0, DESC, USED, AVAIL, 0 };
	struct vub_header header = { .request = VUB_SET_VRING_NUM };

	send_message(header, (const uint8_t *)&state, sizeof(state), 0, 0);
	header.request = VUB_SET_VRING_ADDR;
	send_message(header, (const uint8_t *)&addr, sizeof(addr), 0, 0);
	dev.queue[state.index].enabled = true;
}

static void serve_all(void)
{
	unsigned int i;

	for (i = 0; i < VUB_MAX_QUEUES; i++) {
		dev.queue[i].pending = true;
		vub_device_work(&dev);
	}
	while (vub_device_work(&dev))
		;
}

/* Write into guest memory, if there is any. */
static void poke(size_t at, const void *data, size_t size)
{
	if (dev.memory.nr_regions && dev.memory.region[0].size == SIZE)
		memcpy(dev.memory.region[0].base + at, data, size);
}

/* A buffer of one descriptor, the next one of the avail ring. */
static void offer(uint8_t flags, const uint8_t *data, size_t size)
{
	struct vring_desc desc = {
		.addr = (__force __virtio64)(uint64_t)PAYLOAD,
		.len = (__force __virtio32)(uint32_t)size,
		.flags = (__force __virtio16)(uint16_t)(flags & 7),
	};
	unsigned int i;

	/* A report is whole pages. */
	if (flags & 8)
		desc.len = (__force __virtio32)(uint32_t)(size % 8 * 4096);
	poke(PAYLOAD, data, size);
	poke(DESC, &desc, sizeof(desc));
	for (i = 0; i < VUB_MAX_QUEUES; i++)
		dev.queue[i].ring.last_avail = avail_idx;
	avail_idx++;
	poke(AVAIL + 2, &avail_idx, sizeof(avail_idx));
	serve_all();
}

/* One step; returns how much of the input it took. */
static size_t step(const uint8_t *data, size_t size)
{
	struct vub_header header = {
		.request = data[0] % (VUB_NR_REQUESTS + 2),
	};
	size_t len = vub_min(data[2] + (data[3] & LONG ? 256 : 0), size - 4);
	uint8_t kind = data[1];

	if (kind >= 0xf0) {
		set_up_queue(data[0], data[2]);
	} else if (kind >= 0xe0) {
		poke(data[0] % 3 * 4096, data + 4, len);
		serve_all();
	} else if (kind >= 0xc0) {
		offer(data[0], data + 4, len);
	} else {
		send_message(header, data + 4, len, kind % 3, data[3]);
	}
	return 4 + len;
}

static void begin(void)
{
	if (dev.options)
		return;
	vub_log_set_level(VUB_ERROR);
	if (vub_device_init(&dev, &options))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t taken;

	begin();
	closed = true;
	for (; size > 4; data += taken, size -= taken) {
		if (closed) {
			open_conn();
			share_memory();
			dev.acked = size % 2 ? dev.offered : 0;
		}
		taken = step(data, size);
		if (closed)
			close(peer);
	}
	if (!closed) {
		vub_conn_close(&conn);
		close(peer);
	}
	return 0;
}
