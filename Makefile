# SPDX-License-Identifier: BSD-2-Clause
# A thin front on meson and ninja: `make help` says what there is.
BUILD ?= build
DESTDIR ?=
SECONDS ?= 60
SEEDS ?= 10000

.PHONY: all help deps build check demo soak canaries bench fuzz sanitize install clean

all: build

help:
	@echo "make            build, into $(BUILD)/"
	@echo "make deps       install the Debian packages that are missing (as root; else name them)"
	@echo "make check      build, run all tests, count them"
	@echo "make demo       bridge two namespaces, move the polling under load, print what that did"
	@echo "make soak       run SEEDS=$(SEEDS) random scenarios on the virtual machine, on all CPUs"
	@echo "make canaries   plant known bugs one by one; print how many scenarios each takes to catch"
	@echo "make bench      run the benchmarks"
	@echo "make sanitize   run the tests under ASan+UBSan and under TSan"
	@echo "make fuzz       run all fuzzers at once, for SECONDS=$(SECONDS)"
	@echo "make install    install (DESTDIR= is honoured)"
	@echo "make clean      remove what was built"

deps:
	@scripts/deps

$(BUILD)/build.ninja:
	@scripts/deps build
	meson setup $(BUILD)

build: $(BUILD)/build.ninja
	ninja -C $(BUILD)

check: deps build
	@exec scripts/check $(BUILD) $(if $(COUNT),--count "$(COUNT)")

# Tests are more than half of what there is to build, and the demo needs none of them.
demo: $(BUILD)/build.ninja
	ninja -C $(BUILD) src/cmd/napier $(wildcard specs/*.conf)
	$(BUILD)/src/cmd/napier demo

soak: build
	$(BUILD)/src/cmd/napier sim --count $(SEEDS)

canaries: build
	$(BUILD)/tests/virtual/canaries

bench: build
	meson test -C $(BUILD) --no-rebuild --benchmark --verbose

sanitize: deps
	@scripts/sanitize

fuzz: deps
	@scripts/fuzz $(SECONDS)

install: build
	meson install -C $(BUILD) --no-rebuild $(if $(DESTDIR),--destdir "$(abspath $(DESTDIR))",&& ldconfig)

clean:
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz
