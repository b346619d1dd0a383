# make setup   everything Homer needs, in .venv and in HOMER_HOME; nothing system-wide
# make demo    watch the demo clips, ask two questions, print cited answers
# make test    every check and the tests, in ten minutes
# make help    the rest

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-deps --retries 10
export PYTHONNOUSERSITE := 1
# Tests start hundreds of Python processes, which are to share compiled bytecode even where the
# environment forbids writing it, as many images do.
export PYTHONDONTWRITEBYTECODE :=

# Homer's own packages, compiled ahead: a user who may not write bytecode into the checkout would
# otherwise compile them in every process.
PACKAGES := domain store telemetry auth models perception people memory retrieval skills agent strategies nodes graphs \
    services flows evals library cli ui api homer_video benchmarks tests
COMPILE := $(BIN)/python -m compileall -q $(PACKAGES)

.PHONY: help setup dev models demo test test-all check style chaos storm mutants fuzz catalogues documents bench eval eval-local eval-first eval-egolife eval-perception eval-reader screenshots lock clean

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: .venv/.runtime ## create .venv from the lock file and fetch the models
	@$(COMPILE)
	@$(BIN)/homer models pull

dev: .venv/.dev ## setup for working on Homer: the test and check tools as well

demo: setup ## watch the demo clips and ask two questions
	@demo/run.sh

# A file's tests share servers and ingested clips, so a whole file goes to one worker. Tests wait for
# servers and pages a third of their time, so there are more workers than processors. mypy runs beside
# them, and its report is printed last.
test: style models ## every check and the tests, in ten minutes
	@report=$$(mktemp); $(BIN)/mypy >$$report 2>&1 & mypy=$$!; code=0; \
	nice $(BIN)/python -m pytest $(FULL) -n 3 --dist loadfile --no-loadscope-reorder || code=$$?; \
	wait $$mypy || code=$$?; cat $$report; rm $$report; exit $$code

test-all: FULL := --full
test-all: N := 500
test-all: test fuzz ## and the long tests: every fault, storms, fuzzing, Ray, more examples of each property

chaos: .venv/.dev ## every fault at every fault point, with a table
	@nice $(BIN)/python -m pytest --full -q -n 2 tests/chaos/test_fault_points.py \
	    tests/chaos/test_evaluating_killed.py

storm: .venv/.dev ## random operations by four workers that are killed at random: SEEDS=20 SECONDS=120
	@STORM_SEEDS=$(or $(SEEDS),20) STORM_SECONDS=$(or $(SECONDS),120) \
	    $(BIN)/python -m pytest --full -q -s -n 0 tests/chaos/test_storm.py

models: .venv/.dev
	@$(BIN)/homer models pull
	@$(BIN)/homer models pull yunet_sface bge-small

check: style ## ruff, mypy --strict, import-linter
	@$(BIN)/mypy

style: .venv/.dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/lint-imports

mutants: .venv/.dev ## mutate the code in N=200 random places and count the mutants that tests kill: SEED=1
	@nice $(BIN)/python -m tests.mutants --number $(or $(N),200) --seed $(or $(SEED),1)

fuzz: .venv/.dev ## mutated files and replies through every parser, and a table of the outcomes
	@nice $(BIN)/python -m tests.fuzz --cases $(or $(N),10000) --seed $(or $(SEED),1)

catalogues: .venv/.dev ## take new words of the app into ui/locale, and compile its translations
	@$(BIN)/python -m tests.support.catalogues

documents: .venv/.dev ## write the tables of commands, requests and tools into docs
	@$(BIN)/python -m tests.support.documents

bench: dev models ## speed, compared with plain references
	@$(COMPILE)
	@$(BIN)/python -m benchmarks $(if $(OUT),--json $(OUT))

# Ingested videos stay in HOMER_HOME, so a second run only asks. OUT=FILE saves the answers.
MEDIA ?= ../shared/media/questions.json
EGOLIFE ?= ../shared/data/egolife
NEXTQA ?= ../shared/data/nextqa

eval: setup ## clips, a week and short videos in one table, with baselines
	@$(BIN)/homer eval all local=$(dir $(MEDIA)) first=$(dir $(MEDIA)) egolife=$(EGOLIFE) nextqa=$(NEXTQA) --profile local
	@$(MAKE) eval-reader

eval-reader: dev models ## what reaches a model that sees and reads without fault: SECONDS=1800
	@$(BIN)/python -m benchmarks.reader $(or $(SECONDS),600)

eval-local: setup ## questions about real clips, asked with the local profile, and what learning does
	@code=0; $(BIN)/homer eval local $(MEDIA) --profile local $(if $(OUT),--out $(OUT)) || code=$$?; \
	$(BIN)/homer eval run own $(dir $(MEDIA)) --profile local --direct \
	    --name local-$$(date +%Y%m%d-%H%M%S) || code=$$?; exit $$code

eval-first: setup ## everyday questions about real clips, asked with the local profile
	@$(BIN)/homer eval first $(dir $(MEDIA)) --profile local $(if $(OUT),--out $(OUT))

eval-egolife: setup ## a week of captions, 250 questions, with baselines: STRATEGY=a,b ABLATE=1
	@$(BIN)/homer eval egolife $(EGOLIFE) --profile local $(if $(STRATEGY),--strategy $(STRATEGY)) $(if $(ABLATE),--ablate) $(if $(OUT),--out $(OUT))

eval-perception: models ## faces, voices, words, sounds and cuts, compared with annotations
	@$(BIN)/python -m benchmarks.perception $(dir $(MEDIA)) --profile local $(if $(OUT),--out $(OUT))

screenshots: dev demo ## every page at two widths, light and dark, in OUT=build/screenshots
	@$(BIN)/python -m tests.browser.screenshots $(or $(OUT),build/screenshots)

# Of the extras all but `train`, which is large and has a lock file of its own.
EXTRAS := build dask dev evaluation fetch gemini llama mcp oidc ollama openai otel ray
COMPILE_LOCK := uv pip compile pyproject.toml requirements-headless.in -q --no-header --no-annotate --no-emit-index-url \
    --universal --python-version 3.11 --generate-hashes

# pip asks for a hash of every package once a file of constraints has some, so theirs has none.
lock: ## resolve the lock files again (needs uv; keeps the present versions where it can)
	@$(COMPILE_LOCK) $(EXTRAS:%=--extra %) -o requirements-dev.lock
	@$(COMPILE_LOCK) --extra build -c requirements-dev.lock -o requirements.lock
	@$(COMPILE_LOCK) --extra train -c requirements-dev.lock -o requirements-train.lock
	@sed -i -e ':a; /\\$$/ { N; s/ *\\\n */ /; ta }' -e "/sys_platform == 'never'/d" requirements*.lock
	@sed 's/ --hash=.*//' requirements-dev.lock >constraints.txt

clean: ## remove what make built here; HOMER_HOME stays
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Installed with --no-deps from a resolved lock, which has the headless build of OpenCV: opencv-python
# needs libraries that a bare server lacks.
.venv/.runtime: requirements.lock pyproject.toml | .venv/bin/python
	@echo "Installing the packages of requirements.lock into .venv (a few minutes the first time) ..."
	@$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --no-build-isolation --editable .
	@touch $@

.venv/.dev: requirements-dev.lock .venv/.runtime
	@echo "Installing the packages of requirements-dev.lock into .venv ..."
	@$(PIP) --require-hashes -r requirements-dev.lock
	@touch $@

.venv/bin/python:
	@scripts/make-venv
