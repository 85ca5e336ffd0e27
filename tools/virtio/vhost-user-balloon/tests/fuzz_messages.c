// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzzes the messages of the VMM, and the queues that they set up. The input is
 * a row of steps, each with a head of four bytes: what it is about, its kind, and
 * the length of what follows. Most steps are messages as they come; chance alone
 * would rarely find out what a queue needs, so others set one up, offer a buffer
 * or change the guest's memory.
 *
 * Copyright (C) the project's developers
 */
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
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

static struct vub_device dev;
static struct vub_conn conn;
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

static int open_conn(void)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0,
		       pair))
		abort();
	memset(&conn, 0, sizeof(conn));
	if (vub_conn_open(&conn, &dev, pair[0]))
		abort();
	return pair[1];
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

static void send_message(const struct vub_header *header, const uint8_t *data,
			 size_t size, unsigned int nr_fds)
{
	struct vub_message *msg = &conn.message;
	unsigned int i;

	memset(msg, 0, sizeof(*msg));
	msg->header.request = header->request % (VUB_NR_REQUESTS + 2);
	msg->header.size = (uint32_t)size;
	memcpy(msg->payload, data, size);
	msg->nr_fds = nr_fds;
	for (i = 0; i < nr_fds; i++)
		msg->fd[i] = make_fd(data[i % (size ?: 1)]);
	vub_message_handle(&conn, msg);
	for (i = 0; i < nr_fds; i++) {
		if (msg->fd[i] >= 0)
			close(msg->fd[i]);
	}
	msg->nr_fds = 0;
	vub_device_work(&dev);
}

static void set_up_queue(uint8_t index, uint8_t nr)
{
	struct vub_vring_state state = { index % VUB_MAX_QUEUES, 1u << nr % 8 };
	struct vub_vring_addr addr = { state.index, 0, DESC, USED, AVAIL, 0 };
	struct vub_header header = { .request = VUB_SET_VRING_NUM };

	send_message(&header, (const uint8_t *)&state, sizeof(state), 0);
	header.request = VUB_SET_VRING_ADDR;
	send_message(&header, (const uint8_t *)&addr, sizeof(addr), 0);
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
	static uint16_t idx;
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
		dev.queue[i].ring.last_avail = idx;
	idx++;
	poke(AVAIL + 2, &idx, sizeof(idx));
	serve_all();
}

/* One step; returns how much of the input it took. */
static size_t step(const uint8_t *data, size_t size)
{
	struct vub_header header = { .request = data[0] };
	size_t len = data[2] + 256 * (data[3] % 2);
	uint8_t kind = data[1];

	len = vub_min(vub_min(len, VUB_PAYLOAD_MAX), size - 4);
	if (kind >= 0xf0) {
		set_up_queue(data[0], data[2]);
	} else if (kind >= 0xe0) {
		poke(data[0] % 3 * 4096, data + 4, len);
		serve_all();
	} else if (kind >= 0xc0) {
		offer(data[0], data + 4, len);
	} else {
		send_message(&header, data + 4, len, kind % 3);
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
	int peer;

	begin();
	peer = open_conn();
	share_memory();
	dev.acked = size % 2 ? dev.offered : 0;
	for (; size > 4; data += taken, size -= taken)
		taken = step(data, size);
	vub_conn_close(&conn);
	close(peer);
	return 0;
}
