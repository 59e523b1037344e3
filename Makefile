# make demo: the whole pipeline on real text. make test: the whole test suite. Both install what
# they need into .venv. `make help` lists the rest.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

empty :=
space := $(empty) $(empty)
VENV := .venv
BIN := $(VENV)/bin
export PATH := $(CURDIR)/$(BIN):$(PATH)

# TFX 1.21's compiled parts need glibc 2.39; an older system gets TFX 1.16, whose Python is 3.10.
GLIBC := $(shell getconf GNU_LIBC_VERSION 2>/dev/null | awk '{print $$2}')
NEW_GLIBC := $(shell printf '2.39\n$(GLIBC)\n' | sort -CV && echo yes)
ifeq ($(NEW_GLIBC),yes)
LOCK := requirements/tfx-1.21.txt
PYTHONS := python3.12 python3.11 python3.13
else
LOCK := requirements/tfx-1.16-py310.txt
PYTHONS := python3.10
endif

# uv reads no pip configuration: hand it what pip was told, by environment or file, unless it has
# settings of its own. (Used in recipes after the environment exists, because it asks that
# environment's pip.)
define uv_settings
	pip_setting() { $(BIN)/python -m pip config get "$$1" 2>/dev/null || true; }; \
	if [ -z "$${UV_DEFAULT_INDEX:-}$${UV_INDEX_URL:-}" ]; then \
	  url=$${PIP_INDEX_URL:-$$(pip_setting global.index-url)}; \
	  [ -z "$$url" ] || export UV_DEFAULT_INDEX="$$url"; \
	fi; \
	if [ -z "$${SSL_CERT_FILE:-}" ]; then \
	  cert=$${PIP_CERT:-$$(pip_setting global.cert)}; \
	  [ -z "$$cert" ] || export SSL_CERT_FILE="$$cert"; \
	fi; \
	export UV_HTTP_TIMEOUT=$${UV_HTTP_TIMEOUT:-300}; \
	export UV_PYTHON=$(CURDIR)/$(BIN)/python UV_PYTHON_DOWNLOADS=never VIRTUAL_ENV=$(CURDIR)/$(VENV)
endef

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: help install demo test engines engines-fetched buckets docs coverage lint format lock sbom \
  audit clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' Makefile

install: $(VENV)/.installed ## install into .venv what demo and test need

# The interpreter: the first of PYTHONS on PATH that runs. (A pyenv shim exists for every version,
# runs only the chosen ones, and may hide the system's.) If there is none, uv installs one: the uv
# on PATH, or one that a Python of any version installs.
VERSION := $(patsubst python%,%,$(firstword $(PYTHONS)))
$(BIN)/uv:
	@python=""; \
	for candidate in $$(type -aP $(PYTHONS)); do \
	  if $$candidate -c '' 2>/dev/null; then python=$$candidate; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  uv=$$(type -P uv || true); \
	  if [ -z "$$uv" ] && python3 -m venv --clear build/uv >/dev/null 2>&1 && \
	    build/uv/bin/python -m pip install --quiet uv; then uv=build/uv/bin/uv; fi; \
	  managed() { \
	    UV_PYTHON_PREFERENCE=only-managed $$uv python find --system $(VERSION) 2>/dev/null; \
	  }; \
	  if [ -n "$$uv" ] && ! python=$$(managed); then \
	    echo "No $(subst $(space), or ,$(PYTHONS)) on PATH; installing Python $(VERSION) with uv"; \
	    if $$uv python install $(VERSION); then python=$$(managed || true); fi; \
	  fi; \
	fi; \
	if [ -z "$$python" ]; then \
	  echo "make: this system (glibc $(or $(GLIBC),unknown)) needs $(subst $(space), or ,$(PYTHONS))" \
	    "on PATH; install it (packages NAME and NAME-venv, pyenv or uv) and run make again." >&2; \
	  exit 1; \
	fi; \
	if ! $$python -c 'import venv, ensurepip' 2>/dev/null; then \
	  echo "make: $$python has no venv module; on Debian and Ubuntu:" \
	    "apt-get install $$(basename $$python)-venv" >&2; exit 1; \
	fi; \
	echo "Creating $(VENV) with $$($$python --version) for $(LOCK)"; \
	$$python -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet uv

# Compiled to bytecode once: TensorFlow's and TFX's four thousand modules would be compiled by every
# process where none may write it (PYTHONDONTWRITEBYTECODE, a read-only image).
$(VENV)/.installed: $(LOCK) pyproject.toml setup.py | $(BIN)/uv
	@echo "Installing $(LOCK) into $(VENV) (about 2 GB; a few minutes the first time)"
	@$(uv_settings); \
	$(BIN)/uv pip install --quiet --compile-bytecode --requirements $(LOCK); \
	$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: install ## run the pipeline on real text, serve the model, ask it, and name the report
	@PYTHONWARNINGS=ignore $(BIN)/python -m pipeline.commands.demo

# A test file stays in one process, with the fixtures that its tests share; tests/conftest.py has
# put the long ones first, and those together that share a pipeline.
PARALLEL := --numprocesses auto --dist loadfile --no-loadscope-reorder --durations=20

# What trains, exports and serves has processes of its own: TensorFlow keeps every compiled program
# to the end of its process, and those of all tests together would fill the memory.
WHOLE := tests/end_to_end tests/pipeline/export tests/serving tests/test_tutorial.py

