// SPDX-License-Identifier: GPL-2.0
/*
 * The counters in /proc/vmstat keep the meaning that users know: pages of
 * PAGE_SIZE that ever entered, left and moved within a balloon.
 *
 * Copyright the project's developers
 */

#include "../kselftest_harness.h"
#include "balloon.h"

TEST(present)
{
	EXPECT_GE(vm_event("balloon_inflate"), 0);
	EXPECT_GE(vm_event("balloon_deflate"), 0);
	EXPECT_GE(vm_event("balloon_migrate"), 0);
}

TEST(never_more_out_than_in)
{
	EXPECT_GE(balloon_pages(), 0);
}

FIXTURE(bound) {
	char name[32];
	long long pages;
};

FIXTURE_SETUP(bound)
{
	const char *missing = balloon_missing(self->name, sizeof(self->name),
					      &self->pages);

	if (missing)
		SKIP(return, "%s", missing);
}

FIXTURE_TEARDOWN(bound)
{
}

TEST_F_TIMEOUT(bound, all_out_when_unbound, 2 * BALLOON_PATIENCE + 10)
{
	long long inflate = vm_event("balloon_inflate");

	ASSERT_TRUE(balloon_unbind(self->name));
	EXPECT_EQ(balloon_pages(), 0);
	EXPECT_EQ(vm_event("balloon_inflate"), inflate);
	ASSERT_TRUE(balloon_bind(self->name));
	EXPECT_TRUE(balloon_wait_pages(self->pages));
	EXPECT_EQ(vm_event("balloon_inflate"), inflate + self->pages);
}

TEST_HARNESS_MAIN
