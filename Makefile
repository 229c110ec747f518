# On a fresh machine `make demo` and `make test` do all there is to set up; scripts/setup.sh says what that is.

# A shell from before rustup came does not have its folder on the path.
export PATH := $(PATH):$(or $(CARGO_HOME),$(HOME)/.cargo)/bin

TILEWRIGHT ?= $(or $(CARGO_TARGET_DIR),target)/release/tilewright
# What the Rust tests build anyway; its kernels are as fast.
DEBUG_TILEWRIGHT := $(or $(CARGO_TARGET_DIR),target)/debug/tilewright
# All that tests use, with the features of the tests, so that nothing is built a second time.
BUILD_FOR_TESTS := cargo build --workspace --lib --bins --tests
WHEELS := $(or $(CARGO_TARGET_DIR),target)/wheels
FUZZ_SECONDS ?= 60
# Which random programs `make fuzz-compile` runs; CONTRIBUTING.md says what else can be chosen.
FUZZ_SEED ?= 1
FUZZ_FIRST ?= 0
FUZZ_CASES ?= 1000000000
# More for benchmarks/cpu.py, pipelines.py, gpu.py or fused.py, such as --only gemm.
BENCH_OPTIONS :=

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help setup setup-rust setup-lint setup-python setup-package setup-wheel setup-opencl setup-nvrtc setup-fuzz build demo \
	gallery wheel test lint test-rust test-python test-package test-wheel test-cuda fuzz fuzz-compile bench bench-cpu bench-pipelines prove-pipelines bench-cuda \
	bench-fused bench-python clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

setup: setup-rust setup-lint setup-python setup-package setup-opencl setup-nvrtc ## Install what is missing: toolchain parts, C compiler, LLVM, OpenCL, .venv
	@echo "setup: everything is here"

setup-rust setup-lint setup-python setup-package setup-wheel setup-opencl setup-nvrtc setup-fuzz: setup-%:
	@scripts/setup.sh $*

build: setup-rust ## Build the command, as target/release/tilewright
	cargo build --release

demo: build ## Set up, build, and show what Tilewright does
	@scripts/demo.sh "$(TILEWRIGHT)"

gallery: build setup-python ## Run pipelines on test pictures, and write docs/gallery.md and target/gallery/index.html
	.venv/bin/python scripts/gallery.py --tilewright "$(TILEWRIGHT)"

wheel: setup-wheel ## Build the Python package, as target/wheels/tilewright-*.whl: it needs nothing else installed
	scripts/build_wheel.sh $(WHEELS)
	@ls -l $(WHEELS)

test: lint test-rust test-python test-package ## Set up, and run every check and test
	@scripts/skipped.sh

lint: setup-rust setup-lint ## Check formatting, and clippy without warnings
	cargo fmt --check
	cargo clippy --workspace --all-targets -- -D warnings

test-rust: setup-rust setup-opencl setup-nvrtc ## Run the Rust tests, and build the documentation without warnings
	scripts/test_rust.sh --workspace
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

test-python: setup-rust setup-python ## Run every example against NumPy, and the tests of the benchmarks
	$(BUILD_FOR_TESTS)
	TILEWRIGHT="$(DEBUG_TILEWRIGHT)" .venv/bin/python -m pytest -q tests/python
	TILEWRIGHT="$(DEBUG_TILEWRIGHT)" .venv/bin/python -m unittest discover --quiet benchmarks

test-package: setup-rust setup-package ## Test the Python package: its functions, types and examples
	$(BUILD_FOR_TESTS)
	scripts/test_package.sh "$(or $(CARGO_TARGET_DIR),target)/debug/lib_native.so"

test-wheel: wheel ## Test the wheel, in an environment of its own that has nothing else
	# A second build must not trip over what the first left: scripts/build_wheel.sh says how it could.
	scripts/build_wheel.sh $(WHEELS)
	scripts/test_wheel.sh $(WHEELS)/tilewright-*.whl

test-cuda: ## Test kernels on an NVIDIA GPU: TILEWRIGHT=... names a command where there is no cargo to build it
	@scripts/test_cuda.sh

fuzz: setup-fuzz ## Fuzz the checker for a minute; needs nightly Rust and cargo-fuzz
	cargo +nightly fuzz run check -- -max_total_time=$(FUZZ_SECONDS)

fuzz-compile: setup-rust setup-opencl ## Compile random programs under random schedules for a minute, and compare with the interpreter
	FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_SEED=$(FUZZ_SEED) FUZZ_FIRST=$(FUZZ_FIRST) FUZZ_CASES=$(FUZZ_CASES) RUST_BACKTRACE=0 \
		cargo test --release --workspace --test whole_programs -- --ignored --exact --nocapture campaign

bench: setup-rust ## Time the compiler's own parts
	cargo bench --workspace

bench-cpu: build ## Measure kernels beside MKL, PyTorch and others: PEERS_DIR=... says where those are
	python3 benchmarks/cpu.py --tilewright "$(TILEWRIGHT)" $(BENCH_OPTIONS)

bench-pipelines: build ## Measure image pipelines beside Halide, which is installed into PEERS_DIR, or .peers
	scripts/peers.sh --only halide
	python3 benchmarks/pipelines.py --tilewright "$(TILEWRIGHT)" $(BENCH_OPTIONS)

prove-pipelines: build ## Prove the schedules by hand of all image pipelines, at the sizes of the benchmarks
	python3 benchmarks/proofs.py --tilewright "$(TILEWRIGHT)" $(BENCH_OPTIONS)

bench-cuda: ## Measure kernels on an NVIDIA GPU beside cuBLAS, cuDNN and PyTorch; TILEWRIGHT=... names a command that is built
	@[ -n "$(filter environment command%,$(origin TILEWRIGHT))" ] || $(MAKE) --no-print-directory build
	python3 benchmarks/gpu.py --tilewright "$(TILEWRIGHT)" $(BENCH_OPTIONS)

bench-fused: ## Measure small programs of fused operators beside PyTorch and torch.compile; TILEWRIGHT=... as for bench-cuda
	@[ -n "$(filter environment command%,$(origin TILEWRIGHT))" ] || $(MAKE) --no-print-directory build
	[ -n "$(findstring --python,$(BENCH_OPTIONS))" ] || scripts/peers.sh --only torch
	python3 benchmarks/fused.py --tilewright "$(TILEWRIGHT)" $(BENCH_OPTIONS)

bench-python: wheel setup-package ## Measure what a call from Python costs, beside NumPy's and PyTorch's
	.venv-package/bin/python -m pip install --quiet --force-reinstall --no-deps $(WHEELS)/tilewright-*.whl
	.venv-package/bin/python benchmarks/python_calls.py

clean: ## Remove everything that was built or installed in this folder
	cargo clean
	rm -rf .venv .venv-package .peers .pytest_cache fuzz/target
