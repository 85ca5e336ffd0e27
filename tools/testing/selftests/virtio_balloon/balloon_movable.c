// SPDX-License-Identifier: GPL-2.0
/*
 * Pages in the balloon are marked offline, so that a crash dump leaves them out, and
 * single ones are movable, so that they are in nobody's way.
 *
 * Copyright the project's developers
 */

#include <linux/kernel-page-flags.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "../kselftest_harness.h"
#include "balloon.h"

/* Memory that fragmenting leaves alone. */
#define SPARE_KIB	(48 * 1024)

FIXTURE(movable) {
	char name[32];
	long long pages;
};

FIXTURE_SETUP(movable)
{
	if (!balloon_name(self->name, sizeof(self->name)))
		SKIP(return, "no balloon is bound to its driver");
	self->pages = balloon_pages();
	if (!self->pages)
		SKIP(return, "the host wants no memory: set a target first");
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

TEST_F(movable, pages_are_offline)
{
	long long offline = count_offline();

	if (offline < 0)
		SKIP(return, "/proc/kpageflags cannot be read");
	EXPECT_EQ(offline, self->pages);
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

/*
 * Takes almost all free memory and drops every other page of it, in a child that
 * holds the rest until it is killed.
 */
static pid_t fragment(long long kib)
{
	size_t page = getpagesize(), size = kib * 1024, off;
	int ready[2];
	pid_t pid;
	char *mem;
	char byte;

	if (pipe(ready))
		return -1;
	pid = fork();
	if (pid) {
		close(ready[1]);
		if (read(ready[0], &byte, 1) != 1)
			pid = -1;
		close(ready[0]);
		return pid;
	}
	mem = mmap(NULL, size, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	/* A kernel that has no huge pages does not know the advice. */
	if (mem == MAP_FAILED ||
	    (madvise(mem, size, MADV_NOHUGEPAGE) && errno != EINVAL))
		_exit(1);
	for (off = 0; off < size; off += page)
		mem[off] = 1;
	for (off = 0; off < size; off += 2 * page)
		madvise(mem + off, page, MADV_DONTNEED);
	if (write(ready[1], "", 1) != 1)
		_exit(1);
	for (;;)
		pause();
}

TEST_F_TIMEOUT(movable, compaction_moves_pages, 4 * BALLOON_PATIENCE)
{
	long long migrated = vm_event("balloon_migrate");
	long long page_kib = getpagesize() / 1024;
	time_t end;
	pid_t pid;

	if (access("/proc/sys/vm/compact_memory", W_OK))
		SKIP(return, "the kernel cannot compact memory");
	/* Only single pages move: see to it that there are no larger blocks. */
	ASSERT_TRUE(balloon_unbind(self->name));
	if (meminfo_kib("MemFree") - SPARE_KIB < 2 * self->pages * page_kib) {
		EXPECT_TRUE(balloon_bind(self->name));
		SKIP(return, "the host wants too much: at most a third of the memory");
	}
	pid = fragment(meminfo_kib("MemFree") - SPARE_KIB);
	ASSERT_TRUE(balloon_bind(self->name));
	ASSERT_GT(pid, 0);
	EXPECT_TRUE(balloon_wait_pages(self->pages));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);

	end = time(NULL) + BALLOON_PATIENCE;
	while (vm_event("balloon_migrate") == migrated && time(NULL) < end)
		ASSERT_TRUE(write_text("/proc/sys/vm/compact_memory", "1"));
	EXPECT_GT(vm_event("balloon_migrate"), migrated);
	EXPECT_EQ(balloon_pages(), self->pages);
	EXPECT_TRUE(wait_offline(self->pages));
}

TEST_HARNESS_MAIN