test: lint ## lint, then every test on TensorFlow, then those of keras_models on JAX
	KERAS_BACKEND=tensorflow $(BIN)/python -m pytest $(PARALLEL) $(WHOLE)
	KERAS_BACKEND=tensorflow $(BIN)/python -m pytest $(PARALLEL) $(addprefix --ignore=,$(WHOLE))
	KERAS_BACKEND=jax $(BIN)/python -m pytest $(PARALLEL) tests/keras_models tests/test_examples.py

# Java's parts are fetched into build/engines. What was fetched once stays. FAULTS=1 kills processes
# of the engines instead of comparing whole runs.
FETCHED := build/engines
ENGINES ?= flink spark
ON_ENGINES := $(if $(FAULTS),faults,run_on_engines --together 2 --java)
# Ends well, too, where Java or Maven is missing: engines says so.
HAS_JAVA := java=$$(java -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' || true); \
	[ "$${java:-0}" -ge 17 ] && command -v mvn >/dev/null
engines-fetched: install
	@if $(HAS_JAVA); then $(MAKE) --no-print-directory $(FETCHED)/.fetched; fi

engines: install ## run the pipeline on Flink and Spark, call a model from Java, and compare
	@if ! { $(HAS_JAVA); }; then \
	  echo "make engines: skipped, for it needs Java 17 and Maven"; exit 0; \
	fi; \
	$(MAKE) --no-print-directory $(FETCHED)/.fetched && \
	$(BIN)/python -m tests.engines.$(ON_ENGINES) $(addprefix --engine ,$(ENGINES))

$(FETCHED)/.fetched: tests/engines/requirements.txt tests/engines/flink/pom.xml \
  tests/engines/spark/pom.xml tests/engines/java/pom.xml | $(BIN)/uv
	@echo "Fetching Flink, Spark and Beam's job servers (about 1 GB; minutes the first time)"
	@for engine in flink spark java; do \
	  mvn -q -B -f tests/engines/$$engine/pom.xml dependency:copy-dependencies \
	    -DincludeScope=runtime -DoutputDirectory=$(CURDIR)/$(FETCHED)/jars/$$engine; \
	done
	@$(uv_settings); $(BIN)/uv pip install --quiet --no-deps --target $(FETCHED)/packages \
	  --requirements tests/engines/requirements.txt
	@touch $@

# The emulator of Google's buckets is built once.
EMULATOR := build/object_storage/fake-gcs-server
buckets: install ## run the compiled pipeline in an emulated Google bucket, and count its requests
	@if ! command -v go >/dev/null; then \
	  echo "make buckets: skipped, for it needs Go"; exit 0; \
	fi; \
	$(MAKE) --no-print-directory $(EMULATOR) && $(BIN)/python -m tests.object_storage.run_on_buckets

$(EMULATOR):
	@echo "Building fake-gcs-server (minutes the first time)"
	@GOBIN=$(CURDIR)/$(dir $@) go install github.com/fsouza/fake-gcs-server@v1.56.1

docs: install ## build the documentation site into build/site; a broken link is an error
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

coverage: install ## run every test on TensorFlow, and say which lines none of them runs
	@mkdir -p build/coverage
	KERAS_BACKEND=tensorflow $(BIN)/python -m pytest $(PARALLEL) --cov --cov-report=term:skip-covered \
	  --cov-report=xml:build/coverage/coverage.xml --cov-report=html:build/coverage/html

lint: install ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install ## fix what ruff can fix, and format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

COMPILE = $(BIN)/uv pip compile --quiet --no-header --no-emit-index-url --generate-hashes \
	$(if $(UPGRADE),--upgrade) pyproject.toml $(addprefix --extra ,pipeline test docs)
lock: $(BIN)/uv ## write the locks again (UPGRADE=1: with the newest versions)
	@$(uv_settings); \
	$(COMPILE) --python-version 3.10 --python-platform x86_64-manylinux_2_28 \
	  requirements/tfx-1.16-py310.in -o requirements/tfx-1.16-py310.txt; \
	$(COMPILE) --python-version 3.11 --universal \
	  requirements/tfx-1.21.in -o requirements/tfx-1.21.txt

LOCKS := $(wildcard requirements/*.txt)
sbom: $(BIN)/uv ## write a bill of materials of each lock into build/ (CycloneDX)
	@mkdir -p build; $(uv_settings); \
	for lock in $(filter-out %/demo-catalogues.txt,$(LOCKS)); do \
	  $(BIN)/uv tool run --quiet --from cyclonedx-bom cyclonedx-py requirements $$lock \
	    --output-reproducible --output-file build/sbom-$$(basename $$lock .txt).json; \
	  echo "Wrote build/sbom-$$(basename $$lock .txt).json"; \
	done

# Strict: a package that the database does not answer for is a failure, not a pass.
audit: $(BIN)/uv ## look up known vulnerabilities of each lock
	@$(uv_settings); failed=0; \
	for lock in $(filter-out %/demo-catalogues.txt,$(LOCKS)); do \
	  echo "$$lock"; \
	  $(BIN)/uv tool run --quiet pip-audit --requirement $$lock --require-hashes --disable-pip \
	    --strict || failed=1; \
	done; exit $$failed

clean: ## remove .venv and what tools left
	rm -rf $(VENV) build dist *.egg-info .coverage .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
