# A fresh machine needs no more than `make demo` and `make test`.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.set-up
WHOLE := $(VENV)/.set-up-whole
NATIVE := $(VENV)/.set-up-native
NATIVE_CODE := $(wildcard cpp/pyproject.toml cpp/CMakeLists.txt cpp/cmake/*.cmake cpp/include/rl4sys/*.hpp cpp/src/policy/* \
	cpp/src/weights/* cpp/python/* cpp/python/rl4sys_native/*.py)
RUN := $(BIN)/python -m
STORM ?= 1
STORMS := tests/faults tests/hostile tests/records tests/checkpoints tests/client/test_delivery_simulation.py tests/cpp/test_shared_library.py
CPP_CODE := 'cpp/*.cpp' 'cpp/*.hpp' 'cpp/*.h' 'cpp/*.c' 'cpp/*.inc'

# Tests start hundreds of processes, which should not compile every module again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test check types fast lint cpp-ahead format test-docs test-learning test-cluster test-faults bench bench-peers docs docs-site screenshots proto clean
.PHONY: cpp cpp-test cpp-docs cpp-sanitize wheel release-check

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk 'BEGIN {FS = ":.*## "} {printf "  \033[1mmake %-14s\033[0m %s\n", $$1, $$2}'

setup: $(WHOLE) ## Create .venv with everything in it
	@$(MAKE) --no-print-directory $(NATIVE)

# torch is installed first, so that no other package pulls in another build of it.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), f"Python 3.11 or newer is needed; this is {sys.version}"'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
		echo "Could not create a virtual environment; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "Installing into $(VENV) (a few minutes the first time) …"
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[train]'
	@touch $(STAMP)

# Optional packages of environments, exports and loggers, and developer tools: the tests use all of them.
$(WHOLE): $(STAMP)
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[whole,dev]'
	@touch $(WHOLE)

# The native runtime of policies, where there is a compiler; everything works without it.
$(NATIVE): $(NATIVE_CODE) | $(STAMP)
	@cpp/python/install.sh $(BIN)/python $(NATIVE)

demo: $(STAMP) $(NATIVE) ## Learn Lunar Lander through a training server, live, in two minutes; ends with a plot
	@$(BIN)/python examples/demo

check: setup ## Format, lint, types, layers and the fast tests: about two minutes
	@$(MAKE) --no-print-directory -j 2 types fast

types: $(WHOLE)
	@$(BIN)/mypy

fast: lint
	@$(RUN) pytest -n 2 --dist worksteal -m "not slow and not learning and not faults and not cluster"

lint: $(WHOLE)
	@$(BIN)/ruff format --check --quiet . || { echo "Run: make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports --no-logo > /dev/null || { $(BIN)/lint-imports; exit 1; }
	@$(BIN)/python proto/lint.py
	@! command -v clang-format > /dev/null || git ls-files -co --exclude-standard $(CPP_CODE) | \
		xargs --no-run-if-empty clang-format --dry-run -Werror || { echo "Run: make format"; exit 1; }

format: $(WHOLE) ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .
	@! command -v clang-format > /dev/null || git ls-files -co --exclude-standard $(CPP_CODE) | \
		xargs --no-run-if-empty clang-format -i

# Packages are installed on one core while C++ is compiled on the other.
test: ## Everything that must pass before a change lands
	@$(MAKE) --no-print-directory -j 2 setup cpp-ahead
	@$(MAKE) --no-print-directory check
	@if cpp/packages.sh; then $(MAKE) --no-print-directory cpp-test; else echo "The C++ client is skipped."; fi
	@tests/ui/packages.sh || echo "Tests in a browser are skipped."
	@$(RUN) pytest -n 2 --dist worksteal -m "slow and not learning and not faults and not cluster"

cpp-ahead:
	@! cpp/packages.sh > /dev/null || $(MAKE) --no-print-directory cpp

cpp: ## Build the C++ client; as root, Debian's packages are installed first
	@cpp/packages.sh
	@cd cpp && cmake --preset release > /dev/null
	@cd cpp && cmake --build --preset release

cpp-test: cpp ## Build the C++ client and run its tests
	@cd cpp && ctest --preset release

cpp-docs: ## Write the reference of the C++ headers to cpp/build/docs/html; any warning is an error
	@command -v doxygen > /dev/null || { echo "doxygen is missing. On Debian: sudo apt-get install --no-install-recommends doxygen" >&2; exit 1; }
	@cd cpp && mkdir -p build && doxygen Doxyfile && echo "Written: cpp/build/docs/html/index.html"

cpp-sanitize: ## Run the C++ tests under the address, undefined-behaviour and thread sanitizers
	@cpp/packages.sh
	@cd cpp && for kind in asan tsan; do \
		cmake --preset $$kind > /dev/null && cmake --build --preset $$kind && ctest --preset $$kind || exit 1; done

test-docs: $(WHOLE) ## The pages alone: links, quoted commands, code, English
	@$(RUN) pytest -n 2 tests/docs

test-learning: $(WHOLE) ## Train to the published scores that two cores can reach; about half an hour
	@$(RUN) pytest -n 2 -m learning -s

# moto needs an older python-dateutil than constraints.txt names, so the clouds' packages have their own environment.
# What Ray Tune adds to the packages of the tests lies beside it: pandas would change what Run.metrics() returns.
.venv-cluster/.set-up: pyproject.toml constraints.txt | $(WHOLE)
	@test -x .venv-cluster/bin/python || $(PYTHON) -m venv .venv-cluster
	@.venv-cluster/bin/pip install --quiet --disable-pip-version-check "ray[default]==$$($(BIN)/python -c \
		'from importlib.metadata import version; print(version("ray"))')" 'moto[ec2,iam,s3,sts,server]' boto3 google-api-python-client
	@rm -rf .venv-cluster/tune
	@$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt --no-deps --target .venv-cluster/tune pandas tensorboardX
	@touch $@

test-cluster: $(WHOLE) .venv-cluster/.set-up ## Real Ray clusters, SLURM, and clouds that are faked on loopback; ten minutes
	@RL4SYS_CLUSTER_ENVIRONMENT=$(CURDIR)/.venv-cluster $(RUN) pytest -n 2 --dist loadfile -m cluster

# The same tests as in `make test`, with far more trials.
test-faults: $(WHOLE) ## Fault tests with many trials: kills, partitions, sanitizers; hours, or STORM=0.01 for minutes
	@RL4SYS_STORM=$(STORM) $(RUN) pytest -n 2 -m "not learning and not cluster" $(wildcard $(STORMS))
	@if cpp/packages.sh; then $(MAKE) --no-print-directory cpp-sanitize; else echo "The C++ client is skipped."; fi

bench: $(WHOLE) ## Compare with other libraries and with bare operations in the same run; about an hour
	@$(BIN)/python benchmarks/run_all.py

bench-peers: $(WHOLE) ## RL4Sys beside other libraries in systems that ask for decisions; an hour or more, peers in venvs of their own
	@$(BIN)/python benchmarks/side_by_side/bench_peers.py

docs-site: $(WHOLE) ## Build the documentation site into src/rl4sys/site, for `rl4sys docs` and the wheel; needs no network
	@$(BIN)/python docs/site/build.py $(if $(COMPLETE),--complete)

screenshots: $(WHOLE) ## Write the screenshots of docs/ui.md, from runs and a server that it starts; needs chromium
	@tests/ui/packages.sh
	@$(BIN)/python docs/write_screenshots.py

docs: $(WHOLE) ## Write docs/configuration.md and docs/server.md from the docstrings of the configs
	@$(BIN)/python docs/write_reference.py

proto: ## Write src/rl4sys/wire/generated from proto/, with a release that works with protobuf 6 and 7
	@test -x .venv-proto/bin/python || $(PYTHON) -m venv .venv-proto
	@.venv-proto/bin/pip install --quiet --disable-pip-version-check grpcio-tools==1.72.1 'protobuf<7' 'setuptools<81'
	@.venv-proto/bin/python proto/generate.py

# In a virtual environment of its own: what the wheel forgets to require is not there by chance.
wheel: ## Build the wheel and the source archive into dist/, and import the light client from the wheel
	@rm -rf dist .venv-wheel && $(PYTHON) -m venv .venv-wheel
	@.venv-wheel/bin/pip install --quiet --disable-pip-version-check build
	@.venv-wheel/bin/python -m build --outdir dist . > /dev/null
	@.venv-wheel/bin/pip install --quiet --disable-pip-version-check dist/rl4sys-*.whl
	@cd / && $(CURDIR)/.venv-wheel/bin/python $(CURDIR)/.ci/import_wheel.py

release-check: ## Check that TAG, the version, the changelog and the citation agree
	@$(PYTHON) .ci/release_check.py "$(TAG)"

clean: ## Remove the virtual environments and caches
	@rm -rf $(VENV) .venv-proto .venv-wheel .venv-cluster dist benchmarks/.venv-* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .cache build src/rl4sys/site cpp/build
