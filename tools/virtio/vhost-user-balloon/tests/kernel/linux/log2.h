/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's header of that name, as far as code that is tested here uses it. */
#ifndef VUB_KERNEL_LINUX_LOG2_H
#define VUB_KERNEL_LINUX_LOG2_H

#define ilog2(n)	(63 - __builtin_clzll(n))

#endif /* VUB_KERNEL_LINUX_LOG2_H */
