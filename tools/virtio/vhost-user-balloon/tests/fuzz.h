/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a fuzzer has to have: libFuzzer's entry.
 *
 * Copyright (C) the project's developers
 */
#ifndef VUB_FUZZ_H
#define VUB_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/**
 * LLVMFuzzerTestOneInput() - try one input
 * @data: the input
 * @size: bytes of it
 *
 * Return: 0.
 */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif /* VUB_FUZZ_H */
