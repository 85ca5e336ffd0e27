/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The kernel's header of that name, as far as code that is tested here uses it. */
#ifndef VUB_KERNEL_ASM_BYTEORDER_H
#define VUB_KERNEL_ASM_BYTEORDER_H

#include <endian.h>

#define cpu_to_le32(n)	htole32(n)
#define cpu_to_le64(n)	htole64(n)

#endif /* VUB_KERNEL_ASM_BYTEORDER_H */
