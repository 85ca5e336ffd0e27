// SPDX-License-Identifier: GPL-2.0
/*
 * MemTotal tells who may use the memory in the balloon. Without deflate-on-oom it is
 * the host's, and MemTotal shrinks by it; with it the guest can have it back when it
 * needs it, and MemTotal stays.
 *
 * Copyright the project's developers
 */

#include <linux/virtio_balloon.h>

#include "../kselftest_harness.h"
#include "balloon.h"

FIXTURE(total) {
	char name[32];
	long long pages;
};

FIXTURE_SETUP(total)
{
	const char *missing = balloon_missing(self->name, sizeof(self->name),
					      &self->pages);

	if (missing)
		SKIP(return, "%s", missing);
}

FIXTURE_TEARDOWN(total)
{
}

TEST_F_TIMEOUT(total, shrinks_by_what_is_lost, 2 * BALLOON_PATIENCE + 10)
{
	bool ours = balloon_has_feature(self->name,
					VIRTIO_BALLOON_F_DEFLATE_ON_OOM);
	long long lost_kib = ours ? 0 : self->pages * (getpagesize() / 1024);
	long long total = meminfo_kib("MemTotal");

	ASSERT_TRUE(balloon_unbind(self->name));
	EXPECT_EQ(meminfo_kib("MemTotal"), total + lost_kib);
	ASSERT_TRUE(balloon_bind(self->name));
	EXPECT_TRUE(balloon_wait_pages(self->pages));
	EXPECT_EQ(meminfo_kib("MemTotal"), total);
}

TEST_HARNESS_MAIN
