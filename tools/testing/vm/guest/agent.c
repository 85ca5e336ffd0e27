// SPDX-License-Identifier: GPL-2.0
/*
 * Process 1 of a test guest: prepares the system, then runs what the host asks.
 *
 * Copyright the project's developers
 *
 * Tests drive the guest while it has no memory left, so nothing here may need
 * any: all buffers are static and locked, commands are started with
 * CLONE_VM | CLONE_VFORK, which copies no page table, and the out-of-memory
 * killer is told to look elsewhere.
 *
 * The channel is the second serial port, a device that needs neither a module
 * nor virtio. Frames are a line, followed by as many bytes as it announces:
 *
 *   host to guest   R <job> <bytes>\n<command>   run by /bin/sh -c
 *                   K <job> <signal>\n           signal the job's process group
 *   guest to host   H <bytes>\n<text>            ready; text says which module
 *                                                did not load, if one did not
 *                   O <job> <bytes>\n<output>    standard output and error
 *                   X <job> <status>\n           the job ended, as waitpid says
 *
 * A job ends when its first process does; what it left in the background lives
 * on, unheard.
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define CHANNEL		"/dev/ttyS1"
#define MODULES		"/modules.list"
#define MAX_JOBS	32
#define MAX_COMMAND	65536
#define MAX_LINE	64
#define MAX_OUTPUT	4096
#define STACK_SIZE	65536

/**
 * struct job - one command of the host
 * @id: the host's name for it
 * @pid: its first process and process group; 0: this entry is free
 * @out: where its output is read, -1 after the end of it
 */
struct job {
	unsigned int id;
	pid_t pid;
	int out;
};

static struct job jobs[MAX_JOBS];
static char command[MAX_COMMAND + 1];
static char output[MAX_OUTPUT];
static char child_stack[STACK_SIZE];
static char trouble[256];
static int channel = -1;

static void say(const char *what, const char *detail)
{
	dprintf(STDERR_FILENO, "agent: %s: %s\n", what, detail);
}

static void put(const void *buf, size_t len)
{
	const char *p = buf;

	while (len) {
		ssize_t n = write(channel, p, len);

		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return;
		if (n > 0) {
			p += n;
			len -= n;
		}
	}
}

/* The host's frames come whole or not at all: to wait for the rest is safe. */
static bool get(void *buf, size_t len)
{
	char *p = buf;

	while (len) {
		ssize_t n = read(channel, p, len);

		if (n == 0 || (n < 0 && errno != EINTR))
			return false;
		if (n > 0) {
			p += n;
			len -= n;
		}
	}
	return true;
}

static bool get_line(char *line)
{
	size_t len = 0;

	while (len < MAX_LINE - 1) {
		if (!get(line + len, 1))
			return false;
		if (line[len] == '\n')
			break;
		len++;
	}
	line[len] = 0;
	return true;
}

static void put_output(const struct job *job, size_t len)
{
	char line[MAX_LINE];

	put(line, snprintf(line, sizeof(line), "O %u %zu\n", job->id, len));
	put(output, len);
}

static void put_exit(unsigned int id, int status)
{
	char line[MAX_LINE];

	put(line, snprintf(line, sizeof(line), "X %u %d\n", id, status));
}

/*
 * Runs in the memory of the agent, which waits for the exec: system calls only,
 * nothing written to what the agent reads later.
 */
static int job_child(void *arg)
{
	static const char *const argv[] = { "sh", "-c", command, NULL };
	static const char *const envp[] = {
		"PATH=/bin:/selftests", "HOME=/", "TERM=dumb", NULL
	};
	const int *fds = arg;
	sigset_t none;
	int fd;

	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0 && write(fd, "0", 1) != 1)
		_exit(127);
	dup2(fds[1], STDOUT_FILENO);
	dup2(fds[1], STDERR_FILENO);
	execve("/bin/sh", (char **)argv, (char **)envp);
	_exit(127);
}

static void job_start(unsigned int id)
{
	struct job *job = NULL;
	int fds[2];
	int i;

	for (i = 0; i < MAX_JOBS && !job; i++)
		if (!jobs[i].pid)
			job = &jobs[i];
	if (!job || pipe2(fds, O_CLOEXEC | O_NONBLOCK)) {
		say("cannot start a job", job ? strerror(errno) : "too many");
		put_exit(id, 127 << 8);
		return;
	}
	/* Only the agent's end must not block. */
	fcntl(fds[1], F_SETFL, 0);
	job->id = id;
	job->out = fds[0];
	job->pid = clone(job_child, child_stack + STACK_SIZE,
			 CLONE_VM | CLONE_VFORK | SIGCHLD, fds);
	close(fds[1]);
	if (job->pid < 0) {
		say("clone", strerror(errno));
		close(fds[0]);
		job->pid = 0;
		put_exit(id, 127 << 8);
	}
}

