# make demo    the service on your machine: a broker, a worker, 1,824 prompts, a live view
# make test    everything that has to hold before a change lands: style, types, layers, tests on real parts
SHELL := /bin/bash
UV = $(shell command -v uv || echo .cache/uv/bin/uv)
RUN = $(UV) run --no-sync

# Containers set it to stay small. Tests start some hundred Python processes, and each would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo setup test test-release test-lab test-reference pytest lint fuzz worlds chaos soak site beside

help:
	@echo 'make demo                          play the benchmark through a real worker on a real broker'
	@echo 'make demo ARGS="--requests 300"    a shorter one; pbstream demo --help names all options'
	@echo 'make setup                         install what the tests need (uv, Java, Maven, Redis, Chromium)'
	@echo 'make test                          set-up, lint and the tests of what a change may break'
	@echo 'make test-release                  what only a release needs: wheel, images, site, how pages look, demo, LiteLLM as a proxy, a round of chaos'
	@echo 'make test-lab                      types and tests of the laboratory, lab/'
	@echo 'make test-reference                the encoder on torch, and the export to ONNX (5 GB of packages)'
	@echo 'make lint                          ruff, mypy --strict, import-linter'
	@echo 'make site                          build the pages of docs/ as a site, into build/site'
	@echo 'make fuzz                          10,000 drawn examples of every event and of sequences of events (an hour or more)'
	@echo 'make worlds                        a million drawn events to 2,000 drawn routers, an hour at most (ARGS="--minutes 5")'
	@echo 'make chaos                         kill and cut for hours; lab/docs/chaos.md has the report (ARGS="--scale 0.1")'
	@echo 'make beside                        play other routers beside this one: lab/docs/beside.md (ARGS="--quick")'
	@echo 'make soak                          half an hour at half load: lab/docs/soak.md (ARGS="--minutes 10")'

demo:
	@tools/setup demo
	@$(RUN) pbstream demo $(ARGS)

setup:
	@tools/setup test

lint:
	$(RUN) ruff check .
	$(RUN) ruff format --check .
	$(RUN) mypy
	$(RUN) lint-imports

# Tests of pages in a browser: `make test` runs what they say and do, `--looks` also how they look at any width.
PAGES = $(wildcard tests/integration/test_dashboard*.py) tests/integration/test_label_inbox.py tests/integration/test_replay_report.py

# Style and types beside the tests, which wait for brokers at first.
test: setup
	@$(MAKE) --no-print-directory -j 2 lint pytest
	@echo 'Wheel, images, site, how pages look, demo, LiteLLM as a proxy, the reference library and a round of chaos: make test-release'

pytest:
	$(RUN) pytest -n 6 --dist loadfile --no-loadscope-reorder --ignore tests/release --ignore tests/containers --ignore tests/parity --ignore tests/reference $(ARGS)

test-release:
	@tools/setup release
	$(RUN) pytest -n 4 --dist loadfile --no-loadscope-reorder --looks tests/release tests/containers tests/parity $(PAGES) $(ARGS)

test-lab:
	@tools/setup lab
	$(RUN) mypy --config-file lab/pyproject.toml
	$(RUN) pytest -n 6 --dist loadfile lab/tests --ignore lab/tests/reference $(ARGS)

test-reference:
	@tools/setup reference
	$(RUN) pytest tests/reference lab/tests/reference $(ARGS)

site:
	NO_MKDOCS_2_WARNING=1 $(UV) run --locked --only-group site mkdocs build

# A quarter of an hour. PB_DATA names the folder of RouterBench's prompts, which are not shipped.
beside:
	$(UV) sync --locked --inexact --group dev --group beside
	OMP_NUM_THREADS=1 $(RUN) python -m benchmarks.beside $(ARGS)

fuzz: setup
	$(RUN) pytest -o timeout=0 --hypothesis-profile=long --hypothesis-show-statistics tests/schemas/test_schemas_fuzz.py tests/router_state/test_core_machine.py $(ARGS)

worlds: setup
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(RUN) python -W error -m tests.worlds.run $(ARGS)

soak:
	@tools/setup lab
	$(RUN) python -m benchmarks.soak $(ARGS)

chaos:
	@tools/setup lab
	$(RUN) python -m benchmarks.chaos $(ARGS)
