// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A virtqueue with its descriptors: kicks, calls, and what is given back when.
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "conn.h"
#include "device.h"
#include "util.h"

static const char *const vub_breach_texts[VUB_NR_BREACHES] = {
	[VUB_BREACH_AVAIL] = "more buffers than entries",
	[VUB_BREACH_HEAD] = "a buffer outside the descriptor table",
	[VUB_BREACH_NEXT] = "a chain that leaves the descriptor table",
	[VUB_BREACH_LONG] = "an endless chain",
	[VUB_BREACH_INDIRECT] = "a wrong indirect table",
	[VUB_BREACH_ORDER] = "a readable descriptor after a writable one",
	[VUB_BREACH_MEMORY] = "an address outside guest memory",
};

/*
 * A descriptor that came from the VMM must never block. It shares the flag with
 * us; one that takes it off again only stops the daemon that serves it.
 */
static int vub_fd_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) ? -errno : 0;
}

/* Add one to an eventfd; the same eight bytes into what is a pipe. */
static void vub_fd_signal(int fd)
{
	const uint64_t one = 1;
	ssize_t done = write(fd, &one, sizeof(one));

	/* Full means that the peer has enough to wake up for; gone, that it is. */
	(void)done;
}

static void vub_fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Take what is there, without waiting whatever the peer does to the flags. */
static ssize_t vub_fd_drain(int fd)
{
	uint64_t count;
	struct iovec iov = { &count, sizeof(count) };
	ssize_t done = preadv2(fd, &iov, 1, -1, RWF_NOWAIT);

	/* Older kernels' pipes know only the file's own flag. */
	if (done < 0 && errno == EOPNOTSUPP)
		done = read(fd, &count, sizeof(count));
	return done;
}

static void vub_queue_kicked(struct vub_source *source, uint32_t events)
{
	struct vub_queue *queue =
		vub_container_of(source, struct vub_queue, kick);
	ssize_t done = vub_fd_drain(source->fd);

	/* What has hung up is ready for ever; no more kicks come from there. */
	if (!done || (done < 0 && (events & (EPOLLHUP | EPOLLERR) ||
				   (errno != EAGAIN && errno != EINTR)))) {
		vub_queue_set_kick(queue, -1);
		return;
	}
	queue->nr_kicks += done > 0;
	queue->pending = true;
}

static void vub_queue_late_due(struct vub_timer *timer)
{
	vub_queue_late(vub_container_of(timer, struct vub_queue, late_timer),
		       false);
}

/**
 * vub_queue_init() - a queue that the VMM has not set up yet
 * @queue: the queue
 * @dev: whose it is
 * @index: its number
 */
void vub_queue_init(struct vub_queue *queue, struct vub_device *dev,
		    unsigned int index)
{
	queue->dev = dev;
	queue->index = index;
	queue->role = VUB_IDLE;
	queue->kick.fd = -1;
	queue->kick.ready = vub_queue_kicked;
	queue->call_fd = -1;
	queue->err_fd = -1;
	queue->late_timer.fire = vub_queue_late_due;
}

/**
 * vub_queue_ready() - whether a queue can be served
 * @queue: the queue
 *
 * Return: true if it can.
 */
bool vub_queue_ready(const struct vub_queue *queue)
{
	return queue->enabled && queue->ring.desc && !queue->ring.breach;
}

static void vub_queue_broke(struct vub_queue *queue)
{
	enum vub_breach breach = queue->ring.breach;

	queue->dev->nr_breaches[breach]++;
	queue->pending = false;
	vub_peer_warn("queue %u (%s) is broken, its driver offered %s: it is not served until the guest sets it up again",
		      queue->index, vub_role_name(queue->role),
		      vub_breach_texts[breach]);
	if (queue->err_fd >= 0)
		vub_fd_signal(queue->err_fd);
}

/**
 * vub_queue_take() - take the next buffer
 * @queue: the queue, ready; the buffer is in its device's chain then
 *
 * Return: false if there is none.
 */
