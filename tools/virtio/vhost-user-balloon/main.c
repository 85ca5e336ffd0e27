// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * vhost-user-balloon: a memory balloon for one virtual machine.
 *
 * The VMM connects to one socket (conn.c, messages.c), operators to another one
 * (qmp*.c), and the balloon device lies in between (device.h has its model).
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>
#include <jansson.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conn.h"
#include "device.h"
#include "log.h"
#include "options.h"
#include "qmp.h"
#include "sandbox.h"
#include "server.h"

/**
 * struct vub_daemon - everything
 * @options: the command line
 * @dev: the device
 * @conn: the connection to the VMM, if there is one
 * @listener: where VMMs connect to; not watched while one is connected
 * @listen_fd: its socket, or -1
 * @qmp: the operators' socket
 * @signals: what ends the daemon
 */
struct vub_daemon {
	struct vub_options options;
	struct vub_device dev;
	struct vub_conn conn;
	struct vub_source listener;
	int listen_fd;
	struct vub_qmp qmp;
	struct vub_source signals;
};

static struct vub_daemon vub_daemon = {
	.listener.fd = -1,
	.listen_fd = -1,
};

/* The next guest waits in the backlog until the one before it is gone. */
static void vub_daemon_guest_gone(struct vub_conn *conn)
{
	struct vub_daemon *daemon =
		vub_container_of(conn, struct vub_daemon, conn);

	if (daemon->listen_fd < 0 ||
	    (conn->served && !daemon->options.reconnect))
		daemon->dev.loop.stop = true;
	else
		vub_loop_add(&daemon->dev.loop, &daemon->listener,
			     daemon->listen_fd, EPOLLIN);
}

static int vub_daemon_serve(struct vub_daemon *daemon, int fd)
{
	memset(&daemon->conn, 0, sizeof(daemon->conn));
	daemon->conn.closed = vub_daemon_guest_gone;
	return vub_conn_open(&daemon->conn, &daemon->dev, fd);
}

static void vub_daemon_accept(struct vub_source *source, uint32_t events)
{
	struct vub_daemon *daemon =
		vub_container_of(source, struct vub_daemon, listener);
	int fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC);

	(void)events;
	if (fd < 0)
		return;
	if (vub_daemon_serve(daemon, fd))
		close(fd);
	else
		vub_loop_remove(&daemon->dev.loop, &daemon->listener);
}

static void vub_daemon_signalled(struct vub_source *source, uint32_t events)
{
	(void)events;
	vub_container_of(source, struct vub_daemon, signals)->dev.loop.stop =
		true;
}

static int vub_daemon_take_signals(struct vub_daemon *daemon)
{
	sigset_t set;
	int fd;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	if (sigprocmask(SIG_BLOCK, &set, NULL))
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0)
		return -errno;
	daemon->signals.ready = vub_daemon_signalled;
	return vub_loop_add(&daemon->dev.loop, &daemon->signals, fd, EPOLLIN);
}

static int vub_daemon_open_vmm(struct vub_daemon *daemon)
{
	const struct vub_options *options = &daemon->options;

	int err;

	if (options->fd >= 0 && !vub_is_listening(options->fd)) {
		err = vub_daemon_serve(daemon, options->fd);
		if (err)
			vub_err("--fd=%d: %s; pass a socket that listens or is connected",
				options->fd, strerror(-err));
		return err;
	}
	daemon->listener.ready = vub_daemon_accept;
	daemon->listen_fd = options->fd >= 0 ? options->fd :
					       vub_listen(options->socket_path);
	if (daemon->listen_fd < 0)
		return daemon->listen_fd;
	err = vub_loop_add(&daemon->dev.loop, &daemon->listener,
			   daemon->listen_fd, EPOLLIN);
	if (err)
		vub_err("cannot wait for a VMM: %s", strerror(-err));
	return err;
}

static int vub_daemon_open_qmp(struct vub_daemon *daemon)
{
	int fd, err;

	if (!daemon->options.qmp_path)
		return 0;
	fd = vub_listen(daemon->options.qmp_path);
	if (fd < 0)
		return fd;
	err = vub_qmp_open(&daemon->qmp, &daemon->dev, fd);
	if (err)
		vub_err("%s: %s", daemon->options.qmp_path, strerror(-err));
	return err;
}

/* jansson would open a file for this when the first object is made. */
static int vub_daemon_seed(void)
{
	size_t seed = 0;

	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		return -errno;
	json_object_seed(seed | 1);
	return 0;
}

static int vub_daemon_confine(void)
{
	int err = vub_sandbox_enter();

	if (err)
		vub_err("the sandbox cannot be entered; --sandbox=off does without it, and leaves a guest that breaks out of its VMM more to work with");
	return err;
}

static int vub_daemon_prepare(struct vub_daemon *daemon)
{
	int err = vub_device_init(&daemon->dev, &daemon->options);

	if (!err)
		err = vub_memory_guard();
	if (!err)
		err = vub_daemon_take_signals(daemon);
	if (!err)
		err = vub_daemon_seed();
	if (err)
		vub_err("cannot start: %s", strerror(-err));
	return err;
}

/* Whatever fails here has said so. */
static int vub_daemon_open(struct vub_daemon *daemon)
{
	int err = vub_daemon_prepare(daemon);

	if (!err)
		err = vub_daemon_open_qmp(daemon);
	if (!err)
		err = vub_daemon_open_vmm(daemon);
	if (!err && daemon->options.sandbox)
		err = vub_daemon_confine();
	return err;
}

/* The sockets stay where they are: the sandbox can remove no file. */
static void vub_daemon_close(struct vub_daemon *daemon)
{
	daemon->conn.closed = NULL;
	if (daemon->dev.conn)
		vub_conn_close(daemon->dev.conn);
	vub_qmp_close(&daemon->qmp);
	vub_device_destroy(&daemon->dev);
}

int main(int argc, char **argv)
{
	struct vub_daemon *daemon = &vub_daemon;
	int err;

	switch (vub_options_parse(&daemon->options, argc, argv)) {
	case VUB_DONE:
		return EXIT_SUCCESS;
	case VUB_BAD:
		return EXIT_FAILURE;
	case VUB_RUN:
		break;
	}
	vub_log_set_level(daemon->options.log_level);

	err = vub_daemon_open(daemon);
	if (!err) {
		err = vub_loop_run(&daemon->dev.loop);
		if (err)
			vub_err("stopping: %s", strerror(-err));
	}
	vub_daemon_close(daemon);
	return err ? EXIT_FAILURE : EXIT_SUCCESS;
}