/* Passes on what there is to read; false when nothing more can come. */
static bool job_output(struct job *job)
{
	ssize_t len = read(job->out, output, sizeof(output));

	if (len > 0) {
		put_output(job, len);
		return true;
	}
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	close(job->out);
	job->out = -1;
	return false;
}

/* Process 1 inherits every orphan, so not every child is a job. */
static void reap(void)
{
	int status, i;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (i = 0; i < MAX_JOBS; i++) {
			if (jobs[i].pid != pid)
				continue;
			while (jobs[i].out >= 0 && job_output(&jobs[i]))
				;
			if (jobs[i].out >= 0)
				close(jobs[i].out);
			jobs[i].pid = 0;
			put_exit(jobs[i].id, status);
		}
	}
}

static bool handle_frame(void)
{
	char line[MAX_LINE];
	unsigned int id, arg;
	int i;

	if (!get_line(line))
		return false;
	if (sscanf(line, "R %u %u", &id, &arg) == 2 && arg <= MAX_COMMAND) {
		if (!get(command, arg))
			return false;
		command[arg] = 0;
		job_start(id);
	} else if (sscanf(line, "K %u %u", &id, &arg) == 2) {
		for (i = 0; i < MAX_JOBS; i++)
			if (jobs[i].pid && jobs[i].id == id)
				kill(-jobs[i].pid, arg);
	} else {
		say("frame not understood", line);
	}
	return true;
}

static void serve(int child_events)
{
	struct pollfd fds[MAX_JOBS + 2];
	char drain[16];
	int i;

	for (;;) {
		fds[0] = (struct pollfd){ .fd = channel, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = child_events, .events = POLLIN };
		for (i = 0; i < MAX_JOBS; i++) {
			fds[i + 2].fd = jobs[i].pid ? jobs[i].out : -1;
			fds[i + 2].events = POLLIN;
			fds[i + 2].revents = 0;
		}
		if (poll(fds, MAX_JOBS + 2, -1) < 0)
			continue;
		for (i = 0; i < MAX_JOBS; i++)
			if (fds[i + 2].revents)
				job_output(&jobs[i]);
		if (fds[1].revents && read(child_events, drain, sizeof(drain)))
			reap();
		if (fds[0].revents && !handle_frame())
			return;
	}
}

static void mount_all(void)
{
	static const struct {
		const char *type, *where, *data;
	} mounts[] = {
		{ "proc", "/proc" },
		{ "sysfs", "/sys" },
		{ "devtmpfs", "/dev" },
		{ "debugfs", "/sys/kernel/debug" },
		{ "tracefs", "/sys/kernel/tracing" },
		{ "cgroup2", "/sys/fs/cgroup" },
		/* Files there are the easiest way to use memory. */
		{ "tmpfs", "/tmp", "size=100%" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(mounts); i++) {
		mkdir(mounts[i].where, 0755);
		if (mount(mounts[i].type, mounts[i].where, mounts[i].type, 0,
			  mounts[i].data))
			say(mounts[i].where, strerror(errno));
	}
}

/* One module a line: its file, then its parameters. */
static void load_modules(void)
{
	FILE *list = fopen(MODULES, "re");
	char line[512];

	while (list && fgets(line, sizeof(line), list)) {
		char *file = strtok(line, "\n ");
		char *params = strtok(NULL, "\n");
		int fd = open(file, O_RDONLY | O_CLOEXEC);

		if (fd < 0 || syscall(SYS_finit_module, fd, params ?: "", 0))
			snprintf(trouble, sizeof(trouble), "%s: %s", file,
				 strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	if (list)
		fclose(list);
}

static bool open_channel(void)
{
	struct termios tio;

	channel = open(CHANNEL, O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (channel < 0 || tcgetattr(channel, &tio))
		return false;
	cfmakeraw(&tio);
	cfsetspeed(&tio, B115200);
	tio.c_cflag |= CLOCAL;
	return !tcsetattr(channel, TCSANOW, &tio);
}

static int child_pipe[2];

static void on_child(int sig)
{
	int saved = errno;

	(void)sig;
	/* A full pipe is as good as one more byte in it. */
	if (write(child_pipe[1], "", 1) < 0)
		errno = saved;
}

int main(void)
{
	struct sigaction action = {
		.sa_handler = on_child,
		.sa_flags = SA_NOCLDSTOP | SA_RESTART,
	};
	char line[MAX_LINE];
	int fd;

	mount_all();
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, "-1000", 5) != 5)
		say("oom_score_adj", strerror(errno));
	close(fd);
	load_modules();
	if (!open_channel() || pipe2(child_pipe, O_CLOEXEC | O_NONBLOCK)) {
		say(CHANNEL, strerror(errno));
		return 1;
	}
	sigaction(SIGCHLD, &action, NULL);
	if (mlockall(MCL_CURRENT | MCL_FUTURE))
		say("mlockall", strerror(errno));
	put(line, snprintf(line, sizeof(line), "H %zu\n", strlen(trouble)));
	put(trouble, strlen(trouble));
	serve(child_pipe[0]);
	say(CHANNEL, "lost");
	return 1;
}
