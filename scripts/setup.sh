#!/usr/bin/env bash
# Checks that this machine has what Tilewright needs, and installs what is missing.
#
#   scripts/setup.sh [rust] [lint] [python] [package] [wheel] [opencl] [nvrtc] [fuzz]
#
# rust: a Rust toolchain, a C and C++ compiler, LLVM, and isl, which is compiled into target/isl. lint: rustfmt and clippy.
# python: .venv with the packages of the Python tests. package: .venv-package with what the tests of the Python package need,
# PyTorch and JAX among it. wheel: LLVM's static libraries, and maturin, which builds the package. opencl: PoCL, on which
# kernels for GPUs run without a GPU. nvrtc: NVIDIA's compiler, into .venv, by which kernels are compiled without a GPU. fuzz:
# only checks, for a nightly toolchain is a thing to ask for. Without arguments: all but wheel and fuzz.
# Prints what it installs, and nothing where nothing is missing. What it cannot mend it says in one sentence.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly RUSTUP="install Rust with rustup, as https://rustup.rs shows"
readonly REQUIREMENTS=tests/python/requirements.txt
readonly PACKAGE_REQUIREMENTS=tests/package/package-requirements.txt
readonly LIBRARIES_REQUIREMENTS=tests/package/libraries-requirements.txt
readonly WHEEL_REQUIREMENTS=crates/python/wheel-requirements.txt
readonly NVRTC_REQUIREMENTS=tests/nvrtc-requirements.txt

say() { echo "setup: $*" >&2; }

fail() {
  say "$*"
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

works() { "$@" >/dev/null 2>&1; }

as_root() {
  if [[ $(id -u) -eq 0 ]]; then "$@"; else sudo "$@"; fi
}

# install_packages WHAT PACKAGE...: Debian packages that bring WHAT.
install_packages() {
  local what=$1
  shift
  have apt-get || fail "$what is missing and there is no apt-get here: install your system's packages for $*."
  [[ $(id -u) -eq 0 ]] || have sudo || fail "$what is missing: run \`apt-get install $*\` as root."
  say "$what is missing: installing $* with apt-get"
  # A fresh machine has no package lists; stale ones do where the update cannot be had.
  as_root apt-get update -qq || say "apt-get update failed; going on with the package lists that are here"
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null ||
    fail "apt-get could not install $*; its message is above."
}

rust() {
  have cargo || have rustup || fail "cargo is missing: $RUSTUP, and try again."
  if ! works cargo --version && have rustup && ! works rustup default; then
    say "rustup has no default toolchain: installing stable Rust with rustup"
    rustup default stable >&2 || fail "rustup could not install stable Rust; its message is above."
  fi
  works cargo --version || fail "cargo does not start: run \`cargo --version\` to see why."
  refuse_old_rust
  c_compiler
  llvm
  isl
}

# The integer set library. A TILEWRIGHT_ISL that is set names another, or is empty for the system's.
isl() {
  [[ -z ${TILEWRIGHT_ISL+set} ]] || return 0
  [[ -e target/isl/libisl.a ]] || say "building isl, the integer set library: half a minute"
  scripts/build_isl.sh target/isl || fail "isl could not be built; the message is above."
}

refuse_old_rust() {
  local wanted found
  wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)
  found=$(rustc --version | cut -d ' ' -f 2)
  printf '%s\n' "$wanted" "$found" | sort --version-sort --check=quiet && return
  have rustup && fail "Rust $found is too old, $wanted is the oldest that works: run \`rustup update stable\`."
  fail "Rust $found is too old, $wanted is the oldest that works: $RUSTUP."
}

c_compiler() {
  links && return
  install_packages "a C and C++ compiler" gcc g++ libc6-dev
  links || fail "cc still makes no program: run \`echo '#include <stdio.h>' | cc -x c -c - -o /dev/null\` to see why."
}

# Whether cc makes a program: SQLite is compiled with it and rustc links with it, and it is of no use without the files of
# the C library, and of the C++ library that LLVM needs.
links() {
  local program status=0
  have cc || return
  program=$(mktemp)
  printf '%s\n' '#include <stdio.h>' 'int main(void) { return 0; }' | works cc -x c - -lstdc++ -o "$program" || status=$?
  rm -f "$program"
  return "$status"
}

# The code generator's library, where .cargo/config.toml looks for it.
llvm() {
  local prefix=${LLVM_SYS_221_PREFIX:-/usr/lib/llvm-22}
  works "$prefix/bin/llvm-config" --version && return
  [[ -z ${LLVM_SYS_221_PREFIX:-} ]] || fail "LLVM_SYS_221_PREFIX is $prefix, and there is no LLVM 22 there."
  install_packages "LLVM 22" llvm-22-dev
  works "$prefix/bin/llvm-config" --version ||
    fail "LLVM 22 is not in $prefix: install it, as https://apt.llvm.org shows, or set LLVM_SYS_221_PREFIX."
}

