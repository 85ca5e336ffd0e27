// SPDX-License-Identifier: GPL-2.0
/*
 * What debugfs says about a balloon exists, can be parsed, and adds up.
 *
 * Copyright the project's developers
 */

#include "../kselftest_harness.h"
#include "balloon.h"

FIXTURE(debugfs) {
	char name[32];
	char text[4096];
};

FIXTURE_SETUP(debugfs)
{
	if (access("/sys/kernel/debug/tracing", F_OK) &&
	    access("/sys/kernel/debug/block", F_OK) &&
	    access(BALLOON_DEBUGFS, F_OK))
		SKIP(return, "debugfs is not mounted");
	if (!balloon_name(self->name, sizeof(self->name)))
		SKIP(return, "no balloon is bound to its driver");
}

FIXTURE_TEARDOWN(debugfs)
{
}

static ssize_t debugfs_text(struct _test_data_debugfs *self, const char *file)
{
	char path[128];

	snprintf(path, sizeof(path), BALLOON_DEBUGFS "/%s/%s", self->name, file);
	return read_text(path, self->text, sizeof(self->text));
}

static bool is_stat_line(const char *line)
{
	size_t name = strspn(line, "abcdefghijklmnopqrstuvwxyz0123456789_");
	size_t digits = strspn(line + name + 1, "0123456789");

	return name && line[name] == ' ' && digits && !line[name + 1 + digits];
}

TEST_F(debugfs, stat_lines_are_name_and_number)
{
	char *line, *next;

	ASSERT_GT(debugfs_text(self, "stat"), 0);
	for (line = self->text; *line; line = next) {
		next = strchr(line, '\n');
		ASSERT_NE(next, NULL);
		*next++ = 0;
		EXPECT_TRUE(is_stat_line(line)) {
			TH_LOG("line: %s", line);
		}
	}
}

TEST_F(debugfs, stat_names_are_unique)
{
	char names[4096] = "\n";
	char *line;

	ASSERT_GT(debugfs_text(self, "stat"), 0);
	for (line = strtok(self->text, "\n"); line; line = strtok(NULL, "\n")) {
		char name[66];
		int len = snprintf(name, sizeof(name), "\n%.*s\n",
				   (int)strcspn(line, " "), line);

		EXPECT_EQ(strstr(names, name), NULL) {
			TH_LOG("twice: %s", line);
		}
		ASSERT_LT(strlen(names) + len, sizeof(names));
		strcat(names, name + 1);
	}
}

/* Pages by state in one reading, against what the host was told in the same. */
static bool adds_up(const char *text)
{
	long long sum = text_value(text, "held_pages") +
			text_value(text, "in_flight_pages") +
			text_value(text, "inflated_pages") +
			text_value(text, "returning_pages");

	return sum == text_value(text, "actual_pages") && sum == balloon_pages();
}

TEST_F_TIMEOUT(debugfs, states_add_up_at_rest, BALLOON_PATIENCE + 10)
{
	static const char * const states[] = {
		"target_pages", "actual_pages", "held_pages",
		"in_flight_pages", "inflated_pages", "returning_pages",
	};
	time_t end = time(NULL) + BALLOON_PATIENCE;
	size_t i;

	ASSERT_GT(debugfs_text(self, "stat"), 0);
	for (i = 0; i < ARRAY_SIZE(states); i++)
		ASSERT_GE(text_value(self->text, states[i]), 0);
	while (!adds_up(self->text) && time(NULL) < end) {
		short_sleep();
		ASSERT_GT(debugfs_text(self, "stat"), 0);
	}
	EXPECT_TRUE(adds_up(self->text)) {
		TH_LOG("balloon_pages %lld\n%s", balloon_pages(), self->text);
	}
}

TEST_F(debugfs, state_says_something)
{
	ASSERT_GT(debugfs_text(self, "state"), 1);
	EXPECT_NE(self->text[0], '\n');
	EXPECT_EQ(self->text[strlen(self->text) - 1], '\n');
}

TEST_F_TIMEOUT(debugfs, gone_when_unbound, 2 * BALLOON_PATIENCE)
{
	ASSERT_TRUE(balloon_unbind(self->name));
	EXPECT_LT(debugfs_text(self, "stat"), 0);
	ASSERT_TRUE(balloon_bind(self->name));
	EXPECT_GT(debugfs_text(self, "stat"), 0);
}

TEST_HARNESS_MAIN
