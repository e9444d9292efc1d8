# The recipes for people; `make` lists them. `.ci/checks.mk` has the parts of `test` and `lint`, and what they need.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# `--locked` in CI, which fails if Cargo.lock is not up to date.
LOCKED ?=
# Arguments of a recipe: the flags of the server for `make serve`, the benchmark for `make bench`.
ARGS ?=
# How the programs are built: `release` quickly, `dist` for what is handed on, optimized across crates, which builds longer.
PROFILE ?= release
# The processor that `make wheel` builds for, if it is not that of this machine.
TARGET ?=
# How long `make fuzz` runs each target.
FUZZ_SECONDS ?= 3600
# Number of calls in a row, each with something new, that `make attack` makes.
ATTACK_ROW ?= 2000
# Version of the artifacts that `make train` exports.
VERSION ?= 9

# The library that the server loads. The path is absolute because tests start servers in other folders.
HLORANK_ONNXRUNTIME ?= $(abspath target/onnxruntime/libonnxruntime.so)
export HLORANK_ONNXRUNTIME
# Turns off the telemetry of ONNX Runtime.
export ORT_DISABLE_TELEMETRY := 1

include .ci/checks.mk

.PHONY: help setup build demo serve test lint bench soak attack fuzz profile wheel image release docs messages train clean

help: ## list the recipes
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)$$/\1\t\2/p' Makefile | awk -F'\t' '{ printf "  make %-10s %s\n", $$1, $$2 }'

setup: ## fetch ONNX Runtime, checking its digest, if it is missing
	@[ "$(HLORANK_ONNXRUNTIME)" != "$(abspath target/onnxruntime/libonnxruntime.so)" ] || \
		deploy/setup-onnxruntime.sh target/onnxruntime

build: ## build the server and the command line, optimized (PROFILE=dist optimizes more, and takes longer)
	cargo build --profile $(PROFILE) --workspace --bins $(LOCKED)

# The profile of the tests, but nothing of ours is optimized, which nearly halves the build; a demo ranks a few hundred configurations.
demo: PROFILE = dev
demo: export CARGO_PROFILE_DEV_OPT_LEVEL := 0
demo: setup build ## start a server, rank measured configurations, stop the server
	PROGRAMS=target/$(subst dev,debug,$(PROFILE)) deploy/demo.sh

serve: setup ## run the server in the foreground (ARGS='--listen 127.0.0.1:7070')
	cargo run --release --bin hlorank-server $(LOCKED) -- $(ARGS)

test: test-rust test-doc test-python ## run every test that needs neither torch nor jax

lint: lint-rust lint-deny lint-proto lint-python ## check formatting, lints, dependencies and protos

bench: setup build $(PYTHON_READY) ## run every benchmark and print the figures (ARGS=engine picks one)
	cargo bench --workspace $(LOCKED) --bench '$(or $(ARGS),*)'
	@python3 tests/print_figures.py target/figures

soak: setup ## run mixed load, reloads and killed clients for an hour, results in target/soak (ARGS=60 for a minute)
	HLORANK_SOAK_SECONDS=$(or $(ARGS),3600) cargo test --release --package hlorank-tests --test soak $(LOCKED)

attack: setup build ## attack a server in every way, and print what it took (ATTACK_ROW=100; ATTACK_CASES=columns; ARGS=walk)
	ATTACK_ROW=$(ATTACK_ROW) cargo test --release --package hlorank-tests --test attacks $(LOCKED) -- --nocapture $(ARGS)

# Every target has a process. Inputs with new coverage are kept in target/fuzz/corpus.
fuzz: $(CARGO_FUZZ) ## fuzz every target with coverage feedback, for an hour (FUZZ_SECONDS=60; ARGS=npz picks one)
	$(CARGO_FUZZ) build $(FUZZ_OPTIONS)
	@mkdir -p $(addprefix target/fuzz/corpus/,$(FUZZ_TARGETS))
	printf '%s\n' $(or $(ARGS),$(FUZZ_TARGETS)) | xargs -P 0 -I TARGET $(CARGO_FUZZ) run $(FUZZ_OPTIONS) TARGET \
		target/fuzz/corpus/TARGET fuzz/corpus/TARGET -- -max_total_time=$(FUZZ_SECONDS) -max_len=65536 \
		-rss_limit_mb=1024 -timeout=60 -print_final_stats=1

profile: setup build $(INFERNO) $(BASELINES)/ready ## profile a server: a flame graph and a table of operators (ARGS='FILE MODEL' picks a workload)
	tests/profile.sh $(ARGS)

wheel: PROFILE = dist
wheel: build $(WHEEL_READY) ## build the Python wheels, of which one has the programs and the models (TARGET=aarch64-unknown-linux-gnu crosses)
	@rm -f target/wheel/*.whl
ifdef TARGET
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
		cargo build --profile $(PROFILE) --workspace --bins --target $(TARGET) $(LOCKED)
endif
	$(WHEEL_PYTHON) deploy/wheel/build.py target/wheel $(addsuffix /$(PROFILE),$(addprefix target/,$(TARGET)) target)

image: ## build the container image with docker or podman, or only its root file system if neither runs
	@deploy/image/build.sh

release: PROFILE = dist
release: wheel setup ## write the files of a release into target/release-files: wheels, archives, manual pages, checksums, SBOM, notes
	rm -rf target/image target/release-files
	deploy/image/root.sh target/image
	@mkdir -p target/release-files
	$(WHEEL_PYTHON) deploy/release/release.py target/release-files

docs: $(SITE_READY) ## build the documentation as a site into target/site/html, checking its links
	$(SITE_PYTHON) deploy/site/build.py target/site/html

messages: $(PYTHON_READY) ## generate the messages of the Python client after a change of a .proto file, and its blocking calls
	$(PYTHON) client/python/generate.py
	$(PYTHON) -m grpc_tools.protoc --proto_path=$(MEASURE) --descriptor_set_out=$(MEASURE)/tuning.binpb tuning.proto

# The shipped models, and the options in which they differ. Of three seeds, 0 has the best validation for IREE's tiles.
MODEL ?= layout-xla-cpu layout-xla-cpu-sage tile-iree-cpu fusion-xla-cpu
train_task = $(firstword $(subst -, ,$(1)))
train_data = data/$(train_task)$(if $(findstring -iree-,$(1)),-iree)
train_options = $(if $(findstring -sage,$(1)),--architecture graphsage-segment) $(if $(findstring -iree-,$(1)),--seed 0)
TRAIN = cd $(TRAINING) && OMP_NUM_THREADS=1 $(TRAINING_PYTHON) -m hlorank_training

# Trains on the shipped run times unless others were collected: see models/training/README.md.
train: $(TRAINING_READY) $(addprefix train-model-,$(MODEL)) ## train the models and export them to models/training/runs/registry (MODEL=tile-iree-cpu picks one)

train-model-%: build $(TRAINING_READY)
	cd $(TRAINING) && for runs in measured*.tar.xz; do tar --skip-old-files -xJf $$runs; done
	$(TRAIN) train $(call train_task,$*) --data $(call train_data,$*) \
		--hlorank $(abspath target/$(PROFILE)/hlorank) --out runs/$* $(call train_options,$*)
	$(TRAIN) export $(call train_task,$*) --data $(call train_data,$*) \
		--hlorank $(abspath target/$(PROFILE)/hlorank) --run runs/$* --out runs/registry --name $* --version $(VERSION)

clean: ## remove everything that was built or fetched
	rm -rf target
