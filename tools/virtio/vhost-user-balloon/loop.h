/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The event loop: descriptors, timers, and work that is done in small steps.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_LOOP_H
#define VUB_LOOP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>

/**
 * struct vub_source - a descriptor that the loop watches
 * @fd: the descriptor, -1 while it is not watched
 * @ready: called when it is ready; may remove and free the source
 */
struct vub_source {
	int fd;
	void (*ready)(struct vub_source *source, uint32_t events);
};

/**
 * struct vub_timer - something to do later, once
 * @next: the list of those that are set
 * @due: when, see vub_now()
 * @set: whether it is in the list
 * @fire: what to do
 */
struct vub_timer {
	struct vub_timer *next;
	uint64_t due;
	bool set;
	void (*fire)(struct vub_timer *timer);
};

/**
 * struct vub_loop - the event loop
 * @epoll_fd: what it waits with
 * @timers: those that are set
 * @stop: leave after this turn
 * @work: called once a turn; does one step and says whether there is more
 * @work_arg: its argument
 */
struct vub_loop {
	int epoll_fd;
	struct vub_timer *timers;
	bool stop;
	bool (*work)(void *arg);
	void *work_arg;
};

int vub_loop_init(struct vub_loop *loop);
void vub_loop_close(struct vub_loop *loop);
int vub_loop_run(struct vub_loop *loop);
int vub_loop_add(struct vub_loop *loop, struct vub_source *source, int fd,
		 uint32_t events);
int vub_loop_change(struct vub_loop *loop, struct vub_source *source,
		    uint32_t events);
void vub_loop_remove(struct vub_loop *loop, struct vub_source *source);
void vub_timer_set(struct vub_loop *loop, struct vub_timer *timer,
		   uint64_t due);
void vub_timer_cancel(struct vub_loop *loop, struct vub_timer *timer);

#endif /* VUB_LOOP_H */
