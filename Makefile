# Two commands for a newcomer: `make demo` and `make test`. Everything lives in .venv; only packages are downloaded.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint docs install clean

demo: .venv/installed
	$(BIN)/steadygaze demo --out demo --force

# BLAS uses one thread: the many small products of the tests are slower with several threads that wait for each other.
# Bytecode is written even if the environment says otherwise: the tests start many processes, and each would compile the
# package again.
# Two processes share the test files. Each file runs as a whole, since its tests share results. Files run in the order of
# their names, except for the first (tests/conftest.py). By default xdist would start with the files that have most tests,
# and end with a few slow ones; here the quick examples of docstrings come last, and both processes end together.
test: .venv/installed-for-tests lint
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

lint: .venv/installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, with warnings as errors: open build/site/index.html.
docs: .venv/installed-for-docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -d build/doctrees -c docs . build/site

install: .venv/installed

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/installed: .venv/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

# torch is pinned to the tested version, because tests compare gradients with its autograd.
.venv/installed-for-tests: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test,docs,torch,export,frames,cluster]"
	touch $@

.venv/installed-for-docs: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@

clean:
	rm -rf .venv demo build dist .mypy_cache .ruff_cache .pytest_cache
