# One file of commands for a fresh machine: Python 3.11+ with venv, make and git are all it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
CORES  ?= all
PORT   ?= 5000
# Processes that share out the tests: one more than two cores, since each is idle a seventh of its time or more.
TESTERS ?= 3
READY  := $(VENV)/.ready
CLUSTER := .venv-cluster
export PATH := $(abspath $(BIN)):$(PATH)

PEERS  := fedjax pfl_research flower

.PHONY: help env env-cluster lock demo test test-cluster test-portable test-gpu check bench bench-peers ui clean

help:  ## list the commands
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 15

# Programs in an environment name its folder: in one that was moved or copied they run other files, or none. So it is made anew.
ifneq ($(shell cat $(READY) 2>/dev/null),$(abspath $(VENV)))
.PHONY: $(READY)
endif

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	    { echo "fedrepro needs Python 3.11 or newer; '$(PYTHON)' is older. Try: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 2; }
	test ! -e $@ || test "$$(cat $@)" = "$(abspath $(VENV))" || rm -rf $(VENV)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip sync --quiet --require-hashes --compile-bytecode --python $(BIN)/python requirements.lock
	$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --offline --python $(BIN)/python --editable .
	@echo "$(abspath $(VENV))" > $@

env: $(READY)  ## create or update the environment in .venv

$(CLUSTER)/.ready: requirements-cluster.lock $(READY)
	test ! -e $@ || test "$$(cat $@)" = "$(abspath $(CLUSTER))" || rm -rf $(CLUSTER)
	test -x $(CLUSTER)/bin/python || $(PYTHON) -m venv $(CLUSTER)
	$(BIN)/uv pip sync --quiet --require-hashes --compile-bytecode --python $(CLUSTER)/bin/python requirements-cluster.lock
	$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --offline --python $(CLUSTER)/bin/python --editable .
	@echo "$(abspath $(CLUSTER))" > $@

env-cluster: $(CLUSTER)/.ready  ## the environment for a cluster, S3 and a shared tracking server, in .venv-cluster

lock: $(READY)  ## pin every dependency again, from requirements.in and requirements-cluster.in
	for name in requirements requirements-cluster; do \
	    $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	        --no-annotate --no-emit-index-url $$name.in --output-file $$name.lock || exit 1; done


demo: $(READY)  ## from nothing to FedLAW's Table 3 on embedded data, with report and tracked runs
	$(BIN)/snakemake --cores $(CORES) reports/table3.md results/summary.json
	@echo
	@echo "Done: reports/table3.md (and .html, .json). Compare the runs with: make ui"
	@echo "For the commands of the README (snakemake, dvc, fedrepro) activate the environment:  . $(VENV)/bin/activate"

test: $(READY)  ## all tests, on the CPU, without network
	$(BIN)/python -m pytest -n $(TESTERS) --dist loadfile --no-loadscope-reorder

test-cluster: $(CLUSTER)/.ready  ## Slurm, S3, PostgreSQL and MLflow's server, started for it (needs root and Debian's packages, see .ci/run)
	PATH="$(abspath $(CLUSTER)/bin):$$PATH" $(CLUSTER)/bin/python -m pytest -n 3 --dist loadfile tests/cluster

test-portable: $(READY)  ## the same bits on emulated processors of two makers (minutes; needs Debian's qemu-user)
	$(BIN)/python -m pytest tests/portable/emulated.py

test-gpu: $(READY)  ## every method and model on an NVIDIA GPU against the CPU, the same bits twice (minutes)
	TRITON_INTERPRET=0 $(BIN)/python -m pytest -n $(TESTERS) tests/gpu tests/unit/models/test_gpu.py

bench: $(READY)  ## time our engines against a plain loop, and rounds by their clients (minutes; leave the machine alone meanwhile)
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.scaling

bench-peers: $(READY) $(PEERS:%=benchmarks/.envs/%/.ready)  ## and against other simulators, each in its own environment
	$(BIN)/python -m benchmarks.run --peers

benchmarks/.envs/%/.ready: benchmarks/peers/%.txt $(READY)
	$(BIN)/uv venv --quiet --allow-existing --python 3.11 benchmarks/.envs/$*
	$(BIN)/uv pip sync --quiet --python benchmarks/.envs/$*/bin/python $<
	@touch $@

check: $(READY)  ## style, types, and whether the workflow and the tests that need Debian's packages load
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/basedpyright src
	$(BIN)/snakemake --dry-run --quiet all --cores 1 > /dev/null
	$(BIN)/python -m pytest --collect-only --quiet tests/cluster tests/gpu tests/portable/emulated.py

ui: $(READY)  ## the MLflow UI over the runs of all tables asked for, on this machine only (PORT=5001 for another port)
	@$(BIN)/fedrepro ui --port $(PORT)

clean:  ## remove what the workflow made, except downloads; the environment stays
	rm -rf .snakemake logs data/arrays data/partitions data/participation data/proxy data/init mlflow.db mlartifacts \
	    results/runs results/configs results/plans results/choices results/tracked results/checkpoints results/kept results/diagnostics
	-git clean -qfdX reports
