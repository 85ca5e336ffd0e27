// SPDX-License-Identifier: GPL-2.0
/*
 * Uses memory in the ways that matter to a balloon.
 *
 *   memload hog MIB [SECONDS]     touches memory, then holds it
 *   memload churn MIB [SECONDS]   maps, touches and unmaps in a loop
 *   memload reader FILE [SECONDS] reads random pages of a mapped file
 *   memload frag MIB [SECONDS]    touches memory, drops every other page, holds
 *   memload age MIB [SECONDS]     fills and frees pieces of all sizes in a file, then
 *                                 holds a quarter of it until a signal
 *   memload beat FILE [SECONDS]   writes a file and forks every 0.2 s
 *   memload timer US [SECONDS]    wakes up every so many microseconds
 *
 * Without SECONDS it goes on until a signal. Each prints what it did as lines of
 * a name and a value: hog, frag and age once they hold their memory (the time that
 * took, ms), the others at their end (cycles, pages, largest gap between two beats in
 * ms, how much too late the latest and the median wake-up came in us).
 *
 * Copyright the project's developers
 */

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define BEAT_NS		(200 * 1000 * 1000)
#define MIB		(1024UL * 1024)
#define NSEC_PER_SEC	1000000000LL

static int stopped;
static long page_size;

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * NSEC_PER_SEC + ts.tv_nsec;
}

static void on_signal(int sig)
{
	(void)sig;
	__atomic_store_n(&stopped, 1, __ATOMIC_RELAXED);
}

static bool done(int64_t end)
{
	return __atomic_load_n(&stopped, __ATOMIC_RELAXED) || now_ns() >= end;
}

static void report(const char *name, long long value)
{
	printf("%s %lld\n", name, value);
	fflush(stdout);
}

static int fail(const char *what)
{
	fprintf(stderr, "memload: %s: %s\n", what, strerror(errno));
	return 1;
}

static char *map_anonymous(size_t size)
{
	/* Refusing is not the point, except under strict overcommit. */
	return mmap(NULL, size, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
}

static void touch(char *mem, size_t size)
{
	size_t off;

	for (off = 0; off < size; off += page_size)
		mem[off] = 1;
}

/* Until a signal, or until the time is over. */
static void hold(int64_t end)
{
	struct timespec ts = { .tv_nsec = 10 * 1000 * 1000 };

	while (!done(end))
		nanosleep(&ts, NULL);
}

static int hog(const char *mib, int64_t end)
{
	size_t size = strtoul(mib, NULL, 0) * MIB;
	int64_t start = now_ns();
	char *mem = map_anonymous(size);

	if (mem == MAP_FAILED)
		return fail("hog");
	touch(mem, size);
	report("touched_ms", (now_ns() - start) / 1000000);
	hold(end);
	return 0;
}

static bool punch(int fd, off_t off, off_t len)
{
	return !fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off, len);
}

/* In a file, since what a page fault costs is not the point. */
static int frag(const char *mib, int64_t end)
{
	static char block[MIB];
	off_t off, size = strtoul(mib, NULL, 0) * MIB;
	int64_t start = now_ns();
	int fd = memfd_create("frag", MFD_CLOEXEC);

	if (fd < 0)
		return fail("frag");
	for (off = 0; off < size; off += MIB)
		if (write(fd, block, MIB) != (ssize_t)MIB)
			return fail("frag");
	for (off = 0; off < size; off += 2 * page_size)
		if (!punch(fd, off, page_size))
			return fail("frag");
	report("touched_ms", (now_ns() - start) / 1000000);
	hold(end);
	return 0;
}

static int churn(const char *mib, int64_t end)
{
	size_t size = strtoul(mib, NULL, 0) * MIB;
	long long cycles = 0;

	for (; !done(end); cycles++) {
		char *mem = map_anonymous(size);

		if (mem == MAP_FAILED)
			return fail("churn");
		touch(mem, size);
		munmap(mem, size);
	}
	report("cycles", cycles);
	return 0;
}

/* Knuth's linear congruential generator: its high bits are random. */
static uint64_t random_next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return *seed >> 16;
}

/* A piece of one to 1024 pages, every power of two as likely, somewhere in a file. */
static off_t piece(uint64_t *seed, off_t size, off_t *len)
{
	*len = page_size << random_next(seed) % 11;
	return random_next(seed) % (size / page_size) * page_size;
}

