/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Small things that every file needs.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_UTIL_H
#define VUB_UTIL_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define VUB_ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#define VUB_BIT(nr)		(UINT64_C(1) << (nr))

/* Words of the kernel that user space lacks. */
#ifdef __CHECKER__
#define __force			__attribute__((force))
#else
#define __force
#endif
#ifndef __printf
#define __printf(a, b)		__attribute__((__format__(printf, a, b)))
#endif

/* The structure that a member is part of. */
#define vub_container_of(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define VUB_NSEC_PER_SEC	UINT64_C(1000000000)
#define VUB_NSEC_PER_MSEC	UINT64_C(1000000)

/* Nanoseconds of a clock that never jumps. */
static inline uint64_t vub_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * VUB_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static inline uint64_t vub_min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static inline uint64_t vub_max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* Buckets of a histogram: n is for 2^n and more, the last for all that is larger. */
#define VUB_BUCKETS	16

static inline void vub_bucket_count(uint64_t *buckets, uint64_t value)
{
	if (value)
		buckets[vub_min(63 - (unsigned int)__builtin_clzll(value),
				VUB_BUCKETS - 1)]++;
}

static inline uint64_t vub_align_down(uint64_t value, uint64_t grain)
{
	return value - value % grain;
}

#endif /* VUB_UTIL_H */
