// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The event loop. One thread: a guest's requests are short steps of work
 * between which the operator is heard, and nothing has to be locked.
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>
#include <limits.h>
#include <unistd.h>

#include "loop.h"
#include "util.h"

/**
 * vub_loop_init() - prepare a loop
 * @loop: the loop; @loop->work is the caller's to set
 *
 * Return: 0 or a negative error.
 */
int vub_loop_init(struct vub_loop *loop)
{
	loop->timers = NULL;
	loop->stop = false;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return loop->epoll_fd < 0 ? -errno : 0;
}

/**
 * vub_loop_close() - the end of a loop
 * @loop: the loop
 */
void vub_loop_close(struct vub_loop *loop)
{
	close(loop->epoll_fd);
}

/**
 * vub_loop_add() - watch a descriptor
 * @loop: the loop
 * @source: what is called when it is ready
 * @fd: the descriptor
 * @events: as for epoll_ctl()
 *
 * Return: 0 or a negative error: not every kind of file can be watched.
 */
int vub_loop_add(struct vub_loop *loop, struct vub_source *source, int fd,
		 uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	source->fd = -1;
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return -errno;
	source->fd = fd;
	return 0;
}

/**
 * vub_loop_change() - watch a descriptor for something else
 * @loop: the loop
 * @source: one that vub_loop_add() knows
 * @events: as for epoll_ctl()
 *
 * Return: 0 or a negative error.
 */
int vub_loop_change(struct vub_loop *loop, struct vub_source *source,
		    uint32_t events)
{
	struct epoll_event event = { .events = events, .data.ptr = source };

	return epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &event) ?
	       -errno : 0;
}

/**
 * vub_loop_remove() - stop watching a descriptor, before it is closed
 * @loop: the loop
 * @source: a source; one that is not watched is fine
 */
void vub_loop_remove(struct vub_loop *loop, struct vub_source *source)
{
	if (source->fd < 0)
		return;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, source->fd, NULL);
	source->fd = -1;
}

/**
 * vub_timer_set() - do something later
 * @loop: the loop
 * @timer: what; one that is set already gets the new time
 * @due: when
 */
void vub_timer_set(struct vub_loop *loop, struct vub_timer *timer, uint64_t due)
{
	timer->due = due;
	if (timer->set)
		return;
	timer->set = true;
	timer->next = loop->timers;
	loop->timers = timer;
}

/**
 * vub_timer_cancel() - do it not
 * @loop: the loop
 * @timer: the timer; one that is not set is fine
 */
void vub_timer_cancel(struct vub_loop *loop, struct vub_timer *timer)
{
	struct vub_timer **link;

	if (!timer->set)
		return;
	for (link = &loop->timers; *link != timer; link = &(*link)->next)
		;
	*link = timer->next;
	timer->set = false;
}

static struct vub_timer *vub_timer_first(struct vub_loop *loop)
{
	struct vub_timer *timer, *first = NULL;

	for (timer = loop->timers; timer; timer = timer->next) {
		if (!first || timer->due < first->due)
			first = timer;
	}
	return first;
}

/* Milliseconds until the first timer, rounded up so as not to wake in vain. */
static int vub_loop_timeout(struct vub_loop *loop)
{
	struct vub_timer *first = vub_timer_first(loop);
	uint64_t now = vub_now(), ms;

	if (!first)
		return -1;
	if (first->due <= now)
		return 0;
	ms = (first->due - now + VUB_NSEC_PER_MSEC - 1) / VUB_NSEC_PER_MSEC;
	return (int)vub_min(ms, INT_MAX);
}

static void vub_loop_fire(struct vub_loop *loop)
{
	struct vub_timer *first = vub_timer_first(loop);

	if (!first || first->due > vub_now())
		return;
	vub_timer_cancel(loop, first);
	first->fire(first);
}

/**
 * vub_loop_run() - serve until @loop->stop
 * @loop: the loop
 *
 * One event a turn: whatever a callback closes and frees, no event of it can
 * be waiting in an array.
 *
 * Return: 0, or the negative error that waiting ended with.
 */
int vub_loop_run(struct vub_loop *loop)
{
	struct epoll_event event;
	bool more = false;

	while (!loop->stop) {
		int nr = epoll_wait(loop->epoll_fd, &event, 1,
				    more ? 0 : vub_loop_timeout(loop));

		if (nr < 0 && errno != EINTR)
			return -errno;
		if (nr == 1) {
			struct vub_source *source = event.data.ptr;

			source->ready(source, event.events);
		}
		vub_loop_fire(loop);
		more = loop->work(loop->work_arg);
	}
	return 0;
}
