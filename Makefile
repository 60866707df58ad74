# `make demo` and `make test` need Python 3.11+ and git; everything else is installed into .venv.
# CONTRIBUTING.md has the same as plain pip commands.

.DEFAULT_GOAL := help
SHELL := /bin/sh

VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input install -qq
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))

# The first interpreter on PATH that is new enough. To choose another: make test PYTHON=/path/to/python3.11
PYTHON ?= $(shell for python in python3 python3.11 python3.12 python3.13 python3.14; do \
	$$python -c '$(NEW_ENOUGH)' 2>/dev/null && echo $$python && break; done)

.PHONY: help demo test docs examples bench notebooks binder clean

help:
	@echo "make demo       run notebooks/demo.py: examples on the embedded ledger, no network needed"
	@echo "make test       run every check: lint, types, import rules, documentation, notebooks, tests"
	@echo "make docs       build the documentation into build/docs"
	@echo "make examples   run the examples in README.md, docs/ and docstrings, and store their outputs"
	@echo "make bench      run the benchmarks, and print a table of their targets"
	@echo "make notebooks  run the notebooks, and store their outputs"
	@echo "make binder     try binder/ in a fresh environment, as its builder would"
	@echo "make clean      remove the caches, and .venv if make made it"

demo: $(VENV)/core.stamp
	@$(BIN)/python notebooks/demo.py

test: $(VENV)/dev.stamp
	@$(BIN)/python tools/check.py

docs: $(VENV)/dev.stamp
	@$(BIN)/python tools/check.py docs

examples: $(VENV)/dev.stamp
	@$(BIN)/python tools/refresh_docs.py

bench: $(VENV)/dev.stamp
	@$(BIN)/python tools/bench.py

notebooks: $(VENV)/dev.stamp
	@$(BIN)/python tools/refresh_notebooks.py

binder:
	@tools/binder_smoke.sh

clean:
	if [ -s $(VENV)/made.stamp ]; then rm -rf $(VENV); fi
	rm -rf build dist docs/api docs/tutorials .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment that is there already is used as it is, or refused, and never emptied: its stamp
# is empty.
$(VENV)/made.stamp:
	@if [ -e $(VENV) ]; then \
		if ! $(BIN)/python -c '$(NEW_ENOUGH)' 2>/dev/null || ! $(BIN)/python -m pip --version >/dev/null 2>&1; then \
			echo "$(VENV) is there already, and has no Python 3.11 or newer with pip." \
				"Remove it, or choose another: make $(MAKECMDGOALS) VENV=other" >&2; exit 1; \
		fi; \
		echo "using the environment in $(VENV)"; \
		touch $@; \
	else \
		python="$(PYTHON)"; \
		if [ -z "$$python" ] || ! "$$python" -c '$(NEW_ENOUGH)'; then \
			echo "ledgerkit needs Python 3.11 or newer$${python:+, and $$python is not}." \
				"Choose one: make $(MAKECMDGOALS) PYTHON=/path/to/python3.11" >&2; exit 1; \
		fi; \
		echo "making $(VENV) with $$("$$python" --version)"; \
		"$$python" -m venv $(VENV) && echo made >$@; \
	fi

$(VENV)/core.stamp: pyproject.toml | $(VENV)/made.stamp
	@echo "installing ledgerkit"
	@$(PIP) -e . matplotlib  # draws the plots of the demo
	@touch $@

# Not compiled: the checks compile what they import, a third of the modules, on all cores.
$(VENV)/dev.stamp: pyproject.toml | $(VENV)/made.stamp
	@echo "installing ledgerkit and its test dependencies (a minute or two, the first time)"
	@$(PIP) --no-compile -e ".[dev]"
	@touch $(VENV)/core.stamp $@
