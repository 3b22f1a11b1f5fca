# SPDX-License-Identifier: BSD-2-Clause
# A thin front on meson and ninja: `make help` says what there is.
BUILD ?= build

.PHONY: all help deps build

all: build

help:
	@echo "make            build"
	@echo "make deps       install what the build needs (apt, as root)"

deps:
	scripts/deps

build: $(BUILD)/build.ninja
	ninja -C $(BUILD)

$(BUILD)/build.ninja:
	meson setup $(BUILD)
