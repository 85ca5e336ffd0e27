# SPDX-License-Identifier: GPL-2.0
#
# The targets a user needs; `make help` lists them. The work is done by scripts/
# and tools/testing/, each of which does nothing quickly when it has nothing to do.

.NOTPARALLEL:
.PHONY: help demo kernels device check soak bench module lint clean \
	base tree kernel-x86 kernel-x86-debug kernel-uml base-module stock bench-name

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

demo: base-module ## take a guest's memory and give it back, beside the base's own driver
	@scripts/install-packages vm plot
	@tools/testing/bench/demo

kernels: kernel-x86-debug kernel-uml stock ## build the kernels and modules that the tests boot
	@scripts/base-module x86-debug
	@scripts/module build/stock/headers

device: ## build vhost-user-balloon, the host's side, in build/vhost-user-balloon
	@scripts/install-packages device
	@$(MAKE) --no-print-directory -C tools/virtio/vhost-user-balloon

check: kernels device ## run the tests
	@scripts/install-packages vm test
	@tools/testing/vm/check

soak: export SOAK = 1
soak: check ## run the tests, with the long cases whole

bench: bench-name base-module ## run the benchmark BENCH=NAME; without a name, list them
	@scripts/install-packages vm plot
	@tools/testing/bench/$(BENCH)

module: ## build virtio_balloon.ko for the kernel whose build directory is KDIR=DIR
	@scripts/install-packages module
	@scripts/module "$(KDIR)"

lint: tree ## check style, types and warnings; silent when all is well
	@scripts/install-packages lint
	@scripts/lint

clean: ## remove everything that was built
	@rm -rf build

base:
	@scripts/install-packages build
	@scripts/base

tree: base ## lay the project over the base in build/tree
	@scripts/overlay

kernel-x86 kernel-x86-debug kernel-uml: kernel-%: tree
	@scripts/kernel $*

base-module: kernel-x86
	@scripts/base-module x86

stock:
	@scripts/install-packages module
	@scripts/stock-kernel

bench-name:
	@scripts/bench-name "$(BENCH)"
