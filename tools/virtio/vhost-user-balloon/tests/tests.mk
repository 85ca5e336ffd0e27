# SPDX-License-Identifier: GPL-2.0-or-later
#
# How the daemon is tested; part of ../Makefile.
#
# Unit tests and fuzzers are programs of their own. What hostile peers do is tried
# twice: with ASan and UBSan, and with the daemon as it ships, which the test with
# UML takes as well.
#
# Copyright (C) the project's developers

unit		:= $(addprefix $(out)/tests/,test_runs test_decode test_ring)
fuzzers		:= $(addprefix $(out)/tests/,fuzz_decode fuzz_ring fuzz_messages)
PYTEST		?= /usr/bin/python3 -m pytest -q -p no:cacheprovider
# Seconds that each fuzzer runs for.
FUZZ_TIME	?= 20

$(out)/tests/%.o: $(src)tests/%.c | $(header)
	$(call say,CC)
	$(quiet)mkdir -p $(@D)
	$(quiet)$(CC) $(CFLAGS) $(CPPFLAGS) $(flags) -MMD -MP -c -o $@ $<

$(unit): $(out)/tests/%: $(out)/tests/%.o $(addprefix $(out)/,$(pure))
	$(call say,LD)
	$(quiet)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(libs)

# Each by itself: a fuzzer throws chance at what it tests, with a seed that it
# prints. With FUZZER=1 (and clang) libFuzzer guides it instead.
ifdef FUZZER
fuzz_main	:=
$(fuzzers): sanitize += -fsanitize=fuzzer
else
fuzz_main	:= $(out)/tests/fuzz_main.o
endif

$(fuzzers): $(out)/tests/%: $(out)/tests/%.o $(fuzz_main) $(addprefix $(out)/,$(objects))
	$(call say,LD)
	$(quiet)$(CC) $(CFLAGS) $(LDFLAGS) $(sanitize) -o $@ $^ $(libs)

.PHONY: check-unit check-fuzz check-programs check-peers check-confined \
	check-uml fuzz
.SECONDARY:

check-unit: $(unit)
	$(quiet)set -e; for test in $^; do $$test; done

check-fuzz: $(fuzzers)
	$(quiet)set -e; for fuzzer in $^; do $$fuzzer $(FUZZ_TIME); done

check-programs: check-unit check-fuzz $(daemon)

check-peers:
	$(quiet)$(MAKE) -f $(firstword $(MAKEFILE_LIST)) -C $(CURDIR) \
		SANITIZE=1 check-programs
	$(quiet)VUB_DAEMON=$(O)/sanitize/vhost-user-balloon VUB_SANITIZED=1 \
		$(PYTEST) $(src)tests/test_peer.py $(src)tests/test_qmp.py

# The sandbox does not take sanitizers, so the daemon as it ships has to show
# that it can do all of it confined.
check-confined: $(daemon)
	$(quiet)VUB_DAEMON=$(daemon) \
		$(PYTEST) $(src)tests/test_peer.py $(src)tests/test_qmp.py

check-uml: $(daemon)
	$(quiet)VUB_DAEMON=$(daemon) $(PYTEST) $(src)tests/test_uml.py

check: check-peers check-confined check-uml

# Coverage-guided, with a corpus that it adds to: make fuzz FUZZ_TIME=3600
fuzz:
	$(quiet)$(MAKE) -f $(firstword $(MAKEFILE_LIST)) -C $(CURDIR) \
		O=$(O)/fuzz SANITIZE=1 FUZZER=1 CC=clang fuzz-run

.PHONY: fuzz-run
fuzz-run: $(fuzzers)
	$(quiet)set -e; for fuzzer in $^; do \
		corpus=$(src)tests/corpus/$$(basename $$fuzzer); \
		mkdir -p $$corpus; \
		$$fuzzer -max_total_time=$(FUZZ_TIME) -print_final_stats=1 \
			-artifact_prefix=$(O)/ $$corpus; \
	done
