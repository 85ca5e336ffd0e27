/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's header of that name, as far as code that is tested here uses it. */
#ifndef VUB_KERNEL_LINUX_STRING_H
#define VUB_KERNEL_LINUX_STRING_H

#include <string.h>

#endif /* VUB_KERNEL_LINUX_STRING_H */
