# The two commands: `make demo` and `make test`. Each works from a fresh clone with Python 3.11 or newer, make and a network.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PORT ?= 8350
DEMO_DATABASE ?= $(VENV)/demo

.PHONY: demo test test-server setup lint types unit coverage browser migrations docs screenshots fuzz faults bench clean chromium constraints licences audit sbom load api datasette

demo: $(VENV)/.installed ## a running dashboard with the sample trace
	$(BIN)/sockscope demo --database $(DEMO_DATABASE) --port $(PORT)

test: setup chromium lint types migrations unit ## lint, types, migrations check, all tests

setup: $(VENV)/.installed-test

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

migrations: setup ## a migrated database equals the tables the code declares
	$(BIN)/python -m pytest -q tests/test_migrations.py

unit: setup ## all tests, Python, JavaScript and browser
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

coverage: setup ## the same, and which lines no test ran, in half as much time again
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --cov --cov-report=term:skip-covered

test-server: setup chromium ## the tests that ask a database once more, with a PostgreSQL server in the place of folders of traces
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --server

browser: setup chromium
	$(BIN)/python -m pytest -q -m browser

docs: setup ## the generated pages of docs/ (events, schema, command line)
	COLUMNS=100 NO_COLOR=1 $(BIN)/python docs/generate.py

screenshots: setup chromium ## the pictures of docs/screenshots
	$(BIN)/python docs/screenshots.py

FUZZ_SECONDS ?= 300
FUZZ_TARGETS ?= container decoded collected metadata packed event_xml event_log tracerpt_csv netsh_text xperf_dump package addresses
fuzz: setup ## a long run of the fuzzer over each target; what it finds is written to fuzz-found
	@for target in $(FUZZ_TARGETS); do \
	  $(BIN)/python -m tests.fuzz $$target --seconds $(FUZZ_SECONDS) --corpus .fuzz/$$target --found fuzz-found || exit 1; done

KILLS ?= 50
faults: setup ## many more kills of collectors at random moments than the tests make
	SOCKSCOPE_KILLS=$(KILLS) $(BIN)/python -m pytest -q tests/faults

bench: setup
	$(BIN)/python -m bench

load: setup ## many clients for a minute, while a trace is collected
	$(BIN)/python -m bench.load

api: setup ## every page asked by schemathesis, which lives in an environment of its own
	test -x $(VENV)/api/bin/st || { $(PYTHON) -m venv $(VENV)/api && \
	  $(VENV)/api/bin/python -m pip install --quiet --disable-pip-version-check 'schemathesis>=4.32,<5'; }
	$(BIN)/python -m bench.api

datasette: setup ## an export shown by Datasette, which lives in an environment of its own
	test -x $(VENV)/datasette/bin/datasette || { $(PYTHON) -m venv $(VENV)/datasette && \
	  $(VENV)/datasette/bin/python -m pip install --quiet --disable-pip-version-check 'datasette>=0.65,<1'; }
	$(BIN)/python -m pytest -q tests/test_datasette.py -k "shows_it or stays_text"

chromium: # for the browser tests; where it cannot be installed those tests say so and are skipped
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
	  { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get update -qq && \
	    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium >/dev/null; } || \
	  echo "chromium is missing and cannot be installed here: the browser tests are skipped"

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# With the versions that were tested; where those cannot be had (another Python, another index) with the newest that fit, and it says so.
INSTALL = install() { \
  $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable "$$1" || { \
    echo "the versions in constraints.txt cannot all be installed here: the newest that fit are taken"; \
    $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable "$$1"; }; }; install

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	@$(INSTALL) .
	@touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(VENV)/bin/python
	@$(INSTALL) '.[test]'
	@touch $@ $(VENV)/.installed

# The tools of the next two have an environment of their own, so that they add nothing to what is tested.
$(VENV)/supply/.installed: | $(VENV)/bin/python
	@$(PYTHON) -m venv $(VENV)/supply
	@if $(VENV)/supply/bin/python -m pip install --quiet --disable-pip-version-check pip-audit cyclonedx-bom; then touch $@; else \
	  echo "not checked: pip-audit and cyclonedx-bom cannot be installed from here"; fi

constraints: setup ## constraints.txt from the versions that are installed
	$(BIN)/python .ci/supply.py constraints

licences: setup ## docs/licences.md from the metadata of what is installed
	$(BIN)/python .ci/supply.py licences

audit: $(VENV)/supply/.installed ## known vulnerabilities of the pinned versions; says so where none can be asked about
	@if [ -e $< ]; then $(VENV)/supply/bin/python .ci/supply.py audit; fi

sbom: $(VENV)/.installed $(VENV)/supply/.installed ## dist/sbom.cdx.json: what is installed to run sockscope, as CycloneDX
	@mkdir -p dist
	@if [ -e $(VENV)/supply/.installed ]; then $(VENV)/supply/bin/cyclonedx-py environment --pyproject pyproject.toml --output-format JSON \
	  --output-file dist/sbom.cdx.json $(BIN)/python && echo "wrote dist/sbom.cdx.json" && \
	  $(BIN)/python .ci/supply.py sbom dist/sbom.cdx.json; fi

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .coverage dist build
