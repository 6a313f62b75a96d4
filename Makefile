# Two commands suffice: `make demo` and `make test`. They need Python 3.11 or later, Java 17 (or 21) and make.
SHELL := /bin/bash
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
ARCHIVES := $(VENV)/.class-archives
PYTEST := $(BIN)/python -m pytest
WORKERS ?= 4
IN_PARALLEL := -n $(WORKERS) --dist loadfile
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
  --no-emit-index-url --no-emit-find-links
MORE ?=
AIRFLOW ?= 3.2.2
# A hundred processes of the tests import the package: with this variable each would compile it anew.
unexport PYTHONDONTWRITEBYTECODE
SEED ?= $(or $(shell git rev-parse --short=7 HEAD 2>/dev/null),none)

.PHONY: help setup demo test test-fast test-python test-edges test-ci test-airflow test-airflow-release test-installs test-cluster test-versions test-cases soak soak-sample simulate pages releases-table mutations check format bench lock site compose-secrets pin-images clean java

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: java $(INSTALLED) $(ARCHIVES)  ## Create .venv and install what is locked

demo: setup  ## Run the main job on an embedded three-broker cluster, through Airflow (SOURCE=kafka: KRaft; KAFKA=2.5.1)
	@$(BIN)/topicops demo $(if $(KAFKA),--kafka $(KAFKA)) $(if $(SOURCE),--source $(SOURCE))

test: setup  ## Run the tests, five minutes on two processors (MORE="-k name" takes some, WORKERS=1 one at a time)
	$(PYTEST) $(IN_PARALLEL) -m "not (ci or soak)" $(MORE)

test-ci: setup  ## Run what CI runs for each change beside `make test`: more clusters, releases and faults
	$(PYTEST) $(IN_PARALLEL) -m "ci and not soak" $(MORE)

test-fast: setup  ## Run what needs no server and no other program: half a minute on two processors
	$(PYTEST) -n 2 --dist loadfile -m "not (edges or airflow or cluster or versions or slow or ci or soak)" $(MORE)

test-python:  ## Run those of test-fast on another Python, in .venv-<release> (PYTHON=python3.14)
	$(MAKE) test-fast ARCHIVES= VENV=.venv-$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')

test-edges: setup  ## Run what needs ZooKeeper or Spark
	$(PYTEST) $(IN_PARALLEL) -m "edges and not soak" $(MORE)

test-airflow: setup  ## Run what needs Airflow
	$(PYTEST) $(IN_PARALLEL) -m "airflow and not soak" $(MORE)

test-airflow-release: setup  ## Run the tests of Airflow in another release (AIRFLOW=3.4.0b2; build/ keeps its packages)
	PYTHONPATH=plugins:local:tests $(BIN)/python -m fixtures.airflow_sets $(AIRFLOW) build/airflow-$(AIRFLOW) \
	  $(or $(MORE),-m "not soak" --timeout 900 tests/airflow tests/edges/kafka/test_clients.py)

test-installs: setup  ## Resolve topicops into the packages of each Airflow that it claims (asks the package index)
	$(PYTEST) -m soak tests/repository/test_installs.py $(MORE)

test-cluster: setup  ## Run what needs a three-broker cluster
	$(PYTEST) $(IN_PARALLEL) -m "cluster and not soak" $(MORE)

test-versions: setup  ## Run the script of releases on all releases (TOPICOPS_KAFKA_VERSIONS="2.8.2 4.4.0" takes some)
	$(PYTEST) -m versions --timeout 1200 $(MORE)

test-cases: setup  ## Run the case tables
	$(PYTEST) $(IN_PARALLEL) -m "cases and not soak" $(MORE)

soak: setup  ## Run all long tests: faults, counts, a real Airflow (three hours)
	$(PYTEST) -m soak --timeout 1200 $(MORE)

soak-sample: setup  ## Run five minutes of the long tests (SEED=word says which; else the commit)
	$(PYTEST) -m soak --timeout 1200 --soak-sample "$(SEED)" $(MORE)

simulate: setup  ## Play applies with faults in virtual time (SEEDS=50000, or SEEDS=17-40; a night plays millions)
	PYTHONPATH=tests $(BIN)/python -m fixtures.simulate $(SEEDS)

pages: setup  ## Write the parts of the pages that are made from the program, and the JSON Schemas
	PYTHONPATH=plugins:tests $(BIN)/python -m fixtures.made_parts

releases-table: setup  ## Run the script on all releases, and write its table into the page of releases
	$(PYTEST) tests/versions/test_releases.py tests/versions/test_identities.py --timeout 1200 \
	  --versions-report tests/data/releases.json $(MORE)
	PYTHONPATH=tests $(BIN)/python -m fixtures.release_table

