// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What can be done in the sandbox, and what ends a process that tries. Each try
 * is a process of its own.
 *
 * Copyright (C) the project's developers
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../sandbox.h"
#include "tap.h"

static char *page;
static int file_fd;

/* The signal that a process ended with which did this, or 0. */
static int signal_of(void (*act)(void))
{
	pid_t pid = fork();
	int status;

	if (!pid) {
		if (vub_sandbox_enter())
			_exit(EXIT_FAILURE);
		act();
		_exit(EXIT_SUCCESS);
	}
	if (waitpid(pid, &status, 0) != pid || status == EXIT_FAILURE << 8)
		return -1;
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void map_memory(void)
{
	mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file_fd, 0);
}

static void punch_hole(void)
{
	fallocate(file_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4096);
}

static void block_not(void)
{
	fcntl(file_fd, F_SETFL, fcntl(file_fd, F_GETFL) | O_NONBLOCK);
}

static void do_nothing(void)
{
}

static void allowed(void)
{
	tap_check(!signal_of(do_nothing));
	tap_check(!signal_of(map_memory));
	tap_check(!signal_of(punch_hole));
	tap_check(!signal_of(block_not));
	tap_check(signal_of(abort) == SIGABRT);
}

static void open_file(void)
{
	open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static void remove_file(void)
{
	unlink("/nowhere/nothing");
}

static void remove_file_at(void)
{
	unlinkat(file_fd, "nothing", 0);
}

static void extend_file(void)
{
	fallocate(file_fd, 0, 0, 8192);
}

static void no_files(void)
{
	tap_check(signal_of(open_file) == SIGSYS);
	tap_check(signal_of(remove_file) == SIGSYS);
	tap_check(signal_of(remove_file_at) == SIGSYS);
	tap_check(signal_of(extend_file) == SIGSYS);
}

static void map_code(void)
{
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file_fd, 0);
}

static void make_code(void)
{
	mprotect(page, 4096, PROT_READ | PROT_EXEC);
}

static void run_program(void)
{
	execl("/nowhere/nothing", "nothing", NULL);
}

static void no_code(void)
{
	tap_check(signal_of(map_code) == SIGSYS);
	tap_check(signal_of(make_code) == SIGSYS);
	tap_check(signal_of(run_program) == SIGSYS);
}

/* Signal 0 would only ask whether the process is there. */
static void signal_parent(void)
{
	syscall(SYS_tgkill, getppid(), getppid(), 0);
}

static void signal_other(void)
{
	syscall(SYS_tgkill, 1, 1, SIGABRT);
}

static void kill_self(void)
{
	kill(getpid(), 0);
}

static void signal_through_file(void)
{
	fcntl(file_fd, F_SETOWN, 1);
}

static void make_socket(void)
{
	socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
}

static void no_others(void)
{
	tap_check(signal_of(signal_parent) == SIGSYS);
	tap_check(signal_of(signal_other) == SIGSYS);
	tap_check(signal_of(kill_self) == SIGSYS);
	tap_check(signal_of(signal_through_file) == SIGSYS);
	tap_check(signal_of(make_socket) == SIGSYS);
}

int main(void)
{
	static const struct tap_test tests[] = {
		{ "what serving takes is allowed", allowed },
		{ "no file is opened, removed or extended", no_files },
		{ "no memory becomes code, no program is run", no_code },
		{ "no other process is reached", no_others },
	};

	file_fd = memfd_create("sandbox", MFD_CLOEXEC);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (file_fd < 0 || ftruncate(file_fd, 4096) || page == MAP_FAILED)
		abort();
	return tap_run(tests, VUB_ARRAY_SIZE(tests));
}