lint() {
  works cargo fmt --version && works cargo clippy --version && return
  have rustup || fail "rustfmt or clippy is missing: install the packages rustfmt and rust-clippy."
  say "rustfmt or clippy is missing: adding both with rustup"
  rustup component add rustfmt clippy >&2 || fail "rustup could not add rustfmt and clippy; its message is above."
}

python() {
  python_itself
  environment .venv
  packages .venv "$REQUIREMENTS"
}

python_itself() {
  have python3 || install_packages "Python 3" python3
  works python3 --version || fail "python3 does not start: run \`python3 --version\` to see why."
  works python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "$(python3 --version) is too old: the Python tests need 3.11 or newer."
}

# environment FOLDER: one that works, also after the system's Python changed under it.
environment() {
  works "$1/bin/python" -c 'import pip' && return
  if ! works python3 -c 'import ensurepip, venv'; then
    install_packages "Python's venv" python3-venv
    works python3 -c 'import ensurepip, venv' ||
      fail "$(command -v python3) is not the system's and has no venv: install a Python that has it."
  fi
  say "making $1 with $(python3 --version)"
  python3 -m venv --clear "$1" >&2 || fail "python3 could not make $1; its message is above."
}

# packages FOLDER REQUIREMENTS: the copy of a file in an environment says what was installed to the end.
packages() {
  local copy
  copy=$1/$(basename "$2")
  cmp --quiet "$2" "$copy" && return
  say "installing into $1: $(grep -v '^ *#' "$2" | paste -sd ' ')"
  "$1/bin/python" -m pip install --quiet --disable-pip-version-check -r "$2" >&2 ||
    fail "pip could not install $2; its message is above."
  cp "$2" "$copy"
}

# What the Python package and its examples need, and the libraries whose tensors it takes: those are large, and tests that
# need one say so where it is not. PyTorch brings its own NVRTC, so they are not in .venv.
package() {
  local lock
  # Another call may be at it.
  exec {lock}>.venv-package.lock
  flock "$lock"
  python_itself
  environment .venv-package
  packages .venv-package "$PACKAGE_REQUIREMENTS"
  (packages .venv-package "$LIBRARIES_REQUIREMENTS") || say "going on without PyTorch and JAX: tests that need them are skipped"
  flock --unlock "$lock"
}

# A wheel has LLVM inside, so it is made from the static libraries; maturin makes it, and patchelf puts others beside.
wheel() {
  local prefix=${LLVM_SYS_221_PREFIX:-/usr/lib/llvm-22}
  rust
  [[ -e $prefix/lib/libPolly.a || -n ${LLVM_SYS_221_PREFIX:-} ]] || install_packages "LLVM's static library Polly" libpolly-22-dev
  works cc -x c /dev/null -shared -lzstd -lz -lffi -o /dev/null ||
    install_packages "what LLVM's static libraries need" libzstd-dev zlib1g-dev libffi-dev
  python_itself
  environment .venv
  packages .venv "$WHEEL_REQUIREMENTS"
}

# Any OpenCL will do; PoCL runs kernels on the processor. Tests that need it say so where there is none.
opencl() {
  compgen -G '/etc/OpenCL/vendors/*.icd' >/dev/null && compgen -G '/usr/lib*/*/libOpenCL.so.1' >/dev/null && return
  (install_packages "OpenCL" ocl-icd-libopencl1 pocl-opencl-icd) || say "going on without OpenCL: tests that need it are skipped"
}

# CUDA is compiled in tests without a GPU, and without a toolkit; a wheel has the compiler. Tests that need it say so where
# there is none.
nvrtc() {
  (python && packages .venv "$NVRTC_REQUIREMENTS") || say "going on without NVRTC: tests that need it are skipped"
}

fuzz() {
  rust
  works rustup run nightly cargo --version || fail "fuzzing needs nightly Rust: run \`rustup toolchain install nightly\`."
  works cargo fuzz --version || fail "fuzzing needs cargo-fuzz: run \`cargo install cargo-fuzz\`."
  have c++ || fail "fuzzing needs a C++ compiler: run \`apt-get install g++\`, or what installs one on your system."
}

main() {
  local part
  [[ $# -gt 0 ]] || set -- rust lint python package opencl nvrtc
  for part in "$@"; do
    case $part in
      rust | lint | python | package | wheel | opencl | nvrtc | fuzz) "$part" ;;
      *) fail "there is no part \`$part\`; the parts are rust, lint, python, package, wheel, opencl, nvrtc and fuzz." ;;
    esac
  done
}

main "$@"
