// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Sockets that others connect to: for the user alone, and never taken from a
 * daemon that lives.
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "log.h"
#include "server.h"

#define VUB_BACKLOG	4
/* How often, and how many milliseconds apart, a lock is tried. */
#define VUB_LOCK_TRIES	100
#define VUB_LOCK_MS	10

static int vub_socket(const char *path, struct sockaddr_un *addr)
{
	int fd;

	memset(addr, 0, sizeof(*addr));
	addr->sun_family = AF_UNIX;
	if (strlen(path) >= sizeof(addr->sun_path)) {
		vub_err("%s: the path of a socket has at most %zu characters",
			path, sizeof(addr->sun_path) - 1);
		return -ENAMETOOLONG;
	}
	memcpy(addr->sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return fd < 0 ? -errno : fd;
}

/* Whether a socket is there that nobody listens on any more. */
static bool vub_socket_is_dead(const char *path)
{
	struct sockaddr_un addr;
	struct stat st;
	bool dead;
	int fd;

	if (lstat(path, &st) || !S_ISSOCK(st.st_mode))
		return false;
	fd = vub_socket(path, &addr);
	if (fd < 0)
		return false;
	dead = connect(fd, (struct sockaddr *)&addr, sizeof(addr)) &&
	       errno == ECONNREFUSED;
	close(fd);
	return dead;
}

static int vub_bind(int fd, const struct sockaddr_un *addr)
{
	mode_t mask = umask(0177);
	int err;

	err = bind(fd, (const struct sockaddr *)addr, sizeof(*addr)) ?
	      -errno : 0;
	umask(mask);
	return err;
}

static const char *vub_bind_remedy(const char *path, int err)
{
	struct stat st;

	switch (err) {
	case -EADDRINUSE:
		if (!lstat(path, &st) && !S_ISSOCK(st.st_mode))
			return "what is there is no socket: choose another path";
		return "another daemon uses it: stop that one or choose another path";
	case -ENOENT:
	case -ENOTDIR:
		return "make its directory first";
	default:
		return "choose a path that may be written to";
	}
}

/*
 * Lock the directory of a path against daemons that start at the same moment: a socket
 * that one of them has just made looks dead until it is listened on. Anyone who may read
 * the directory could hold the lock, so it is not waited for without end. Where there is
 * nothing to lock, bind() tells what is wrong.
 */
static int vub_lock_directory(const struct sockaddr_un *addr)
{
	const struct timespec pause = { .tv_nsec = VUB_LOCK_MS * 1000000L };
	char path[sizeof(addr->sun_path)];
	int fd, tries;

	memcpy(path, addr->sun_path, sizeof(path));
	fd = open(dirname(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (tries = 0; fd >= 0 && tries < VUB_LOCK_TRIES; tries++) {
		if (!flock(fd, LOCK_EX | LOCK_NB) || errno != EWOULDBLOCK)
			break;
		nanosleep(&pause, NULL);
	}
	return fd;
}

static int vub_bind_and_listen(int fd, const struct sockaddr_un *addr)
{
	int err = vub_bind(fd, addr);

	if (err == -EADDRINUSE && vub_socket_is_dead(addr->sun_path)) {
		unlink(addr->sun_path);
		err = vub_bind(fd, addr);
	}
	if (!err && listen(fd, VUB_BACKLOG))
		err = -errno;
	return err;
}

/**
 * vub_listen() - make a socket that others can connect to
 * @path: where; what a dead daemon has left there is replaced
 *
 * Return: the socket, or a negative error; why was logged.
 */
int vub_listen(const char *path)
{
	struct sockaddr_un addr;
	int fd = vub_socket(path, &addr), lock, err;

	if (fd < 0)
		return fd;
	lock = vub_lock_directory(&addr);
	err = vub_bind_and_listen(fd, &addr);
	if (lock >= 0)
		close(lock);
	if (err) {
		vub_err("%s: no socket can be made here: %s; %s", path,
			strerror(-err), vub_bind_remedy(path, err));
		close(fd);
		return err;
	}
	return fd;
}

/**
 * vub_is_listening() - whether a descriptor is a socket to accept from
 * @fd: the descriptor
 *
 * Return: true if it is.
 */
bool vub_is_listening(int fd)
{
	socklen_t len = sizeof(int);
	int listening = 0;

	return !getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &len) &&
	       listening;
}
