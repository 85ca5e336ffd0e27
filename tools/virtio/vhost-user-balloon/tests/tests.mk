# SPDX-License-Identifier: GPL-2.0-or-later
#
# How the daemon is tested; part of ../Makefile.
#
# Unit tests and fuzzers are programs of their own. What hostile peers do is tried
# twice: with ASan and UBSan, and with the daemon as it ships. Guests are in
# tools/testing/vm.
#
# Copyright (C) the project's developers

unit		:= $(addprefix $(out)/tests/,test_runs test_decode test_ring)
ifndef SANITIZE
unit		+= $(out)/tests/test_sandbox
endif
fuzzers		:= $(addprefix $(out)/tests/,fuzz_decode fuzz_encode fuzz_ring fuzz_messages)
PYTEST		?= /usr/bin/python3 -m pytest -q -p no:cacheprovider --timeout=120 -n $(shell nproc)
# Seconds that each fuzzer runs for, and where it puts inputs that reach further.
FUZZ_TIME	?= 20
FUZZ_CORPUS	?= $(src)tests/corpus

$(out)/tests/%.o: $(src)tests/%.c | $(header)
	$(call say,CC)
	$(quiet)mkdir -p $(@D)
	$(quiet)$(CC) $(CFLAGS) $(CPPFLAGS) $(flags) -MMD -MP -c -o $@ $<

# The driver's encoder, to try our decoder with.
encoder		:= $(top)/drivers/virtio/balloon/bitmap.c
encoder_users	:= $(addprefix $(out)/tests/,test_decode fuzz_encode)
$(out)/tests/bitmap.o $(encoder_users:=.o): CPPFLAGS += -I$(src)tests/kernel
$(out)/tests/bitmap.o: $(encoder) | $(header)
	$(call say,CC)
	$(quiet)mkdir -p $(@D)
	$(quiet)$(CC) $(CFLAGS) $(CPPFLAGS) $(flags) -MMD -MP -c -o $@ $<

$(encoder_users): $(out)/tests/bitmap.o

$(unit): $(out)/tests/%: $(out)/tests/%.o $(addprefix $(out)/,$(pure))
	$(call say,LD)
	$(quiet)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(libs)

# libFuzzer guides them by what they have covered, which takes clang.
$(fuzzers): sanitize += -fsanitize=fuzzer
$(fuzzers): $(out)/tests/%: $(out)/tests/%.o $(addprefix $(out)/,$(objects))
	$(call say,LD)
	$(quiet)$(CC) $(CFLAGS) $(LDFLAGS) $(sanitize) -o $@ $^ $(libs)

.PHONY: check-unit check-peers check-confined check-fuzz fuzz fuzz-run $(fuzzers:=.run)
.SECONDARY:

check-unit: $(unit)
	$(quiet)set -e; for test in $^; do $$test; done

check-peers:
	$(quiet)$(MAKE) -f $(firstword $(MAKEFILE_LIST)) -C $(CURDIR) \
		SANITIZE=1 check-unit all
	$(quiet)VUB_DAEMON=$(O)/sanitize/vhost-user-balloon VUB_SANITIZED=1 \
		$(PYTEST) $(src)tests/test_peer.py $(src)tests/test_qmp.py

# The sandbox does not take sanitizers, so the daemon as it ships has to show
# that it can do all of it confined.
check-confined: $(daemon) check-unit
	$(quiet)VUB_DAEMON=$(daemon) \
		$(PYTEST) $(src)tests/test_peer.py $(src)tests/test_qmp.py

# A minute of all. The corpus of the tree is where they begin, and stays as it is.
check-fuzz:
	$(quiet)$(MAKE) -f $(firstword $(MAKEFILE_LIST)) -C $(CURDIR) \
		FUZZ_TIME=15 FUZZ_CORPUS=$(O)/corpus fuzz

check: check-confined check-peers check-fuzz

# With a corpus that it adds to: make fuzz FUZZ_TIME=3600
fuzz:
	$(quiet)$(MAKE) -f $(firstword $(MAKEFILE_LIST)) -C $(CURDIR) -j$(shell nproc) \
		O=$(O)/fuzz SANITIZE=1 FUZZER=1 CC=clang \
		FUZZ_CORPUS=$(FUZZ_CORPUS) fuzz-run

fuzz-run: $(fuzzers:=.run)

$(fuzzers:=.run): %.run: %
	$(quiet)name=$(*F); log=$(O)/$$name.log; mkdir -p $(FUZZ_CORPUS)/$$name; \
	$< -max_total_time=$(FUZZ_TIME) -timeout=20 -print_final_stats=1 \
		-artifact_prefix=$(O)/ $(FUZZ_CORPUS)/$$name \
		$(src)tests/corpus/$$name >$$log 2>&1 || \
		{ cat $$log; echo "not ok - $$name"; exit 1; }; \
	echo "ok - $$name: $$(sed -n 's/^stat::number_of_executed_units: *//p' $$log) inputs"
