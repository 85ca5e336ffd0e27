/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The balloon as a program in the guest sees it: sysfs, debugfs, /proc.
 *
 * The host sets the balloon's target, and nothing in a guest can. What a program
 * can do is to unbind the driver, which gives all memory back, and to bind it
 * again, which makes the driver return to the target. So these tests need a host
 * that wants some memory, and say so (skip) when it wants none.
 *
 * Copyright the project's developers
 */
#ifndef SELFTESTS_VIRTIO_BALLOON_H
#define SELFTESTS_VIRTIO_BALLOON_H

#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BALLOON_DRIVER	"/sys/bus/virtio/drivers/virtio_balloon"
#define BALLOON_DEBUGFS	"/sys/kernel/debug/virtio_balloon"

/* Seconds in which a resize must be over, emulated processors included. */
#define BALLOON_PATIENCE	60

/* Reads a file whole; its length, or -1. */
static inline ssize_t read_text(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len, total = 0;

	if (fd < 0)
		return -1;
	while ((len = read(fd, buf + total, size - 1 - total)) > 0)
		total += len;
	close(fd);
	buf[total] = 0;
	return len < 0 ? -1 : total;
}

static inline bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, text, strlen(text)) == (ssize_t)strlen(text);
	close(fd);
	return ok;
}

/* The value of the line that starts with a name, or -1. */
static inline long long text_value(const char *text, const char *name)
{
	size_t len = strlen(name);

	while (text) {
		if (!strncmp(text, name, len) &&
		    (text[len] == ' ' || text[len] == ':'))
			return strtoll(text + len + 1, NULL, 10);
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return -1;
}

static inline long long file_value(const char *path, const char *name)
{
	char buf[32768];

	if (read_text(path, buf, sizeof(buf)) < 0)
		return -1;
	return text_value(buf, name);
}

static inline long long vm_event(const char *name)
{
	return file_value("/proc/vmstat", name);
}

static inline long long meminfo_kib(const char *name)
{
	return file_value("/proc/meminfo", name);
}

/* The first balloon's name, virtioN; false without one that has a driver. */
static inline bool balloon_name(char *name, size_t size)
{
	glob_t found;
	bool ok;

	ok = !glob(BALLOON_DRIVER "/virtio*", 0, NULL, &found);
	if (ok)
		snprintf(name, size, "%s", strrchr(found.gl_pathv[0], '/') + 1);
	globfree(&found);
	return ok;
}

static inline bool balloon_has_feature(const char *name, unsigned int bit)
{
	char path[128], features[80];

	snprintf(path, sizeof(path), "/sys/bus/virtio/devices/%s/features", name);
	return read_text(path, features, sizeof(features)) > (ssize_t)bit &&
	       features[bit] == '1';
}

/* Pages of PAGE_SIZE that are in a balloon now, by the counters of all. */
static inline long long balloon_pages(void)
{
	return vm_event("balloon_inflate") - vm_event("balloon_deflate");
}

/*
 * Why a test that needs pages in a balloon cannot run, or NULL and then the device's
 * name and the pages.
 */
static inline const char *balloon_missing(char *name, size_t size,
					  long long *pages)
{
	if (!balloon_name(name, size))
		return "no balloon is bound to its driver";
	*pages = balloon_pages();
	return *pages ? NULL : "the host wants no memory: set a target first";
}

static inline long long balloon_stat(const char *name, const char *counter)
{
	char path[128];

	snprintf(path, sizeof(path), BALLOON_DEBUGFS "/%s/stat", name);
	return file_value(path, counter);
}

static inline bool balloon_unbind(const char *name)
{
	return write_text(BALLOON_DRIVER "/unbind", name);
}

static inline bool balloon_bind(const char *name)
{
	return write_text(BALLOON_DRIVER "/bind", name);
}

static inline void short_sleep(void)
{
	struct timespec ts = { .tv_nsec = 20 * 1000 * 1000 };

	nanosleep(&ts, NULL);
}

/* Waits until the balloon holds that many pages. */
static inline bool balloon_wait_pages(long long pages)
{
	time_t end = time(NULL) + BALLOON_PATIENCE;

	while (balloon_pages() != pages) {
		if (time(NULL) > end)
			return false;
		short_sleep();
	}
	return true;
}

#endif
