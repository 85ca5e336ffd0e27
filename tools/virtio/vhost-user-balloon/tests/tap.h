/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Test Anything Protocol, as far as the unit tests need it.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_TAP_H
#define VUB_TAP_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "../util.h"

static bool tap_failed;

/* Note a failure and go on: the next line may tell more. */
#define tap_check(condition)						\
do {									\
	if (!(condition)) {						\
		printf("# %s:%d: not so: %s\n", __FILE__, __LINE__,	\
		       #condition);					\
		tap_failed = true;					\
	}								\
} while (0)

/**
 * struct tap_test - one test
 * @name: what it proves
 * @run: how
 */
struct tap_test {
	const char *name;
	void (*run)(void);
};

/* Run tests; returns the program's exit status. */
static int tap_run(const struct tap_test *tests, unsigned int nr)
{
	bool any_failed = false;
	unsigned int i;

	printf("1..%u\n", nr);
	for (i = 0; i < nr; i++) {
		tap_failed = false;
		tests[i].run();
		printf("%s %u - %s\n", tap_failed ? "not ok" : "ok", i + 1,
		       tests[i].name);
		any_failed |= tap_failed;
	}
	return any_failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

#endif /* VUB_TAP_H */
