/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the daemon gives up after start.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_SANDBOX_H
#define VUB_SANDBOX_H

int vub_sandbox_enter(void);

#endif /* VUB_SANDBOX_H */
