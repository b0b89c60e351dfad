# The README's two commands, `make demo` and `make test`, and others: each makes .venv where it is missing, then does its job.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Versions with hashes, for this Python and platform; where there are none, constraints.txt alone pins. make lock renews.
LOCK := locks/$(shell $(PYTHON) -c 'import platform, sys; print("%d.%d" % sys.version_info[:2], sys.platform, platform.machine(), sep="-")').txt

.PHONY: demo test lint docs lock audit clean

demo: $(VENV)/installed
	$(BIN)/degem demo --out demo

test: $(VENV)/installed-dev
	scripts/install-chromium
	scripts/install-postgresql
	scripts/install-s3-server
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup --cov --cov-report=term:skip-covered

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: $(VENV)/installed-docs
	PATH="$(CURDIR)/$(BIN):$$PATH" OMP_NUM_THREADS=1 $(BIN)/python -m sphinx --fail-on-warning --jobs 2 --quiet docs build/docs
	@echo "build/docs/index.html"

lock: | $(BIN)/python
	$(BIN)/python scripts/lock $(LOCK)

audit: $(VENV)/installed-dev
	$(BIN)/python scripts/audit $(LOCK)

clean:
	rm -rf $(VENV) demo build dist

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "degem needs Python 3.11 or newer: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing degem into $(VENV) (a few minutes, once) …"
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/installed-docs: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing degem and what builds its site into $(VENV) …"
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $(VENV)/installed $@

$(VENV)/installed-dev: pyproject.toml constraints.txt $(wildcard $(LOCK)) | $(BIN)/python
	@echo "Installing degem and its tools into $(VENV) (a few minutes, once) …"
ifneq ($(wildcard $(LOCK)),)
	$(BIN)/python -m pip install --quiet --require-hashes --requirement $(LOCK)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
else
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
endif
	touch $(VENV)/installed $(VENV)/installed-docs $@
