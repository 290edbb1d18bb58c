# One verb, one command, the same in CI. `make help` lists them.
# Needs Python >= 3.11, make, openssl >= 3 (for tests) and a package registry; everything else is installed into .venv.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
E2E    ?= --numprocesses=3 --dist=loadfile
# What of E2E makes a part of the tier of it: anything but how it runs. A part cannot use all rights.
E2E_PART = $(strip $(filter-out --numprocesses=% --dist=% --durations=% -q -v,$(E2E)))
CASES  ?= $(wildcard tests/conformance/cases/*.jsonl)
STAMP  := $(VENV)/.installed
LOCK   := uv pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --no-annotate --python-version 3.11

export PATH := $(abspath $(BIN)):$(PATH)

.DEFAULT_GOAL := help
.PHONY: chaos help setup fmt lint type test conformance oracle e2e bench bench-start bench-real demo docs lock check clean

help: ## list the verbs
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed, this is " + sys.version.split()[0] + "; try make PYTHON=python3.12 setup")'
	@echo "making $(VENV) out of requirements.lock"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

setup: $(STAMP) ## make .venv out of the locked requirements; all other verbs do so first, which takes minutes on a slow line

fmt: setup ## format and mend what a tool can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .

lint: setup ## all lint rules, the layers, the layout of operator/
	$(BIN)/ruff format --check --quiet .
	$(BIN)/ruff check --quiet .
	$(BIN)/lint-imports
	$(BIN)/python tests/layout.py

type: setup ## mypy, strict
	$(BIN)/mypy

test: lint type ## lint, types, layers, unit, properties, conformance (own cases), scenarios, contract on the embedded server
	$(BIN)/pytest tests/unit tests/properties tests/conformance tests/scenarios tests/contract tests/bench tests/docs

conformance: setup ## cases as data, of all kinds: make conformance CASES="FILE.jsonl[.gz] …"
	$(BIN)/python -m tests.conformance $(CASES)

oracle: setup ## random problems and CEL expressions, ours against upstream's own code (built once): ALLOCATOR="--count=50000 --seed=1" CEL="--count=…"
	$(BIN)/python -m tests.oracle allocator $(ALLOCATOR)
	$(BIN)/python -m tests.oracle cel $(CEL)

e2e: setup ## contract suite and end-to-end tier on a real control plane (builds it once); KEEP=1 leaves one up to look at
ifdef KEEP
	$(BIN)/python -m tests.e2e.harness
else
	$(BIN)/python -m tests.e2e.harness.build
	@rm -rf .e2e-rights
	DRA_E2E_RIGHTS=$(CURDIR)/.e2e-rights $(BIN)/pytest tests/e2e $(E2E)
ifeq ($(E2E_PART),)
	$(BIN)/python -m tests.e2e.harness.rights .e2e-rights
endif
	$(BIN)/python -m tests.e2e.harness.contract
endif

chaos: setup ## a seeded storm on a real control plane, and an independent check: SEED=1 MINUTES=3; a guard off: CHAOS="--without rotate"
	$(BIN)/python -m tests.chaos $(CHAOS)

bench: setup ## step counts; selectors a device; calls of the allocator; pods placed per second on the embedded server, and their cost: BENCH="--pods=500 --repeat=3 …"
	$(BIN)/pytest tests/bench/test_steps.py tests/bench/test_hard.py -q -s
	$(BIN)/python -m tests.bench.selectors
	$(BIN)/python -m tests.bench.allocations
	$(BIN)/python -m tests.bench.reporting
	$(BIN)/python -m tests.bench $(BENCH)

bench-start: setup ## how long the operator takes to get ready among 10,000 claims, 5,000 pods, 2,000 slices
	$(BIN)/python -m tests.bench.start_up $(BENCH)

bench-real: setup ## the same on a real control plane (built once), beside stock kube-scheduler
	$(BIN)/python -m tests.bench.real $(BENCH)

demo: setup ## the main job on the embedded API server, in under a minute once .venv is there
	$(BIN)/python -m dra_operator.testing.demo

docs: setup ## write the pages in docs/ that are made out of code
	$(BIN)/python -m tests.docs

lock: ## renew the three locks (needs uv): of all there is, and out of it what the image's tools and the image itself need
	$(LOCK) --extra testing --group dev pyproject.toml -o requirements.lock
	$(LOCK) -c requirements.lock --group build -o requirements-build.lock
	$(LOCK) -c requirements.lock pyproject.toml -o requirements-runtime.lock

check: test e2e ## everything that a reviewer runs

clean: ## remove what the verbs have made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .e2e-rights
