# What can be done here? Every target sets up what it needs in .venv and build/, and is quick the second time.
#
#   make demo    k-means of 20 million points, NumPy against ufuse
#   make test    C++ and Python tests; afterwards .venv/bin/python -c "import ufuse" works
#   make bench   all benchmark cases against NumPy and the installed peers -> bench/out
#   make lint    formatting, linters, types, arrows of includes and imports
#   make docs    the documentation as a site -> build/site
#   make clean   remove build/ and .venv
#
#   make dev     build the Python module only, for quick rounds of edit and run
#   make golden  write the golden files anew: read the diff before you commit it
#   make instructions  count the instructions of loops and of what is done beside them, and compare with what is known
#   make peers   install numba, JAX, numexpr and PyTorch for `make bench`
#   make format  format all files
#   make debian13  build and test on Debian 13, in a root of its own (needs root)
#
# BUILD=build/other builds into a folder of its own (import it with PYTHONPATH=build/other/python), JOBS=1
# limits the parallel compilers, CMAKE_ARGS=-DUFUSE_SANITIZE=ON and the like are handed to CMake.

PYTHON ?= python3
JOBS   ?= $(shell nproc)
BUILD  ?= build/dev
VENV   := .venv
PY     := $(VENV)/bin/python
CMAKE  := $(firstword $(wildcard /usr/bin/cmake) cmake)

APT := g++ cmake ninja-build ccache clang-format python3-dev python3-venv libomp-dev \
       xtensor-dev doctest-dev

CXX_FILES = $(shell git ls-files -co --exclude-standard '*.h' '*.cpp')

# Builds from several terminals wait for each other instead of writing the same files.
NINJA = flock $(BUILD)/.lock $(CMAKE) --build $(BUILD) -j $(JOBS)

.PHONY: demo test bench docs lint clean dev configure peers format system test-cpp test-python golden debian13 instructions

demo: dev $(VENV)/.bench
	$(PY) -m bench.demo

test: test-cpp test-python

test-cpp: configure
	$(NINJA)
	ctest --test-dir $(BUILD) --output-on-failure

# A folder of their own keeps all loops that the tests compile: the user's is smaller, and is not theirs to fill.
test-python: export UFUSE_CACHE_DIR ?= $(CURDIR)/build/loops
test-python: export UFUSE_CACHE_SIZE ?= 4096
test-python: dev
	$(PY) -m pytest -q -n $(JOBS)

# The tests write what they would compare, and fail where even that is not possible.
golden: export UFUSE_TEST_UPDATE_GOLDEN = 1
golden: dev
	$(NINJA) --target ufuse_tests
	$(BUILD)/tests/ufuse_tests -tc='golden*'
	$(PY) -m pytest -q tests/golden

bench: dev $(VENV)/.bench
	$(PY) -m bench.run

instructions: dev
	$(PY) -m bench.instructions

lint: $(VENV)/.tools
	clang-format --dry-run -Werror $(CXX_FILES)
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/ruff check
	$(PY) .ci/lint_layers.py
	$(VENV)/bin/mypy

format: $(VENV)/.tools
	clang-format -i $(CXX_FILES)
	$(VENV)/bin/ruff format
	$(VENV)/bin/ruff check --fix

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build

debian13:
	.ci/debian trixie

clean:
	rm -rf build $(VENV) bench/out .mypy_cache .ruff_cache .pytest_cache .hypothesis

# `.pth` rather than an install: .venv always imports what build/dev holds.
dev: configure
	$(NINJA) --target ufuse_package

configure: $(BUILD)/build.ninja

$(BUILD)/build.ninja: $(VENV)/.tools | system
	mkdir -p $(BUILD)
	$(CMAKE) -S . -B $(BUILD) -G Ninja -DPython_EXECUTABLE=$(abspath $(PY)) $(CMAKE_ARGS)
	@touch $@

$(VENV)/.tools: pyproject.toml | system
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) .ci/requirements.py build run test dev > $(VENV)/requirements.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r $(VENV)/requirements.txt
	$(PY) -c 'import pathlib, sysconfig; \
	  pathlib.Path(sysconfig.get_path("purelib"), "ufuse_build.pth") \
	  .write_text("$(abspath build/dev/python)\n")'
	@touch $@

$(VENV)/.bench $(VENV)/.docs: $(VENV)/.%: $(VENV)/.tools
	$(PY) .ci/requirements.py $* > $(VENV)/requirements.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r $(VENV)/requirements.txt
	@touch $@

peers: $(VENV)/.bench
	$(PY) .ci/requirements.py peers > $(VENV)/requirements.txt
	$(PY) -m pip install --disable-pip-version-check -r $(VENV)/requirements.txt

# System packages: installed when we may, else the one line to run is printed.
system:
	@command -v dpkg-query >/dev/null || exit 0; \
	missing=$$(for p in $(APT); do \
	  dpkg-query -W -f '$${Status}' $$p 2>/dev/null | grep -q '^install ok' || echo $$p; done); \
	test -n "$$missing" || exit 0; \
	if [ "$$(id -u)" = 0 ]; then \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq $$missing; \
	else \
	  echo "Please run: sudo apt-get install -y" $$missing; exit 1; \
	fi
