/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's header of that name, as far as code that is tested here uses it. */
#ifndef VUB_KERNEL_LINUX_MINMAX_H
#define VUB_KERNEL_LINUX_MINMAX_H

#define min(a, b)							\
({									\
	__typeof__(a) min_a = (a);					\
	__typeof__(b) min_b = (b);					\
									\
	min_a < min_b ? min_a : min_b;					\
})
#define min_t(type, a, b)	min((type)(a), (type)(b))

#endif /* VUB_KERNEL_LINUX_MINMAX_H */
