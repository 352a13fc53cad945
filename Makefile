# Every target sets up what it needs: a virtual environment in .venv with the package and its extra
# `all` installed as users get them (not editable), rebuilt when a source changed. Builds are
# incremental, in build/.

PYTHON ?= python3
VENV ?= .venv
# Extra arguments, e.g. make test ARGS="-k kernels", make reproduce ARGS=--quick.
ARGS ?=

ifeq ($(OS),Windows_NT)
PY := $(VENV)/Scripts/python
else
PY := $(VENV)/bin/python
endif

# Folders too, so that a deleted file counts as a change.
SOURCES := $(shell find src -name __pycache__ -prune -o -name '*.py[co]' -prune -o -print) CMakeLists.txt

.DEFAULT_GOAL := help
.PHONY: help install demo cluster-demo reproduce test test-botorch fuzz bench compare lint format docs clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(VENV)/installed.stamp  ## Build the package and install it in .venv

demo: $(VENV)/installed.stamp  ## A small end-to-end run on the terminal
	$(PY) -m lsgp demo

cluster-demo: $(VENV)/installed.stamp  ## A cluster on this machine, in a minute
	$(PY) benchmarks/cluster.py demo $(ARGS)

reproduce: $(VENV)/installed.stamp  ## The paper's figures and tables (ARGS=--quick: minutes)
	$(PY) -m reproduction --deep-gp benchmarks/deep_gp.py $(ARGS)

test: $(VENV)/installed.stamp  ## Run the tests
	$(PY) -m pytest -q -n auto --dist worksteal tests $(ARGS)

test-botorch: $(VENV)/installed.stamp $(VENV)/botorch.stamp  ## Run the tests of lsgp.botorch: installs torch
	$(PY) -m pytest -q tests/botorch/test_botorch.py tests/project/test_docs.py -k "botorch or optimization" $(ARGS)

fuzz: $(VENV)/installed.stamp  ## Hostile fits, damaged files, interrupts and kills: ten minutes
	$(PY) -m fuzz $(ARGS)

bench: $(VENV)/installed.stamp  ## Measure the speed of the native core
	$(PY) benchmarks/core_speed.py

compare: $(VENV)/installed.stamp $(VENV)/peers.stamp  ## Compare with other methods: hours, resumable
	$(PY) benchmarks/run.py comparison $(ARGS)
	$(PY) benchmarks/comparison_report.py

lint: $(VENV)/installed.stamp  ## Check style, format and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

format: $(VENV)/tools.stamp  ## Format, and fix what ruff can
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

docs: $(VENV)/installed.stamp $(VENV)/docs.stamp  ## Build the documentation, warnings are errors
	@if [ -f docs/conf.py ]; then \
	  $(PY) -m sphinx -W --keep-going -b html docs build/docs; \
	else \
	  echo "There is no documentation yet."; \
	fi

clean:  ## Remove everything that was made here
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/created.stamp:
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade "pip>=25.1"
	@touch $@

$(VENV)/tools.stamp: $(VENV)/created.stamp pyproject.toml
	$(PY) -m pip install --quiet --group dev
	@touch $@

$(VENV)/docs.stamp: $(VENV)/created.stamp pyproject.toml
	$(PY) -m pip install --quiet --group docs
	@touch $@

$(VENV)/botorch.stamp: $(VENV)/installed.stamp
	$(PY) -m pip install --quiet --no-build-isolation \
	  --config-settings=build-dir="build/{wheel_tag}" ".[botorch]"
	@touch $@

$(VENV)/peers.stamp: $(VENV)/created.stamp pyproject.toml
	$(PY) -m pip install --quiet --group peers
	@touch $@

# Without isolation, so that CMake finds the same nanobind each time and rebuilds only what changed.
# The stamp has the time of the start: a file saved during the build is newer, and builds again.
$(VENV)/installed.stamp: $(VENV)/tools.stamp $(SOURCES)
	@touch $@.started
	$(PY) -m pip install --quiet --no-build-isolation \
	  --config-settings=build-dir="build/{wheel_tag}" ".[all]"
	@mv $@.started $@
