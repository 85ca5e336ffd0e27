// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the daemon gives up after start: everything but the system calls that
 * serving takes. Files are never opened from here on, since they all come from
 * the VMM as descriptors; a guest that takes the daemon over has won little.
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>
#include <seccomp.h>
#include <sys/prctl.h>

#include "log.h"
#include "sandbox.h"
#include "util.h"

static const int vub_allowed_calls[] = {
	/* the loop */
	SCMP_SYS(epoll_wait), SCMP_SYS(epoll_pwait), SCMP_SYS(epoll_ctl),
	SCMP_SYS(clock_gettime), SCMP_SYS(gettimeofday), SCMP_SYS(time),
	/* connections */
	SCMP_SYS(accept4), SCMP_SYS(recvmsg), SCMP_SYS(recvfrom),
	SCMP_SYS(sendmsg), SCMP_SYS(sendto), SCMP_SYS(shutdown),
	SCMP_SYS(read), SCMP_SYS(preadv2), SCMP_SYS(write), SCMP_SYS(writev),
	SCMP_SYS(fcntl), SCMP_SYS(close),
	/* guest memory */
	SCMP_SYS(mmap), SCMP_SYS(munmap), SCMP_SYS(madvise),
	SCMP_SYS(fallocate), SCMP_SYS(fstat), SCMP_SYS(newfstatat),
	SCMP_SYS(fstatfs),
	/* our own memory */
	SCMP_SYS(brk), SCMP_SYS(mremap),
	/* signals, and the end */
	SCMP_SYS(restart_syscall),
	SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(unlink), SCMP_SYS(unlinkat),
	SCMP_SYS(exit), SCMP_SYS(exit_group),
	/* an abort says what was wrong */
	SCMP_SYS(getpid), SCMP_SYS(gettid), SCMP_SYS(tgkill),
};

static int vub_sandbox_load(scmp_filter_ctx filter)
{
	unsigned int i;
	int err;

	for (i = 0; i < VUB_ARRAY_SIZE(vub_allowed_calls); i++) {
		err = seccomp_rule_add(filter, SCMP_ACT_ALLOW,
				       vub_allowed_calls[i], 0);
		if (err)
			return err;
	}
	return seccomp_load(filter);
}

/**
 * vub_sandbox_enter() - give it up
 *
 * Return: 0 or a negative error.
 */
int vub_sandbox_enter(void)
{
	scmp_filter_ctx filter;
	int err;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	filter = seccomp_init(SCMP_ACT_KILL_PROCESS);
	if (!filter)
		return -ENOMEM;
	err = vub_sandbox_load(filter);
	seccomp_release(filter);
	return err;
}
