/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sockets that others connect to.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_SERVER_H
#define VUB_SERVER_H

#include <stdbool.h>

int vub_listen(const char *path);
bool vub_is_listening(int fd);

#endif /* VUB_SERVER_H */
