# SPDX-License-Identifier: GPL-2.0
#
# The targets a user needs; `make help` lists them. The work is done by scripts/
# and tools/testing/, each of which does nothing quickly when it has nothing to do.

.NOTPARALLEL:
.PHONY: help demo kernels device fuzz check soak bench module lint clean \
	base tree kernel-x86 kernel-x86-debug kernel-uml kernel-uml-bench \
	base-module-x86 base-module-x86-debug base-module-uml-bench stock qemu-next bench-name

# What the demo runs on, and the kernel that measures there.
BED := qemu
bed_kernel_qemu := x86
bed_kernel_uml := uml-bench
bench_bed_resize := uml
bench_bed_bitmap := uml
demo_kernel = $(or $(bed_kernel_$(BED)),$(error BED=$(BED): there are BED=qemu and BED=uml))
bench_kernel = $(bed_kernel_$(or $(bench_bed_$(BENCH)),qemu))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' Makefile

demo: ## take a guest's memory and give it back, beside the base's own driver; BED=uml: without QEMU
	@$(MAKE) --no-print-directory base-module-$(demo_kernel) device
	@scripts/install-packages vm plot
	@tools/testing/bench/demo --bed=$(BED)

kernels: base-module-x86-debug kernel-uml stock ## build the kernels and modules that the tests boot
	@scripts/module build/stock/headers

device: ## build vhost-user-balloon, the host's side, in build/vhost-user-balloon
	@scripts/install-packages device
	@$(MAKE) --no-print-directory -C tools/virtio/vhost-user-balloon

qemu-next: ## get a QEMU that can have vhost-user-balloon for a host, in build/qemu-next
	@scripts/install-packages next
	@scripts/qemu-next

fuzz: device ## fuzz vhost-user-balloon, each of four fuzzers for FUZZ_TIME=20 seconds
	@scripts/install-packages fuzz
	@$(MAKE) --no-print-directory -C tools/virtio/vhost-user-balloon fuzz

check: kernels device ## run the tests
	@scripts/install-packages vm test fuzz
	@tools/testing/vm/check

soak: export SOAK = 1
soak: check ## run the tests, with the long cases whole

bench: bench-name ## run the benchmark BENCH=NAME; without a name, list them
	@$(MAKE) --no-print-directory base-module-$(bench_kernel) device
	@scripts/install-packages vm plot
	@tools/testing/bench/$(BENCH)

module: ## build virtio_balloon.ko for the kernel whose build directory is KDIR=DIR
	@scripts/module "$(KDIR)"

lint: tree ## check style, types and warnings; silent when all is well
	@scripts/install-packages lint device
	@scripts/lint

clean: ## remove everything that was built
	@rm -rf build

base:
	@scripts/install-packages build
	@scripts/base

tree: base ## lay the project over the base in build/tree
	@scripts/overlay

kernel-x86 kernel-x86-debug kernel-uml kernel-uml-bench: kernel-%: tree
	@scripts/kernel $*

base-module-x86 base-module-x86-debug base-module-uml-bench: base-module-%: kernel-%
	@scripts/base-module $*

stock:
	@scripts/install-packages module
	@scripts/stock-kernel

bench-name:
	@scripts/bench-name "$(BENCH)"
