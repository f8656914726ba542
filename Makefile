# Two commands for a bare machine with python3 and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN = $(VENV)/bin

.PHONY: demo test lint types docs docs-check release-check vendored-check audit ready clean

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

# With bytecode, also where the environment has none written: each command that a test starts would compile it all anew.
test: $(VENV)/installed-test
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n auto $(TESTS)

lint: $(VENV)/installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/installed-test
	$(BIN)/mypy

docs: $(VENV)/installed-test
	$(BIN)/python scripts/write_docs.py

docs-check: $(VENV)/installed-test
	$(BIN)/python scripts/write_docs.py --check

# The distributions, built twice: the same bytes, the right contents, and a wheel that works, here or on PYTHONS.
release-check: $(VENV)/installed-test
	$(BIN)/pip install --quiet uv twine
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python scripts/check_release.py $(PYTHONS:%=--python %)

# The JavaScript that is kept here, made anew with npm from packages that are pinned by hash.
vendored-check:
	$(PYTHON) scripts/vendored.py --rebuild

# Known faults of what an installation with every extra brings along, and of the workflows.
audit:
	$(PYTHON) -m venv $(VENV)-audit
	$(VENV)-audit/bin/pip install --quiet --upgrade pip pip-audit zizmor
	$(VENV)-audit/bin/pip install --quiet --editable '.[all]'
	$(VENV)-audit/bin/zizmor --offline --persona auditor .github/workflows
	$(VENV)-audit/bin/pip-audit --local --skip-editable --progress-spinner off

# The checks that the Datasette project has for plugins; they run the tests of the source distribution twice.
ready: $(VENV)/installed-test
	$(BIN)/pip install --quiet uv ready-for-datasette
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/python scripts/check_ready.py

clean:
	rm -rf $(VENV) .venv-* demo build dist *.egg-info
