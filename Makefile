# The README's two commands, `make demo` and `make test`: each makes .venv where it is missing, then does its job.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: demo test lint clean

demo: $(VENV)/installed
	$(BIN)/degem demo --out demo

test: $(VENV)/installed-dev
	scripts/install-chromium
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadgroup --cov --cov-report=term:skip-covered

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) demo build dist

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "degem needs Python 3.11 or newer: make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing degem into $(VENV) (a few minutes, once) …"
	$(BIN)/python -m pip install --quiet --editable .
	touch $@

$(VENV)/installed-dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing degem and its tools into $(VENV) (a few minutes, once) …"
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(VENV)/installed $@
