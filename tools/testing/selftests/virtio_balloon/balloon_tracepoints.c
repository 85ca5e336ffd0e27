// SPDX-License-Identifier: GPL-2.0
/*
 * The driver's trace events exist, and a resize emits those that belong to it.
 *
 * Copyright the project's developers
 */

#include "../kselftest_harness.h"
#include "balloon.h"

#define TRACING	"/sys/kernel/tracing"
#define EVENTS	TRACING "/events/virtio_balloon"

FIXTURE(events) {
	char name[32];
};

FIXTURE_SETUP(events)
{
	if (access(TRACING "/events", F_OK))
		SKIP(return, "tracefs is not mounted");
	if (!balloon_name(self->name, sizeof(self->name)))
		SKIP(return, "no balloon is bound to its driver");
}

FIXTURE_TEARDOWN(events)
{
	write_text(EVENTS "/enable", "0");
}

TEST_F(events, exist)
{
	EXPECT_EQ(access(EVENTS "/virtio_balloon_target/format", F_OK), 0);
	EXPECT_EQ(access(EVENTS "/virtio_balloon_batch/format", F_OK), 0);
	EXPECT_EQ(access(EVENTS "/virtio_balloon_oom/format", F_OK), 0);
	EXPECT_EQ(access(EVENTS "/virtio_balloon_migrate/format", F_OK), 0);
}

static bool traced(const char *event)
{
	static char buf[1 << 20];

	return read_text(TRACING "/trace", buf, sizeof(buf)) > 0 &&
	       strstr(buf, event);
}

TEST_F_TIMEOUT(events, resize_is_traced, 2 * BALLOON_PATIENCE + 10)
{
	long long pages = balloon_pages();

	if (!pages)
		SKIP(return, "the host wants no memory: set a target first");
	ASSERT_TRUE(write_text(TRACING "/trace", "\n"));
	ASSERT_TRUE(write_text(TRACING "/tracing_on", "1"));
	ASSERT_TRUE(write_text(EVENTS "/enable", "1"));
	ASSERT_TRUE(balloon_unbind(self->name));
	ASSERT_TRUE(balloon_bind(self->name));
	EXPECT_TRUE(balloon_wait_pages(pages));
	EXPECT_TRUE(traced("virtio_balloon_target:"));
	EXPECT_TRUE(traced("virtio_balloon_batch:"));
}

TEST_HARNESS_MAIN