bool vub_queue_take(struct vub_queue *queue)
{
	struct vub_device *dev = queue->dev;

	if (!vub_ring_take(&queue->ring, &dev->memory, &dev->chain)) {
		if (queue->ring.breach)
			vub_queue_broke(queue);
		return false;
	}
	queue->nr_buffers++;
	return true;
}

/**
 * vub_queue_call_now() - call the driver
 * @queue: the queue
 */
void vub_queue_call_now(struct vub_queue *queue)
{
	queue->nr_calls++;
	if (queue->call_fd >= 0)
		vub_fd_signal(queue->call_fd);
	else if (queue->dev->conn)
		vub_conn_call(queue->dev->conn, queue->index);
}

static void vub_queue_call(struct vub_queue *queue)
{
	if (vub_ring_wants_call(&queue->ring) &&
	    !queue->dev->quirks[queue->role].silent)
		vub_queue_call_now(queue);
}

static void vub_queue_keep(struct vub_queue *queue, uint16_t head)
{
	const struct vub_queue_quirks *quirks =
		&queue->dev->quirks[queue->role];
	uint64_t start = vub_now(), due = UINT64_MAX;

	if (quirks->serial && queue->nr_late)
		start = queue->late[queue->nr_late - 1].due;
	if (!quirks->hold)
		due = start + quirks->delay_ms * VUB_NSEC_PER_MSEC;
	/* There is room: a ring has no more buffers out than entries. */
	queue->late[queue->nr_late++] = (struct vub_late){ due, head };
}

static void vub_queue_give_one(struct vub_queue *queue, uint16_t head)
{
	struct vub_queue_quirks *quirks = &queue->dev->quirks[queue->role];

	if (quirks->nr_drop) {
		quirks->nr_drop--;
		return;
	}
	if (quirks->hold || quirks->delay_ms) {
		vub_queue_keep(queue, head);
		return;
	}
	vub_ring_give(&queue->ring, head, 0);
	if (quirks->duplicate)
		vub_ring_lie(&queue->ring, head);
}

/* The first buffer that is late tells when to look again. */
static void vub_queue_arm(struct vub_queue *queue)
{
	struct vub_loop *loop = &queue->dev->loop;

	if (queue->nr_late && queue->late[0].due != UINT64_MAX)
		vub_timer_set(loop, &queue->late_timer, queue->late[0].due);
	else
		vub_timer_cancel(loop, &queue->late_timer);
}

/**
 * vub_queue_give() - give buffers back, and call the driver if it cares
 * @queue: the queue, which has a role
 * @heads: the driver's names for them
 * @nr: how many there are
 */
void vub_queue_give(struct vub_queue *queue, const uint16_t *heads,
		    unsigned int nr)
{
	bool reverse = queue->dev->quirks[queue->role].reverse;
	unsigned int i;

	for (i = 0; i < nr; i++)
		vub_queue_give_one(queue, heads[reverse ? nr - 1 - i : i]);
	vub_queue_arm(queue);
	vub_ring_publish(&queue->ring);
	vub_queue_call(queue);
}

/**
 * vub_queue_late() - give back what was kept
 * @queue: the queue
 * @all: also what is not due
 */
void vub_queue_late(struct vub_queue *queue, bool all)
{
	uint64_t now = vub_now();
	unsigned int nr = 0;

	while (nr < queue->nr_late && (all || queue->late[nr].due <= now))
		nr++;
	if (nr && queue->ring.desc) {
		unsigned int i;

		for (i = 0; i < nr; i++)
			vub_ring_give(&queue->ring, queue->late[i].head, 0);
		vub_ring_publish(&queue->ring);
		vub_queue_call(queue);
	}
	queue->nr_late -= nr;
	memmove(queue->late, queue->late + nr,
		queue->nr_late * sizeof(*queue->late));
	vub_queue_arm(queue);
}

