# Two commands suffice: `make demo` and `make test`. They need Python 3.11 or later, Java 17 (or 21) and make.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
ARCHIVES := $(VENV)/.class-archives
UV_VERSION := 0.13.9
PYTEST := $(BIN)/python -m pytest
WORKERS ?= 3
IN_PARALLEL := -n $(WORKERS) --dist loadfile
MORE ?=
# A hundred processes of the tests import the package: with this variable each would compile it anew.
unexport PYTHONDONTWRITEBYTECODE
SEED ?= $(or $(shell git rev-parse --short=7 HEAD 2>/dev/null),none)

.PHONY: help setup demo test test-fast test-edges test-airflow test-cluster test-cases soak soak-sample check format bench lock clean java

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: java $(INSTALLED) $(ARCHIVES)  ## Create .venv and install what is locked

demo: setup  ## Run the main job on an embedded three-broker cluster, through Airflow
	@$(BIN)/topicops demo

test: setup  ## Run all tests but the long ones, three at a time (MORE="-k name" takes some, WORKERS=1 one at a time)
	$(PYTEST) $(IN_PARALLEL) -m "not soak" $(MORE)

test-fast: setup  ## Run what needs no server: seconds
	$(PYTEST) $(IN_PARALLEL) -m "not (edges or airflow or cluster or soak)" $(MORE)

test-edges: setup  ## Run what needs ZooKeeper or Spark
	$(PYTEST) $(IN_PARALLEL) -m "edges and not soak" $(MORE)

test-airflow: setup  ## Run what needs Airflow
	$(PYTEST) $(IN_PARALLEL) -m "airflow and not soak" $(MORE)

test-cluster: setup  ## Run what needs a three-broker cluster
	$(PYTEST) $(IN_PARALLEL) -m "cluster and not soak" $(MORE)

test-cases: setup  ## Run the case tables
	$(PYTEST) $(IN_PARALLEL) -m "cases and not soak" $(MORE)

soak: setup  ## Run all long tests: faults, counts, a real Airflow (40 minutes)
	$(PYTEST) -m soak --timeout 1200 $(MORE)

soak-sample: setup  ## Run five minutes of the long tests (SEED=word says which; else the commit)
	$(PYTEST) -m soak --timeout 1200 --soak-sample "$(SEED)" $(MORE)

check: setup  ## Lint, types, import contracts, dependencies
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=plugins $(BIN)/lint-imports
	$(BIN)/deptry plugins

format: setup  ## Format, and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## Run the benchmarks (ONLY=name runs one)
	$(BIN)/python -m benchmarks $(ONLY)

lock: $(INSTALLED)  ## Resolve requirements.lock anew
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	  --no-emit-index-url --no-emit-find-links --all-extras --group dev --upgrade pyproject.toml -o requirements.lock

clean:  ## Remove what was built or cached; a running local cluster is stopped first
	@[ ! -x $(BIN)/topicops ] || $(BIN)/topicops local down
	rm -rf $(VENV) .topicops dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find plugins dags tests -name __pycache__ -type d -prune -exec rm -rf {} +

java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	major=$$("$$java" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' | head -n 1); \
	case "$$major" in \
	  17|21) ;; \
	  *) echo "topicops needs Java 17 or 21, found $${major:-none}: install one (Debian: openjdk-17-jre-headless) or point JAVA_HOME at it" >&2; exit 1 ;; \
	esac

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' \
	  || { echo "topicops needs Python 3.11 to 3.13: run make with PYTHON=python3.11" >&2; exit 1; }
	@echo "Installing into $(VENV)" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check uv==$(UV_VERSION)
	@$(BIN)/uv pip install --python $(BIN)/python --require-hashes --compile-bytecode -r requirements.lock
	@$(BIN)/uv pip install --python $(BIN)/python --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(ARCHIVES): $(INSTALLED)
	@echo "Preparing the class archives of Spark and Kafka, once for each version: about two minutes" >&2
	@$(BIN)/python -m topicops.edges.spark.class_archive
	@$(BIN)/python -m topicops.edges.local.class_archive
	@touch $@
