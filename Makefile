# Every target sets up its own environment first, so `make run` works on a fresh clone with only Python 3.11+ and make.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup ui ui-shots docs run test proof check check-lint check-types check-style check-ui bench bench-ui bench-peers soak chaos clean

# Tests also wait, for servers and processes, so two more of them at a time than there are cores.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 2)
SEEDS ?= 100000
RUNS ?= 1000
BIN := .venv/bin
STAMP := .venv/.setup-done
SOAKED := tests/goal/test_random_patches.py tests/goal/test_replan.py tests/contract/test_judge.py tests/crash/test_kill.py
SHOW_DEMO := $(BIN)/weft ui --url sqlite:///build/demo/demo.db

# An environment that happens to be active must not be the one that is filled.
unexport VIRTUAL_ENV
export UV_PROJECT_ENVIRONMENT := .venv

help:
	@echo "make setup         make .venv from uv.lock"
	@echo "make ui            build the web UI, if its sources changed"
	@echo "make ui-shots      take the pictures of the documentation again"
	@echo "make docs          build the documentation as a site, into build/site"
	@echo "make run           play the demo: a run killed with kill -9 goes on"
	@echo "make test          the test suite, with a sample of every costly proof; the style is in make check"
	@echo "make proof         the costly proofs: worlds, sweeps, hostile documents, type checkers"
	@echo "make check         lint, types, import contracts, style; under a minute"
	@echo "make check-ui      types, lint and pure tests of the web UI; part of make check"
	@echo "make bench         benchmarks of Weft, the raw limit, and the peers that are installed"
	@echo "make bench-ui      what people wait for in the web UI, in a real browser (a calm machine)"
	@echo "make bench-peers   install the peers, each in an environment of its own"
	@echo "make soak          the simulated world, SEEDS=$(SEEDS), and all other random worlds; hours"
	@echo "make chaos         hosts killed and frozen over a Postgres that stops and cuts sessions, RUNS=$(RUNS)"
	@echo "make clean         remove all that was made"

setup: $(STAMP)

# uv is taken from the PATH, or fetched with pip into build/, where it disturbs no other installation.
$(STAMP): pyproject.toml uv.lock
	@python=; for name in $(PYTHON) python3 python3.14 python3.13 python3.12 python3.11; do \
	    python=$$($$name -c 'import sys; (3, 11) <= sys.version_info < (3, 15) or sys.exit(1); print(sys.executable)' 2>/dev/null) && break; \
	done; \
	[ -n "$$python" ] || { echo "Weft needs Python 3.11 to 3.14; set PYTHON=/path/to/python" >&2; exit 1; }; \
	uv=$$(command -v uv || true); \
	if [ -z "$$uv" ]; then \
	    uv=build/uv/bin/uv; \
	    [ -x $$uv ] || $$python -m pip install -qq --target build/uv "uv>=0.9"; \
	fi; \
	WEFT_SKIP_UI=1 $$uv sync --frozen --quiet --compile-bytecode --no-python-downloads --python "$$python"
	@touch $@

ui: setup
	@$(BIN)/python ui/build.py

# The demo keeps its database beside it, so it plays in a directory of its own.
run: ui
	@mkdir -p build/demo && cd build/demo && ../../$(BIN)/python ../../examples/demo.py
	@echo "      or see both runs in a browser: $(SHOW_DEMO)"
	@if [ -t 0 ] && [ -t 1 ]; then \
	    read -r -p "      Open it now? [y/N] " answer || true; \
	    case "$${answer:-}" in [yY]*) $(SHOW_DEMO);; esac; \
	fi

# Takes the pictures of the documentation again; look at the difference before you commit it.
ui-shots: ui
	$(BIN)/python -m tests.ui.shots

# Offline, and every warning is an error.
docs: setup
	@$(BIN)/python website/build.py

# Tests start hundreds of processes: each would compile all of Weft again if nothing compiled were kept.
test proof: export PYTHONDONTWRITEBYTECODE :=
test: ui
	$(BIN)/pytest -n $(JOBS) -m "not proof" --ignore=tests/style

proof: ui
	WEFT_PROOF=1 $(BIN)/pytest -n $(JOBS) --timeout 900 -m proof

# Two at a time: most of them use one core.
check: setup
	@$(MAKE) --no-print-directory -j 2 check-ui check-style check-types check-lint

check-lint: setup
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports

check-types: setup
	$(BIN)/mypy

check-style: ui
	$(BIN)/pytest -q tests/style

check-ui: ui
	$(BIN)/python ui/check.py

bench: setup
	$(BIN)/python -m bench.run

bench-ui: setup ui
	$(BIN)/python -m bench.ui.run

bench-peers: setup
	$(BIN)/python -m bench.peers.setup

soak: setup
	$(BIN)/python -m tests.sim.soak $(SEEDS)
	$(BIN)/python -m tests.schedule.soak
	$(BIN)/python -m tests.forks.soak
	$(BIN)/python -m tests.graph.patch_soak
	$(BIN)/python -m tests.agents.budget_soak
	$(BIN)/python -m tests.hot.model_soak
	WEFT_PROOF=soak $(BIN)/pytest -n $(JOBS) --timeout 0 $(SOAKED)

chaos: setup
	$(BIN)/python -m tests.chaos.storm $(RUNS)
	$(BIN)/python -m tests.chaos.cuts

clean:
	rm -rf .venv build dist ui/node_modules src/weft/server/web/static .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
