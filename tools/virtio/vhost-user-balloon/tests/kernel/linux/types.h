/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's header of that name, as far as code that is tested here uses it. */
#ifndef VUB_KERNEL_LINUX_TYPES_H
#define VUB_KERNEL_LINUX_TYPES_H

#include <stdbool.h>
#include <stdint.h>

#include_next <linux/types.h>

/* What the kernel formats with %llu. */
typedef unsigned long long u64;
typedef uint32_t u32;

#endif /* VUB_KERNEL_LINUX_TYPES_H */
