# Two commands matter: `make demo` and `make test`. Each sets up all it needs; a second run starts at once.

PYTHON ?= python3
BIN := .venv/bin
export OMP_WAIT_POLICY := passive
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# The lock is the complete list, so pip resolves nothing (--no-deps): older versions look up the newest release of a
# requirement with an extra before they look at the pin, and then stop (pypa/pip #9644, #12345). What has no wheel is
# built with the locked back ends of requirements/build.txt, never with the newest ones (--no-build-isolation), and never
# by `setup.py install`, as older versions would (--use-pep517).
INSTALL := $(BIN)/python -m pip install -q --no-deps --no-build-isolation --use-pep517 --require-hashes
VERIFY := $(BIN)/python -m pip check
# Without bytecode on disk every process, and there are many in the tests, compiles all modules again.
export PYTHONDONTWRITEBYTECODE :=
# For two cores: most of what a test takes is waiting. The files keep the order that tests/conftest.py gives them.
JOBS ?= 6
# A process that was ended for a hang is not replaced: one in its place may wait for ever for its first test.
PARALLEL := -n $(JOBS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0
MACHINES := tests/integration/test_ordinary_machine.py

.DEFAULT_GOAL := help
.PHONY: help demo serve test fetched quick types structure units proof fuzz reference mutants check container gate bench models lock clean

help: ## Show the targets
	@grep -hE '^[a-z]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

demo: .venv/app ## Play an evening: speech in, speech out, remembered (writes demo/out/)
	@$(BIN)/python -m demo $(ARGS)

serve: .venv/app ## The same campaign live on a local page: talk to the NPCs
	@$(BIN)/glyphoxa serve --open --campaign demo/campaign.yaml $(ARGS)

test: .venv/dev ## All tests, on a real database, with real models and a real browser
	@$(MAKE) -s --no-print-directory -j 2 fetched .venv/collected
	@$(BIN)/python -m pytest --phase alone $(ARGS)
	@$(BIN)/python -m pytest --phase together $(PARALLEL) $(ARGS)

fetched: .venv/dev
	@$(BIN)/glyphoxa models fetch whisper-tiny.en minilm-l6-v2-int8 qwen2.5-coder-0.5b-instruct-q4_k_m
	@$(BIN)/python -m tests.support.browser

# Once for a checkout: pytest rewrites the assertions of each test module and keeps the result. Processes that begin
# together would all do it.
.venv/collected: .venv/dev
	@$(BIN)/python -m pytest --collect-only -qq > /dev/null || true  # the phases report what cannot be collected
	@touch $@

quick: .venv/dev ## Unit tests and types: about a minute
	@$(MAKE) -s --no-print-directory -j 2 -k types units

types: .venv/dev
	@$(BIN)/python -m mypy

units: .venv/dev
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(ARGS) tests/unit

proof: .venv/dev ## All examples, installation, image, benchmarks; `make demo` and `make test` on bare Debians (root, debootstrap): hours
	@GLYPHOXA_PROOF=1 $(BIN)/python -m pytest -o faulthandler_timeout=3600 $(PARALLEL) $(ARGS) \
		$$(grep -rlE 'tests.support.proof import|@given' tests --include='test_*.py' | grep -v $(MACHINES))
	@GLYPHOXA_PROOF=1 $(BIN)/python -m pytest -o faulthandler_timeout=14400 --phase together $(ARGS) $(MACHINES)

fuzz: .venv/dev ## Hostile bytes for what reads them: N=5000 inputs for each reader
	@GLYPHOXA_FUZZ=$(or $(N),5000) $(BIN)/python -m pytest -q -o faulthandler_timeout=7200 $(ARGS) tests/fuzz

reference: .venv/dev ## Write the generated pages of docs/reference: settings, command line, metrics, licences, modules
	@$(BIN)/python -m tests.support.reference

mutants: .venv/mutation ## Change the code and see whether a test notices (mutmut): all, or ONLY='glyphoxa.turns.playback*'
	@CI=true $(BIN)/python -m mutmut run $(ONLY)
	@$(BIN)/python -m mutmut results

check: .venv/dev ## Lint, formatting, types, import contracts, dead code, what the documents promise
	@$(BIN)/python -m ruff check .
	@$(BIN)/python -m ruff format --check .
	@$(MAKE) -s --no-print-directory -j 2 types structure

structure: .venv/dev
	@$(BIN)/lint-imports
	@$(BIN)/python -m vulture
	@$(BIN)/python -m pytest -q tests/structure

container: .venv/dev ## Build the image's stages on a bare Debian and serve a table there (Linux, root, debootstrap): minutes
	@GLYPHOXA_CONTAINER=1 $(BIN)/python -m pytest -o faulthandler_timeout=3600 $(ARGS) tests/integration/test_container.py

gate: .venv/dev ## The latency gate: our turns against a bare pipeline, and a large campaign against a small one
	@$(BIN)/glyphoxa models fetch minilm-l6-v2-int8
	@$(BIN)/python -m benchmarks.gate

bench: .venv/dev ## The benchmarks of benchmarks/README.md
	@$(BIN)/python -m benchmarks.turn
	@$(BIN)/python -m benchmarks.names
	@$(BIN)/python -m benchmarks.memory

models: .venv/app ## Fetch all local models now
	@$(BIN)/glyphoxa models fetch --all

lock: ## Pin every dependency with its hashes (needs uv); then `make reference`
	uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-header pyproject.toml --extra all -o requirements/app.txt
	uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-header pyproject.toml --extra all --group dev -o requirements/dev.txt
	uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-header --group build -o requirements/build.txt
	uv pip compile -q --universal --generate-hashes --python-version 3.11 --no-header --group mutation -c requirements/dev.txt -o requirements/mutation.txt

clean: ## Remove the virtual environment and what was built
	rm -rf .venv build dist demo/out mutants

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Glyphoxa needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Try: make PYTHON=python3.11"; exit 1; }
	@$(PYTHON) -m venv .venv || { echo "python3 -m venv failed: install your system's python3-venv package"; exit 1; }

# The project itself is installed in place, so a change in the code needs no new install.
.venv/app: requirements/app.txt requirements/build.txt pyproject.toml | .venv/bin/python
	@echo "Installing Glyphoxa and what it needs (once; a minute or two) ..."
	@$(INSTALL) -r requirements/build.txt
	@$(INSTALL) -r requirements/app.txt
	@$(BIN)/python -m pip install -q --no-deps --no-build-isolation -e .
	@$(VERIFY)
	@touch $@

.venv/dev: requirements/dev.txt .venv/app
	@echo "Installing the tools for tests and checks ..."
	@$(INSTALL) -r requirements/dev.txt
	@$(VERIFY)
	@touch $@

.venv/mutation: requirements/mutation.txt .venv/dev
	@$(INSTALL) -r $<
	@$(VERIFY)
	@touch $@
