// SPDX-License-Identifier: GPL-2.0
/*
 * Pages in the balloon are marked offline, so that a crash dump leaves them out, and
 * single ones are movable, so that they are in nobody's way.
 *
 * Copyright the project's developers
 */

/* First: it makes the C library declare Linux's own calls. */
#include "../kselftest_harness.h"

#include <linux/kernel-page-flags.h>
#include <sys/mman.h>

#include "balloon.h"

/* Memory that fragmenting leaves alone. */
#define SPARE_KIB	(96 * 1024)

FIXTURE(movable) {
	char name[32];
	long long pages;
};

FIXTURE_SETUP(movable)
{
	const char *missing = balloon_missing(self->name, sizeof(self->name),
					      &self->pages);

	if (missing)
		SKIP(return, "%s", missing);
}

FIXTURE_TEARDOWN(movable)
{
}

/* Page frames that are offline, or -1. */
static long long count_offline(void)
{
	static uint64_t flags[8192];
	long long count = 0;
	ssize_t len, i;
	int fd;

	fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	while ((len = read(fd, flags, sizeof(flags))) > 0)
		for (i = 0; i < len / (ssize_t)sizeof(flags[0]); i++)
			count += flags[i] >> KPF_OFFLINE & 1;
	close(fd);
	return len < 0 ? -1 : count;
}

/* What was moved stays offline until the host has heard of it. */
static bool wait_offline(long long pages)
{
	time_t end = time(NULL) + BALLOON_PATIENCE;

	while (count_offline() != pages) {
		if (time(NULL) > end)
			return false;
		short_sleep();
	}
	return true;
}

TEST_F(movable, pages_are_offline)
{
	if (count_offline() < 0)
		SKIP(return, "/proc/kpageflags cannot be read");
	EXPECT_TRUE(wait_offline(self->pages));
}

/*
 * Leaves free memory in pieces smaller than a pageblock, but no smaller than the
 * kernel's own allocations: takes all of it but some, in a file, and drops every other
 * MiB. The memory comes back when the file is closed.
 */
static int fragment(long long kib)
{
	static char mib[1 << 20];
	long long off, size = kib / 1024 * sizeof(mib);
	int fd = memfd_create("fragments", MFD_CLOEXEC);

	if (fd < 0)
		return -1;
	for (off = 0; off < size; off += sizeof(mib))
		if (write(fd, mib, sizeof(mib)) != sizeof(mib))
			goto fail;
	for (off = 0; off < size; off += 2 * sizeof(mib))
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off,
			      sizeof(mib)))
			goto fail;
	return fd;
fail:
	close(fd);
	return -1;
}

TEST_F_TIMEOUT(movable, compaction_moves_pages, 4 * BALLOON_PATIENCE)
{
	long long migrated = vm_event("balloon_migrate");
	long long page_kib = getpagesize() / 1024;
	time_t end;
	int fd;

	if (access("/proc/sys/vm/compact_memory", W_OK))
		SKIP(return, "the kernel cannot compact memory");
	/* Whole pageblocks do not move: see to it that there are few. */
	ASSERT_TRUE(balloon_unbind(self->name));
	if (meminfo_kib("MemFree") - SPARE_KIB < 2 * self->pages * page_kib) {
		EXPECT_TRUE(balloon_bind(self->name));
		SKIP(return, "the host wants too much: at most a third of the memory");
	}
	fd = fragment(meminfo_kib("MemFree") - SPARE_KIB);
	ASSERT_TRUE(balloon_bind(self->name));
	ASSERT_GE(fd, 0);
	EXPECT_TRUE(balloon_wait_pages(self->pages));
	close(fd);

	end = time(NULL) + BALLOON_PATIENCE;
	while (vm_event("balloon_migrate") == migrated && time(NULL) < end)
		ASSERT_TRUE(write_text("/proc/sys/vm/compact_memory", "1"));
	EXPECT_GT(vm_event("balloon_migrate"), migrated);
	EXPECT_EQ(balloon_pages(), self->pages);
	EXPECT_TRUE(wait_offline(self->pages));
}

TEST_HARNESS_MAIN
