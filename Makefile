# Every target makes what it needs in .venv and reuses it. Needs: Python >= 3.11, git, make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What a user installs; the tests need three times as many packages.
RUN_VENV := .venv-run
RUN_STAMP := $(RUN_VENV)/.installed-$(shell cksum < requirements/run.lock | cut -d' ' -f1)
SITE ?= .site
SITE_VENV := .venv-site
SITE_STAMP := $(SITE_VENV)/.installed-$(shell cksum < requirements/site.lock | cut -d' ' -f1)
DVC_VENV := .venv-dvc
DVC_STAMP := $(DVC_VENV)/.installed-$(shell cksum < requirements/dvc.lock | cut -d' ' -f1)
EXTRAS := $(patsubst %/pyproject.toml,%,$(wildcard plugin/extras/*/pyproject.toml))
PACKAGES_STAMP := $(VENV)/.packages-$(shell cat requirements/*.lock | cksum | cut -d' ' -f1)
STAMP := $(VENV)/.installed-$(shell cat requirements/*.lock pyproject.toml $(EXTRAS:=/pyproject.toml) | cksum | cut -d' ' -f1)

FUZZ_MINUTES ?= 10

# One more than there are cores: some tests wait for a limit of time or for a process.
WORKERS ?= $(shell n=$$(nproc); echo $$((n < 3 ? n + 1 : 4)))

# `make test` has one each: it waits for little.
CORES := $(shell n=$$(nproc); echo $$((n < 4 ? n : 4)))

# A part of `make test-all`, as in SHARD=1/3.
SHARD ?=
TESTS := $(BIN)/python -m pytest $(if $(SHARD),--shard=$(SHARD))
# A few tests that fail are run once more, alone; what passes then is named as flaky.
AGAIN := $(BIN)/python -m tests.support.try_again $(if $(SHARD),--shard=$(SHARD))

# What is tested of texts and sources. `make check` runs it, and `make test` does not again.
HOUSE := tests/house tests/test_docs.py tests/test_prose.py tests/test_site.py

.PHONY: site demo environment test test-all prove gpu-jobs pipelines pipelines-environment programs dvc fuzz check docs figures lock format clean

demo: $(RUN_STAMP)
	PYTHONPATH=$(CURDIR)/plugin:$(CURDIR)/cache $(RUN_VENV)/bin/python -P -m tunegate demo $(DEMO)

environment: $(STAMP)

# What is fast, a smoke of the compiler and one whole run: under five minutes on two cores.
test: $(STAMP)
	$(TESTS) -n $(CORES) --dist worksteal -m "not slow and not gpu_job and not pipelines and not proof" \
	  --hypothesis-profile=quick $(addprefix --ignore=,$(HOUSE))

# Everything that CI runs.
test-all: $(STAMP)
	$(AGAIN) -n $(WORKERS) --dist worksteal
	$(AGAIN) -n $(CORES) --dist worksteal -m "gpu_job and not proof"

# The long proofs, for a night: protocol, servers and attacks with 2,000 examples for each property, whole runs, pipelines, research, new seeds.
prove: pipelines-environment
	$(TESTS) -n $(WORKERS) --hypothesis-profile=fuzz --timeout=3600 tests/protocol tests/servers tests/adversary tests/security
	$(TESTS) -m "pipelines or proof"
	$(TESTS) -n $(WORKERS) research/tests
	$(MAKE) fuzz

# Whole jobs on the stand-in for a CUDA device: a few minutes each.
gpu-jobs: $(STAMP)
	$(AGAIN) -n $(CORES) --dist worksteal -m gpu_job

# The files of other pipelines, run by the tools of each: npm, Java and whatever else is there.
pipelines: pipelines-environment
	$(TESTS) -m pipelines

pipelines-environment: $(STAMP)
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements/pipelines.lock

# Browser, Ceph and whatever else some tests need; without them these are skipped.
programs:
	.ci/programs

# DVC, for the test of its repositories; without it that is skipped.
dvc: $(DVC_STAMP)

# Property tests with new seeds, again and again until the minutes are over or one fails.
fuzz: $(STAMP)
	end=$$(( $$(date +%s) + 60 * $(FUZZ_MINUTES) )); while [ $$(date +%s) -lt $$end ]; do \
	  $(BIN)/python -m pytest -q -n $(WORKERS) -m "hypothesis and not e2e and not pipelines and not proof" \
	    --hypothesis-profile=fuzz --hypothesis-seed=random || exit 1; done

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/complexipy
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/zizmor --offline --quiet action.yml .github examples/*.yml examples/*/*.yml
	$(BIN)/python -m pytest $(HOUSE)

# The commands' page, the table of keys and the JSON Schemas, from what the code declares.
docs: $(STAMP)
	$(BIN)/python -m pytest -q tests/cli/test_reference_page.py tests/schemas --update-golden

# The documentation as a site, in .site. A link that leads nowhere fails.
site: $(SITE_STAMP)
	NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/mkdocs build --strict --quiet --site-dir $(abspath $(SITE))

# docs/benchmarks.md and its pages, from benchmarks/results.
figures: $(STAMP)
	$(BIN)/python -m benchmarks.kit.page

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The lock files hold every distribution with its hashes; uv is in the environment.
LOCKED := $(BIN)/uv --no-config pip compile -q --universal --python-version 3.11 --generate-hashes --custom-compile-command 'make lock'
# What an extra needs besides the core.
LIBRARIES := import sys, tomllib; print(*(each for each in tomllib.load(open(sys.argv[1], "rb"))["project"]["dependencies"] if not each.startswith("tunegate")), sep="\n")
# What the extra deploy needs to check the signature of a CI job.
SIGSTORE := import sys, tomllib; print(*tomllib.load(open(sys.argv[1], "rb"))["project"]["optional-dependencies"]["sigstore"], sep="\n")
# What the images have for the addresses of the extra deploy.
CLIENTS := import sys, tomllib; found = tomllib.load(open(sys.argv[1], "rb"))["project"]["optional-dependencies"]; print(*found["mlflow"], *found["hub"], sep="\n")
lock: $(BIN)/uv
	$(LOCKED) requirements/installer.in -o requirements/installer.lock
	$(LOCKED) --extra tvm -c requirements/installer.lock pyproject.toml -o requirements/run.lock
	$(LOCKED) -c requirements/run.lock pyproject.toml -o requirements/run-onnxruntime.lock
	$(LOCKED) --extra tvm --extra nvidia -c requirements/run.lock pyproject.toml -o requirements/gpu.lock
	for extra in $(EXTRAS); do $(BIN)/python -c '$(LIBRARIES)' $$extra/pyproject.toml | \
	  $(LOCKED) -c requirements/gpu.lock - -o $$extra/requirements.lock || exit 1; done
	$(BIN)/python -c '$(CLIENTS)' plugin/extras/deploy/pyproject.toml | \
	  $(LOCKED) -c requirements/gpu.lock - -o plugin/extras/deploy/clients.lock
	$(LOCKED) --extra tvm --extra nvidia --group dev -c requirements/gpu.lock -c requirements/installer.lock pyproject.toml $(EXTRAS:=/requirements.lock) -o requirements/dev.lock
	$(BIN)/python -c '$(SIGSTORE)' plugin/extras/deploy/pyproject.toml | \
	  $(LOCKED) -c requirements/dev.lock - -o plugin/extras/deploy/sigstore.lock
	$(LOCKED) --group pyproject.toml:site -o requirements/site.lock
	$(LOCKED) --group pyproject.toml:dvc -o requirements/dvc.lock
	$(LOCKED) --group pyproject.toml:pipelines -c requirements/dev.lock -o requirements/pipelines.lock

$(BIN)/uv:
	$(MAKE) environment

$(PACKAGES_STAMP):
	rm -rf $(VENV)
	PYTHONPATH=action $(PYTHON) -m tunegate_environment requirements/dev.lock $(VENV)
	$(BIN)/python -m ensurepip >/dev/null
	touch $@

# The core and every extra, from their sources.
$(STAMP): $(PACKAGES_STAMP)
	$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation $(addprefix -e ./,. $(EXTRAS))
	touch $@

$(RUN_STAMP):
	rm -rf $(RUN_VENV)
	PYTHONPATH=action $(PYTHON) -m tunegate_environment requirements/run.lock $(RUN_VENV)
	touch $@

$(SITE_STAMP):
	rm -rf $(SITE_VENV)
	PYTHONPATH=action $(PYTHON) -m tunegate_environment requirements/site.lock $(SITE_VENV)
	touch $@

# Not by tunegate_environment, which builds nothing: a library of DVC has no wheel.
$(DVC_STAMP): $(BIN)/uv
	rm -rf $(DVC_VENV)
	$(BIN)/uv --no-config venv -q --python $(BIN)/python $(DVC_VENV)
	$(BIN)/uv --no-config pip install -q --python $(DVC_VENV)/bin/python --require-hashes -r requirements/dvc.lock
	touch $@

clean:
	rm -rf $(VENV) $(RUN_VENV) $(SITE_VENV) $(DVC_VENV) $(SITE) .tunegate .demo
