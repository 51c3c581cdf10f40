# Two commands for a machine with Python 3.11+ and nothing else:
#   make demo   set up, build the bundle, run LoRA shrink: on the GPU, or where there is none on the CPU emulator
#   make test   set up, lint, type-check, and pass the tests
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
BUNDLE ?= build/kernelpack.kpk
KERNELS ?= build/test-kernels
PIP    := $(BIN)/python -m pip --disable-pip-version-check

# Tests start hundreds of Pythons: what one has compiled the others, and a second run, need not.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint check-types unit docs gpu-files gpu gpu-sanitizer mutation conformance clean

# For the GPUs that a reader is likely to have; a build that names no target is for all of each manifest's.
demo: $(VENV)/runtime.stamp
	$(BIN)/kernelpack build -o $(BUNDLE) --target sm_100a --target sm_90a
	$(BIN)/kernelpack doctor
	$(BIN)/kernelpack run lora_shrink_qkv --bundle $(BUNDLE)
	@echo "next: source $(BIN)/activate; kernelpack ls $(BUNDLE); kernelpack trace lora_shrink_qkv --bundle $(BUNDLE) --svg launch.svg"
	@echo "README.md has a tour, docs/guides/first-kernel.md a kernel of your own"

test: lint check-types unit

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	git ls-files -z $(SOURCES) | xargs -0 $(BIN)/clang-format --dry-run --Werror

# C, C++ and CUDA; not the parts of kernels (.inl.cuh), which may hold Jinja.
SOURCES = '*.c' '*.h' '*.cpp' '*.hpp' '*.cu' '*.cuh' ':!*.inl.cuh'

check-types: $(VENV)/dev.stamp
	$(BIN)/mypy

unit: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -n 2 --dist loadfile

# The documents as a site, build/site/index.html. A dead link fails: with --quiet it would not.
docs: $(VENV)/dev.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# What the tests on a GPU launch. Made where the compilers are; the machine with the GPU needs none then.
gpu-files: $(VENV)/dev.stamp
	$(BIN)/kernelpack build -o $(BUNDLE) --target sm_90a
	$(BIN)/python -m pytest -q --gpu tests/gpu/test_kv_operand.py --make-kernels $(KERNELS)

# On a machine with an H100 or H200: every sm_90a variant against the float64 oracle.
gpu: gpu-files
	$(BIN)/python -m pytest --gpu tests/gpu --bundle $(BUNDLE) --kernels $(KERNELS)

# There too: the small shapes under compute-sanitizer. A venv's python may start another: all are watched.
gpu-sanitizer: gpu-files
	for tool in memcheck racecheck synccheck; do \
	  compute-sanitizer --tool $$tool --target-processes all --error-exitcode 1 \
	    $(BIN)/python -m pytest -q --gpu tests/gpu --bundle $(BUNDLE) --kernels $(KERNELS) \
	    -k "(telling and not emulator and not repeated) or test_op or test_garbage" || exit 1; \
	done

# Every seeded fault in the kernels, each of which the emulator is to catch.
mutation: $(VENV)/dev.stamp
	$(BIN)/python -m pytest -m mutation tests/mutation

# Programs of others, compiled unmodified and run on the emulator; fetches their sources and writes docs/conformance.md.
conformance: $(VENV)/dev.stamp
	$(BIN)/python -m conformance --docs

# Five minutes of libFuzzer over the C++ loader (needs clang); what it finds stays in build/fuzz.
fuzz: $(VENV)/dev.stamp
	mkdir -p build/fuzz/corpus
	clang++ -std=c++17 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
	  -Ikernelpack/include tests/cpp/fuzz.cpp -o build/fuzz/fuzz -lzstd
	$(BIN)/python -m tests.cpp.seeds build/fuzz/corpus
	cd build/fuzz && ./fuzz -max_total_time=300 -rss_limit_mb=4096 -max_len=20000 corpus

$(VENV)/pip.stamp:
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -q "pip>=25.1"
	@touch $@

$(VENV)/runtime.stamp: $(VENV)/pip.stamp pyproject.toml
	@echo "fetching the CUDA compilers and what kernelpack needs, about half a GB"
	$(PIP) install -q -e ".[build]"
	@touch $@

$(VENV)/dev.stamp: $(VENV)/runtime.stamp
	@echo "fetching the compilers of CUDA 12.9 and what the tests need, about half a GB"
	$(PIP) install -q -e ".[build,cu12]" --group dev
	@touch $@

clean:
	rm -rf $(VENV) build dist
