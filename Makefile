# Two commands for a newcomer: `make demo` and `make test`. Everything lives in .venv; nothing but packages is downloaded.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test lint docs install clean

demo: .venv/installed
	$(BIN)/steadygaze demo --out demo --force

# One thread of BLAS: the many small products of the tests are slower with several that wait for each other.
# Files of tests are shared among two processes: each file as a whole, since its tests share what they compute. They run
# in the order of their names, but for the first (tests/conftest.py; xdist would begin with those of many tests, and end with few slow ones): the last are the
# quick examples of docstrings, which both processes finish together.
test: .venv/installed-for-tests lint
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

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

# torch is pinned to the version that the tests were run with (tests compare gradients with its autograd).
.venv/installed-for-tests: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[test,docs,torch,export,frames,cluster]"
	touch $@

.venv/installed-for-docs: .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $@

clean:
	rm -rf .venv demo build dist .mypy_cache .ruff_cache .pytest_cache
