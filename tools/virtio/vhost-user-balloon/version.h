/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon's version.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_VERSION_H
#define VUB_VERSION_H

#define VUB_VERSION_MAJOR	1
#define VUB_VERSION_MINOR	0
#define VUB_VERSION_MICRO	0

#endif /* VUB_VERSION_H */
