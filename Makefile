# Two commands do all the set-up on a machine with Python 3.11 and make: `make bench` and `make test`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# More than there are cores: most tests wait for sound to pass in real time.
WORKERS ?= 4

.PHONY: bench test lint types layers pytest system calibrate clean

bench: $(VENV)/core.stamp
	$(BIN)/firstpacket bench --concurrency 2

test: $(VENV)/dev.stamp system lint types layers pytest

calibrate: $(VENV)/core.stamp
	$(BIN)/firstpacket calibrate

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/dev.stamp
	$(BIN)/mypy

layers: $(VENV)/dev.stamp
	$(BIN)/lint-imports --no-logo

# Chromium and fonts for the report's browser tests; without root it says what is missing and goes on.
system:
	sh tests/setup/system.sh

# Last, so that the closing lines are pytest's own.
pytest: $(VENV)/dev.stamp
	$(BIN)/python -m tests.setup.models
	$(BIN)/python -m tests.setup.interop
	$(BIN)/python -m pytest --numprocesses $(WORKERS)

$(VENV)/core.stamp: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("firstpacket needs Python 3.11 or newer, this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	touch $@

$(VENV)/dev.stamp: $(VENV)/core.stamp
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev,asr,tts,score]'
	touch $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