/**
 * vub_queue_settle() - wait for kicks, unless there is something to do already
 * @queue: the queue
 */
void vub_queue_settle(struct vub_queue *queue)
{
	queue->pending = vub_queue_ready(queue) &&
			 (vub_ring_listen(&queue->ring) ||
			  queue->dev->quirks[queue->role].poll);
}

/**
 * vub_queue_set_kick() - choose where kicks come from
 * @queue: the queue
 * @fd: the descriptor, taken over on success; -1 for none
 *
 * Return: 0 or a negative error.
 */
int vub_queue_set_kick(struct vub_queue *queue, int fd)
{
	int old = queue->kick.fd, err;

	vub_loop_remove(&queue->dev->loop, &queue->kick);
	vub_fd_close(&old);
	if (fd < 0)
		return 0;
	err = vub_fd_nonblock(fd);
	if (!err)
		err = vub_loop_add(&queue->dev->loop, &queue->kick, fd, EPOLLIN);
	/* Buffers may have come before the descriptor. */
	queue->pending = true;
	return err;
}

/**
 * vub_queue_set_call() - choose where calls go to
 * @queue: the queue
 * @fd: the descriptor, taken over; -1 for none
 */
void vub_queue_set_call(struct vub_queue *queue, int fd)
{
	vub_fd_close(&queue->call_fd);
	if (fd >= 0)
		vub_fd_nonblock(fd);
	queue->call_fd = fd;
}

/**
 * vub_queue_set_err() - choose where a broken ring is reported
 * @queue: the queue
 * @fd: the descriptor, taken over; -1 for none
 */
void vub_queue_set_err(struct vub_queue *queue, int fd)
{
	vub_fd_close(&queue->err_fd);
	if (fd >= 0)
		vub_fd_nonblock(fd);
	queue->err_fd = fd;
}

/**
 * vub_queue_map() - find the ring, as soon as that can be done
 * @queue: the queue
 *
 * Size, addresses and memory come in any order, and again.
 *
 * Return: 0 or a negative error.
 */
int vub_queue_map(struct vub_queue *queue)
{
	struct vub_ring *ring = &queue->ring;
	struct vub_device *dev = queue->dev;

	vub_ring_unmap(ring);
	if (!ring->nr || !ring->has_addr || !dev->memory.nr_regions)
		return 0;
	ring->event_idx = vub_acked(dev, VIRTIO_RING_F_EVENT_IDX);
	ring->indirect = vub_acked(dev, VIRTIO_RING_F_INDIRECT_DESC);
	queue->pending = true;
	return vub_ring_map(ring, &dev->memory);
}

/* What the device still has of a ring that is no more. */
static void vub_queue_forget(struct vub_queue *queue)
{
	queue->nr_late = 0;
	vub_timer_cancel(&queue->dev->loop, &queue->late_timer);
	if (queue->role == VUB_STATS)
		vub_stats_forget(queue->dev);
	queue->ring.nr_taken = 0;
	queue->ring.breach = VUB_NO_BREACH;
}

/**
 * vub_queue_stop() - stop serving a queue, so that it can be continued
 * @queue: the queue
 *
 * Return: where to continue: what the device has kept is offered again.
 */
uint16_t vub_queue_stop(struct vub_queue *queue)
{
	uint16_t base = queue->ring.last_avail - queue->ring.nr_taken;

	vub_queue_forget(queue);
	vub_queue_set_kick(queue, -1);
	vub_ring_unmap(&queue->ring);
	queue->ring.has_addr = false;
	queue->ring.last_avail = base;
	queue->pending = false;
	return base;
}

/**
 * vub_queue_reset() - a queue as if the VMM had never set it up
 * @queue: the queue
 */
void vub_queue_reset(struct vub_queue *queue)
{
	vub_queue_stop(queue);
	vub_queue_set_call(queue, -1);
	vub_queue_set_err(queue, -1);
	queue->enabled = false;
	queue->ring = (struct vub_ring){ 0 };
}
