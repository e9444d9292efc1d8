# Every recipe of the project; .ci/run calls the same ones. `make` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# `--locked` in CI, so that a Cargo.lock that was not committed fails there.
LOCKED ?=
# What `make serve` passes to the server, and which benchmark `make bench` runs.
ARGS ?=
# How long `make fuzz` runs each target, and how it is built.
FUZZ_SECONDS ?= 3600
FUZZ_PROFILE ?= --release
# Of the artifacts that `make train` exports.
VERSION ?= 5

TOOLS := target/tools
DENY := $(TOOLS)/bin/cargo-deny
DENY_VERSION := 0.20.2
BUF_VERSION := 1.75.0

PYTHON := target/python/bin/python
PYTHON_READY := target/python/ready
PYTHON_REQUIREMENTS := .ci/python-requirements.txt
TRAINING := models/training
TRAINING_PYTHON := .venv/bin/python
# Other ways to serve the models, which `make bench ARGS=baselines` compares with.
BASELINES := target/baselines
BASELINES_PROTOS := $(addprefix hlorank/v1/,graph.proto configuration.proto cost_model_service.proto)
# The messages of the Python client, as descriptors; a test holds them against the .proto files.
CLIENT_MESSAGES := client/python/hlorank/messages.binpb
CLIENT_PROTOS := hlorank/v1/cost_model_service.proto hlorank/v1/model_service.proto hlorank/v1/trace.proto tpu_graphs/tuning.proto
# The fields of HLO that measuring reads or edits, with TpuGraphs' messages around them.
MEASURE := client/python/hlorank/measure
# Folders with Python code, of those that are there.
PYTHON_CODE := $(wildcard $(TRAINING)/pyproject.toml client/python/pyproject.toml tests/baselines/pyproject.toml \
	deploy/pyproject.toml)
PYTHON_FOLDERS := $(patsubst %/pyproject.toml,%,$(PYTHON_CODE))

# The library that the server loads; tests start servers in folders of their own, so the path is absolute.
HLORANK_ONNXRUNTIME ?= $(abspath target/onnxruntime/libonnxruntime.so)
export HLORANK_ONNXRUNTIME
# Or it tells its makers what it runs.
export ORT_DISABLE_TELEMETRY := 1

.PHONY: help setup setup-prometheus setup-proxies build programs test test-rust test-python lint lint-rust lint-deny lint-proto \
	lint-python fuzz demo serve image bench soak baselines-setup client-messages figures train-setup train train-test clean

help: ## list these
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)$$/\1\t\2/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "  make %-17s %s\n", $$1, $$2 }'

setup: ## fetch ONNX Runtime (digest checked, once)
	@[ "$(HLORANK_ONNXRUNTIME)" != "$(abspath target/onnxruntime/libonnxruntime.so)" ] || \
		deploy/setup-onnxruntime.sh target/onnxruntime

setup-prometheus: ## fetch Prometheus and promtool for the tests that want them (Debian's package, once)
	@deploy/setup-prometheus.sh target/prometheus

setup-proxies: ## fetch Envoy and HAProxy for the tests that want them (once)
	@deploy/setup-proxies.sh target/proxies

build: ## build server and command line, optimized
	cargo build --release --workspace --bins $(LOCKED)

test: test-rust test-python ## every test

# With the tests, so that both share the dependencies that they are built of.
programs: ## build server and command line for the tests that run them
	cargo build --workspace --bins --tests $(LOCKED)

test-rust: setup programs ## the Rust tests
	cargo test --workspace $(LOCKED)

test-python: $(PYTHON_READY) ## the Python tests that need neither torch nor jax
	@for folder in $(PYTHON_FOLDERS); do \
		[ -d "$$folder/tests" ] || continue; \
		echo "pytest $$folder"; \
		(cd "$$folder" && PYTHONPATH=.:$(abspath client/python) $(abspath $(PYTHON)) -m pytest -q) || exit 1; \
	done

lint: lint-rust lint-deny lint-proto lint-python ## formatting, clippy, dependencies, protos, Python

lint-rust: ## rustfmt and clippy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets $(LOCKED) -- -D warnings

# Advisories are left out: their database is fetched from the network at every run.
lint-deny: $(DENY) ## licences and sources of dependencies
	$(DENY) check bans licenses sources

lint-proto: ## buf
	@if command -v npx >/dev/null; then \
		echo "buf lint proto"; npx --yes @bufbuild/buf@$(BUF_VERSION) lint proto; \
	else \
		echo "skipped: buf lint proto needs npx (Node.js)"; \
	fi

lint-python: $(PYTHON_READY) ## ruff, and no import circles
	@for folder in $(PYTHON_FOLDERS); do \
		echo "ruff $$folder"; \
		$(PYTHON) -m ruff check --quiet "$$folder" && $(PYTHON) -m ruff format --quiet --check "$$folder" || exit 1; \
		grep -q 'tool.importlinter' "$$folder/pyproject.toml" || continue; \
		echo "import-linter $$folder"; \
		(cd "$$folder" && PYTHONPATH=.:$(abspath client/python) $(abspath target/python/bin/lint-imports) --no-logo --no-cache) || exit 1; \
	done

