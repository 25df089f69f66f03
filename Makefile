# Two commands on a fresh machine: `make bench` and `make test`. Both install what is missing first.

ARGS ?= write --size 1M
TEST_ARGS ?=
# For compare-switch: seconds of each run, and rounds. For the others, `--help` lists what there is.
COMPARE_ARGS ?=
SCALE_ARGS ?=
GATE_ARGS ?=
RESULTS = $(or $(CARGO_TARGET_DIR),target)
PREFIX ?= /usr/local
PROFILE ?= release

.PHONY: help setup bench test compare compare-switch scale gate check install uninstall

help:
	@echo 'make bench                      install what is missing, build, run: dcp-bench $(ARGS)'
	@echo 'make bench ARGS="write -s 64K"  the same with other arguments'
	@echo 'make test                       install what is missing, run every test'
	@echo 'make compare                    DCP beside memcpy, bare mbufs, kernel TCP and UCX'
	@echo 'make scale                      cost of a packet as queue pairs, depth, cores and hosts grow'
	@echo 'make compare-switch             what the switch forwards on one core, beside dpdk-testpmd'
	@echo 'make gate                       instructions of the hot path, beside the committed counts'
	@echo 'make install PREFIX=/usr/local  build and install libdcp for C, and dcp-bench'
	@echo 'make uninstall PREFIX=...       remove them again'
	@echo 'make check                      what CI does: format, lints, tests, docs, a short run'

setup:
	@scripts/setup

bench: setup
	@cargo build --release --package dcp-bench
	@cargo run --release --quiet --package dcp-bench -- $(ARGS)

test: setup
	cargo test --workspace $(TEST_ARGS)
	cargo test --package dcp-core --features test-faults --test broken $(TEST_ARGS)

compare: setup
	@cargo build --release --package dcp-perf --bin compare --package dcp-bench
	@cargo run --release --quiet --package dcp-perf --bin compare -- \
		--json $(RESULTS)/compare.json --svg $(RESULTS)/compare.svg $(COMPARE_ARGS)

scale: setup
	@cargo build --release --package dcp-perf --bin scale --package dcp-bench
	@cargo run --release --quiet --package dcp-perf --bin scale -- \
		--json $(RESULTS)/scale.json --svg $(RESULTS)/scale.svg $(SCALE_ARGS)

compare-switch: setup
	@cargo build --release --package dcp-perf --bin compare-switch
	@cargo run --release --quiet --package dcp-perf --bin compare-switch -- $(COMPARE_ARGS)

gate: setup
	@scripts/gate $(GATE_ARGS)

check:
	@.ci/run

install: setup
	@PREFIX='$(PREFIX)' PROFILE='$(PROFILE)' DESTDIR='$(DESTDIR)' scripts/install install

uninstall:
	@PREFIX='$(PREFIX)' DESTDIR='$(DESTDIR)' scripts/install uninstall