static int age(const char *mib, int64_t end)
{
	static char block[4 * MIB];
	off_t off, len, size = strtoul(mib, NULL, 0) * MIB;
	int64_t start = now_ns();
	uint64_t seed = 20;
	struct stat st;
	int fd = memfd_create("age", MFD_CLOEXEC);

	if (fd < 0)
		return fail("age");
	while (!done(end)) {
		off = piece(&seed, size, &len);
		if (off + len > size)
			continue;
		/* Two pieces come for one that goes, until the file is nearly full. */
		if (random_next(&seed) % 3 ? pwrite(fd, block, len, off) != len :
					     !punch(fd, off, len))
			return fail("age");
	}
	do {
		off = piece(&seed, size, &len);
		if (!punch(fd, off, len) || fstat(fd, &st))
			return fail("age");
	} while (st.st_blocks > size / 512 / 4);
	report("aged_ms", (now_ns() - start) / 1000000);
	hold(INT64_MAX);
	return 0;
}

static int reader(const char *path, int64_t end)
{
	uint64_t seed = getpid();
	long long pages = 0, sum = 0;
	struct stat st;
	char *mem;
	int fd;

	fd = open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st))
		return fail(path);
	mem = mmap(NULL, st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	if (mem == MAP_FAILED)
		return fail(path);
	for (; !done(end); pages++)
		sum += mem[random_next(&seed) % st.st_size];
	report("pages", pages);
	report("sum", sum);
	return 0;
}

static bool beat_once(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	pid_t pid;
	bool ok;

	if (fd < 0)
		return false;
	ok = write(fd, path, 1) == 1;
	close(fd);
	pid = fork();
	if (!pid)
		_exit(0);
	return ok && pid > 0 && waitpid(pid, NULL, 0) == pid;
}

static int beat(const char *path, int64_t end)
{
	struct timespec ts = { .tv_nsec = BEAT_NS };
	int64_t last = now_ns(), gap = 0;
	long long failures = 0;

	while (!done(end)) {
		int64_t now;

		nanosleep(&ts, NULL);
		if (!beat_once(path))
			failures++;
		now = now_ns();
		if (now - last > gap)
			gap = now - last;
		last = now;
	}
	report("largest_gap_ms", gap / 1000000);
	report("failures", failures);
	return 0;
}

#define LATE_MAX	1000000

static int timer(const char *us, int64_t end)
{
	int64_t late, next = now_ns(), step = strtoul(us, NULL, 0) * 1000;
	static unsigned int wakes[LATE_MAX + 1];
	long long nr = 0, below = 0, worst = 0;
	struct timespec ts;

	if (step <= 0) {
		errno = EINVAL;
		return fail("timer");
	}
	while (!done(end)) {
		next += step;
		ts.tv_sec = next / NSEC_PER_SEC;
		ts.tv_nsec = next % NSEC_PER_SEC;
		if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL))
			continue;
		late = (now_ns() - next) / 1000;
		worst = late > worst ? late : worst;
		wakes[late < LATE_MAX ? late : LATE_MAX]++;
		nr++;
		/* What came too late is not made up for. */
		if (late * 1000 > step)
			next = now_ns();
	}
	for (late = 0; late < LATE_MAX; late++) {
		below += wakes[late];
		if (2 * below >= nr)
			break;
	}
	report("wakes", nr);
	report("median_late_us", late);
	report("worst_late_us", worst);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(const char *arg, int64_t end);
} loads[] = {
	{ "hog", hog },
	{ "churn", churn },
	{ "reader", reader },
	{ "frag", frag },
	{ "age", age },
	{ "beat", beat },
	{ "timer", timer },
};

int main(int argc, char **argv)
{
	struct sigaction action = { .sa_handler = on_signal };
	int64_t end = INT64_MAX;
	size_t i;

	page_size = sysconf(_SC_PAGESIZE);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	if (argc == 4)
		end = now_ns() + strtod(argv[3], NULL) * NSEC_PER_SEC;
	for (i = 0; i < ARRAY_SIZE(loads); i++)
		if ((argc == 3 || argc == 4) && !strcmp(argv[1], loads[i].name))
			return loads[i].run(argv[2], end);
	fprintf(stderr, "usage: memload hog|churn|frag|age MIB [SECONDS]\n"
			"       memload reader|beat FILE [SECONDS]\n"
			"       memload timer US [SECONDS]\n");
	return 2;
}
