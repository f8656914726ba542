# Two commands for a bare machine with python3 and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test lint types docs-check ci clean

$(VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(BIN)/pip install --quiet --editable '.[test]'
	touch $@

demo: $(VENV)/installed
	$(BIN)/rltracer demo $(DEMO)

test: $(VENV)/installed-test
	$(BIN)/python -m pytest -q -n auto --ignore tests/browser $(TESTS)
	$(BIN)/python -m pytest -q tests/browser

lint: $(VENV)/installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/installed-test
	$(BIN)/mypy

docs: $(VENV)/installed-test
	$(BIN)/python scripts/write_docs.py

docs-check: $(VENV)/installed-test
	$(BIN)/python scripts/write_docs.py --check

clean:
	rm -rf $(VENV) .venv-* demo build dist *.egg-info
