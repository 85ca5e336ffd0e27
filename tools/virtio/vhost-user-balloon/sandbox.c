// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What the daemon gives up after start: everything but the system calls that
 * serving takes, with such arguments as it takes. Files are neither opened nor
 * removed from here on, since they all come from the VMM as descriptors; a guest
 * that takes the daemon over has won little.
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>
#include <fcntl.h>
#include <seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

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
	SCMP_SYS(close),
	/* guest memory */
	SCMP_SYS(munmap), SCMP_SYS(madvise), SCMP_SYS(fstat), SCMP_SYS(fstatfs),
	/* our own memory */
	SCMP_SYS(brk), SCMP_SYS(mremap),
	/* signals, and the end */
	SCMP_SYS(restart_syscall),
	SCMP_SYS(rt_sigaction), SCMP_SYS(rt_sigprocmask),
	SCMP_SYS(rt_sigreturn), SCMP_SYS(exit), SCMP_SYS(exit_group),
	SCMP_SYS(getpid), SCMP_SYS(gettid),
};

/* An argument of 32 bits has a value, or of some bits none is set. */
#define VUB_ARG_IS(nr, value) \
	SCMP_CMP(nr, SCMP_CMP_MASKED_EQ, UINT32_MAX, value)
#define VUB_ARG_LACKS(nr, bits)	SCMP_CMP(nr, SCMP_CMP_MASKED_EQ, bits, 0)

static int vub_sandbox_restrict(scmp_filter_ctx filter)
{
	const struct {
		int call;
		unsigned int nr_args;
		struct scmp_arg_cmp arg[2];
	} calls[] = {
		/* a descriptor with an owner could send it signals */
		{ SCMP_SYS(fcntl), 1, { VUB_ARG_IS(1, F_GETFL) } },
		{ SCMP_SYS(fcntl), 1, { VUB_ARG_IS(1, F_SETFL) } },
		{ SCMP_SYS(mmap), 1, { VUB_ARG_LACKS(2, PROT_EXEC) } },
		{ SCMP_SYS(fallocate), 1,
		  { VUB_ARG_IS(1, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE) } },
		/* which is fstat() to some C libraries */
		{ SCMP_SYS(newfstatat), 1, { VUB_ARG_IS(3, AT_EMPTY_PATH) } },
		/* an abort says what was wrong */
		{ SCMP_SYS(tgkill), 2, { VUB_ARG_IS(0, (scmp_datum_t)getpid()),
					 VUB_ARG_IS(2, SIGABRT) } },
	};
	unsigned int i;
	int err = 0;

	for (i = 0; i < VUB_ARRAY_SIZE(calls) && !err; i++)
		err = seccomp_rule_add_array(filter, SCMP_ACT_ALLOW,
					     calls[i].call, calls[i].nr_args,
					     calls[i].arg);
	return err;
}

static int vub_sandbox_load(scmp_filter_ctx filter)
{
	unsigned int i;
	int err = vub_sandbox_restrict(filter);

	if (err)
		return err;
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