mutations: setup  ## Remove each safety check from a copy of the code, and show the test that notices (ONLY=word takes some)
	PYTHONPATH=tests $(BIN)/python -m mutations $(ONLY)

site: setup  ## Build the documentation as a site in build/site; a warning is an error
	@# Not --quiet: then mkdocs counts no warning, and the strict build ends well whatever it found.
	@said=$$(NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict 2>&1) || { echo "$$said" >&2; exit 1; }

check: setup site  ## Lint, types, import contracts, dependencies, the site
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	PYTHONPATH=plugins:local $(BIN)/lint-imports
	$(BIN)/deptry plugins
	$(BIN)/deptry local --config local/pyproject.toml

format: setup  ## Format, and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup  ## Run the benchmarks (ONLY=name runs one)
	PYTHONPATH=tests $(BIN)/python -m benchmarks $(ONLY)

lock: $(INSTALLED)  ## Resolve requirements.lock anew, and those of the images with the same releases
	$(COMPILE) --extra all --extra local --no-emit-package topicops --no-emit-package topicops-local --group dev --upgrade \
	  pyproject.toml -o requirements.lock
	$(COMPILE) --extra zookeeper-sasl --group build --constraints requirements.lock pyproject.toml -o requirements-cli.lock
	cp requirements.lock requirements-image.lock  # uv keeps the releases that it finds there
	$(COMPILE) --extra all --group build pyproject.toml requirements-image.in -o requirements-image.lock
	{ sed -n 1p requirements-uv.txt; echo uv | $(COMPILE) --no-annotate - ; } > requirements-uv.txt.new
	mv requirements-uv.txt.new requirements-uv.txt

compose-secrets: .env  ## Write .env with new secrets for docker compose; a file that is there stays

.env:
	@umask 077 && $(PYTHON) -c 'import base64, secrets; \
	  names = ("API_SECRET", "JWT_SECRET", "DATABASE_PASSWORD"); \
	  print(*(f"TOPICOPS_{name}={secrets.token_hex(32)}" for name in names), sep="\n"); \
	  print("TOPICOPS_FERNET_KEY=" + base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())' > $@.new
	@mv $@.new $@

pin-images:  ## Write the digest of today beside each image's tag in Dockerfile and docker-compose.yml (needs docker)
	@images=$$(sed -nE 's/^(FROM| +image:) ([a-z0-9/-]+:[^ @]+).*/\2/p' Dockerfile docker-compose.yml \
	    | grep -v '^topicops-' | sort -u); \
	[[ $$images ]] || { echo "no image was found in Dockerfile and docker-compose.yml" >&2; exit 1; }; \
	for image in $$images; do \
	  digest=$$(docker buildx imagetools inspect --format '{{println .Manifest.Digest}}' "$$image") || exit 1; \
	  [[ $$digest =~ ^sha256:[0-9a-f]{64}$$ ]] || { echo "$$image: docker gave no digest: $$digest" >&2; exit 1; }; \
	  sed -i -E "s#(FROM|image:) $$image(@sha256:[0-9a-f]+)?#\1 $$image@$$digest#" Dockerfile docker-compose.yml || exit 1; \
	  echo "$$image@$$digest"; \
	done

clean:  ## Remove what was built or cached; a running local cluster is stopped first
	@[ ! -x $(BIN)/topicops ] || $(BIN)/topicops local down
	rm -rf $(VENV) .venv-* .topicops dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find plugins local dags tests -name __pycache__ -type d -prune -exec rm -rf {} +

java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	major=$$("$$java" -version 2>&1 | sed -nE 's/.* version "([0-9]+).*/\1/p' | head -n 1); \
	case "$$major" in \
	  17|21) ;; \
	  *) echo "topicops needs Java 17 or 21, found $${major:-none}: install one (Debian: openjdk-17-jre-headless) or point JAVA_HOME at it" >&2; exit 1 ;; \
	esac

$(INSTALLED): requirements.lock requirements-uv.txt pyproject.toml local/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "topicops needs Python 3.11 or later: run make with PYTHON=python3.13" >&2; exit 1; }
	@echo "Installing into $(VENV)" >&2
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-uv.txt
	@$(BIN)/uv pip install --python $(BIN)/python --require-hashes --compile-bytecode -r requirements.lock
	@$(BIN)/uv pip install --python $(BIN)/python --quiet --no-deps --no-build-isolation --editable . --editable ./local
	@touch $@

$(ARCHIVES): $(INSTALLED) plugins/topicops/features/spark/edges/class_archive.py
	@echo "Preparing the class archives of Spark and Kafka, once for each version: about two minutes" >&2
	@$(BIN)/topicops spark archive || true
	@$(BIN)/python -m topicops_local.class_archive
	@touch $@
