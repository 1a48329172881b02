# `make report` runs the main job, `make test` the tests. Each sets up what it needs in .venv; see README.md.

PYTHON ?= $(firstword $(foreach v,python3.11 python3.12 python3.13 python3,$(if $(shell command -v $(v)),$(v))))
BIN := .venv/bin
READY := .venv/.ready
CONSTRAINED := PIP_CONSTRAINT=constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1

.PHONY: report test quick oldest mutate check format bench fuzz docs clean

# Independent analyses run in processes, one a core and at most four: threads of one process gain little beside that.
PROCESSES := $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$(( n < 4 ? n : 4 )))
report: $(READY)
	$(BIN)/bertology report -o report.html --engine local:$(PROCESSES)

# One worker a core, each with one thread: torch's own threads would only wait for each other. One more works while tests
# wait for the servers, clusters and commands that they start. `worksteal` gives each worker tests that follow each
# other, so that what the tests of a file share is computed once and not by every worker.
WORKERS := $(shell echo $$(( $$(nproc 2>/dev/null || echo 2) + 1 )))
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

test: $(READY)
	$(PYTEST)

quick: $(READY)
	$(PYTEST) -m "not slow"

# The tests of encoders with the lowest versions of torch and transformers, in an environment of their own.
oldest: .venv-oldest/.ready
	OMP_NUM_THREADS=1 .venv-oldest/bin/python -m pytest tests/encoder

# Small mistakes in the code, one at a time, that the tests should notice; see tests/mutation.py.
mutate: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python tests/mutation.py

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

# Damaged and crafted input for every reader, for so long; failures are kept in tests/fuzz/failures. See docs/fuzzing.md.
SECONDS := 600
fuzz: $(READY)
	PYTHONPATH=tests OMP_NUM_THREADS=1 $(BIN)/python -m fuzz --seconds $(SECONDS)

docs: .venv/.docs
	$(BIN)/mkdocs build --strict # --quiet would hide warnings from --strict as well
	@echo site/index.html

clean:
	rm -rf .venv .venv-oldest site report.html

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; found: $$($(PYTHON) --version)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv || { echo "The venv module is missing: on Debian, apt-get install python3-venv"; exit 1; }
	$(CONSTRAINED) $(BIN)/python -m pip install --quiet --editable ".[dev]"
	@touch $@

.venv-oldest/.ready: pyproject.toml
	@test -x .venv-oldest/bin/python || $(PYTHON) -m venv .venv-oldest
	PIP_DISABLE_PIP_VERSION_CHECK=1 .venv-oldest/bin/python -m pip install --quiet --editable . torch==2.6.0 transformers==5.4.0 pytest hypothesis
	@touch $@

.venv/.docs: $(READY)
	$(CONSTRAINED) $(BIN)/python -m pip install --quiet --editable ".[docs]"
	@touch $@