# All targets at once, one thread each.
fuzz: ## change small inputs and read them, for an hour (FUZZ_SECONDS=60; ARGS=npz picks one target)
	HLORANK_FUZZ_SECONDS=$(FUZZ_SECONDS) cargo test --workspace --test fuzzing $(FUZZ_PROFILE) $(LOCKED) \
		-- --nocapture --test-threads=8 $(ARGS)

demo: setup build ## start a server, rank real configurations, stop it
	deploy/demo.sh

serve: setup ## run the server in the foreground (ARGS='--listen 127.0.0.1:7070')
	cargo run --release --bin hlorank-server $(LOCKED) -- $(ARGS)

image: ## build the container image (docker or podman), or its root file system where neither runs
	@deploy/image/build.sh

bench: setup build $(PYTHON_READY) ## run every benchmark, then print the figures (ARGS='reading' picks one)
	cargo bench --workspace $(LOCKED) --bench '$(or $(ARGS),*)'
	@$(MAKE) --no-print-directory figures

soak: setup ## an hour of mixed load, reloads and killed clients into target/soak (ARGS=60 for a minute)
	HLORANK_SOAK_SECONDS=$(or $(ARGS),3600) cargo test --release --package hlorank-tests --test soak $(LOCKED)

baselines-setup: $(BASELINES)/ready ## install what hlorank is compared with (MLServer, gRPC for Python)

client-messages: $(PYTHON_READY) ## write the messages of the Python client, once a .proto file changed
	$(PYTHON) -m grpc_tools.protoc --proto_path=proto --include_imports --descriptor_set_out=$(CLIENT_MESSAGES) \
		$(CLIENT_PROTOS)
	$(PYTHON) -m grpc_tools.protoc --proto_path=$(MEASURE) --descriptor_set_out=$(MEASURE)/tuning.binpb tuning.proto

figures: ## print the figures that benchmarks and tests measured
	@python3 tests/print_figures.py target/figures

train-setup: ## install what training needs (about 5 GB)
	cd $(TRAINING) && { [ -x $(TRAINING_PYTHON) ] || python3 -m venv .venv; } && $(TRAINING_PYTHON) -m pip install -e '../../client/python[tune]' -e '.[dev]'

# The shipped models: name, task, and what differs from the default.
MODEL ?= layout-xla-cpu tile-xla-cpu layout-xla-cpu-sage tile-xla-cpu-sage
train_options = $(if $(findstring -sage,$(1)),--without-transformer)
TRAIN = cd $(TRAINING) && OMP_NUM_THREADS=1 $(TRAINING_PYTHON) -m hlorank_training

# From the run times that ship, unless others were collected: see models/training/README.md.
train: $(addprefix train-model-,$(MODEL)) ## train the models and export them to models/training/runs/registry (MODEL=tile-xla-cpu picks one)

train-model-%: build
	cd $(TRAINING) && { [ -d data ] || tar -xJf measured.tar.xz; }
	$(TRAIN) train $(firstword $(subst -, ,$*)) --data data/$(firstword $(subst -, ,$*)) \
		--hlorank $(abspath target/release/hlorank) --out runs/$* $(call train_options,$*)
	$(TRAIN) export $(firstword $(subst -, ,$*)) --data data/$(firstword $(subst -, ,$*)) \
		--hlorank $(abspath target/release/hlorank) --run runs/$* --out runs/registry --name $* --version $(VERSION)

train-test: ## the tests of training and of the tuner, with torch and jax
	cd $(TRAINING) && $(TRAINING_PYTHON) -m pytest -q
	cd client/python && PYTHONPATH=$(abspath client/python) $(abspath $(TRAINING))/$(TRAINING_PYTHON) -m pytest -q tests/tune

clean: ## remove what was built and fetched
	rm -rf target

# Unoptimized: it reads one lock file, and builds in half the time.
$(DENY):
	CARGO_PROFILE_DEV_DEBUG=0 cargo install cargo-deny --version $(DENY_VERSION) --locked --debug --quiet \
		--root $(TOOLS) --target-dir $(TOOLS)/build
	rm -rf $(TOOLS)/build

$(PYTHON_READY): $(PYTHON_REQUIREMENTS)
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	python3 -m venv target/python
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --requirement $(PYTHON_REQUIREMENTS)
	@touch $@

$(BASELINES)/ready: tests/baselines/requirements.txt $(addprefix proto/,$(BASELINES_PROTOS))
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	python3 -m venv $(BASELINES)/python
	$(BASELINES)/python/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@mkdir -p $(BASELINES)/generated
	$(BASELINES)/python/bin/python -m grpc_tools.protoc --proto_path=proto --python_out=$(BASELINES)/generated \
		--grpc_python_out=$(BASELINES)/generated $(BASELINES_PROTOS)
	@touch $@
