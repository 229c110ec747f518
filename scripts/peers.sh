#!/usr/bin/env bash
# Installs the libraries that benchmarks/cpu.py and benchmarks/pipelines.py measure Tilewright against.
#
#   scripts/peers.sh [--only libraries|torch|halide] [DIR]
#
# DIR is $PEERS_DIR where none is given, and .peers without either. Three Python environments are made in it: DIR/venv for MKL,
# oneDNN, NumPy, ONNX Runtime, OpenVINO and JAX, DIR/venv-torch for PyTorch, and DIR/venv-halide for Halide. They take about
# 5 GB, of which Halide takes 0.3 GB. The versions are those in benchmarks/requirements*.txt. What is installed already is left
# alone, so it can be run again at any time.
#
# PyTorch comes from its index of CPU wheels, or from TORCH_INDEX_URL; where that cannot be reached, from the ordinary package
# index, whose wheel works as well but brings 5 GB of CUDA libraries.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly TORCH_INDEX_URL=${TORCH_INDEX_URL:-https://download.pytorch.org/whl/cpu}

say() { echo "peers: $*" >&2; }

fail() {
  say "$*"
  exit 1
}

works() { "$@" >/dev/null 2>&1; }

# environment FOLDER: a Python environment there that works.
environment() {
  works "$1/bin/python" -c 'import pip' && return
  say "making $1 with $(python3 --version)"
  python3 -m venv --clear "$1" >&2 || fail "python3 could not make $1; its message is above."
}

# installed FOLDER REQUIREMENTS: whether the environment has them all, in these versions. pip is not asked, for it may want
# the network.
installed() {
  "$1/bin/python" - "$2" <<'PYTHON'
import importlib.metadata
import sys

for line in open(sys.argv[1]):
    name, _, wanted = line.split("#")[0].strip().partition("==")
    if not name:
        continue
    try:
        found = importlib.metadata.version(name).split("+")[0]
    except importlib.metadata.PackageNotFoundError:
        sys.exit(1)
    if found != wanted:
        sys.exit(1)
PYTHON
}

# install FOLDER REQUIREMENTS [PIP_OPTION...]
install() {
  local folder=$1 requirements=$2
  shift 2
  "$folder/bin/python" -m pip install --quiet --disable-pip-version-check "$@" -r "$requirements" >&2
}

# ready FOLDER REQUIREMENTS: makes the environment, and says so where nothing is left to do.
ready() {
  environment "$1"
  if installed "$1" "$2"; then
    say "$1 has everything in $2"
    return
  fi
  say "installing into $1: $(grep -v '^ *#' "$2" | paste -sd ' ')"
  return 1
}

libraries() {
  local folder=$1/venv requirements=benchmarks/requirements.txt
  ready "$folder" "$requirements" && return
  install "$folder" "$requirements" || fail "pip could not install $requirements; its message is above."
}

torch() {
  local folder=$1/venv-torch requirements=benchmarks/requirements-torch.txt
  ready "$folder" "$requirements" && return
  # NumPy and PyTorch's own dependencies are on the ordinary index; the CPU wheel, by its version, only on the other.
  install "$folder" "$requirements" --retries 1 --extra-index-url "$TORCH_INDEX_URL" --only-binary torch \
    --constraint <(sed -n 's/^torch==\(.*\)$/torch==\1+cpu/p' "$requirements") && return
  say "$TORCH_INDEX_URL has it not or cannot be reached: taking PyTorch from the ordinary index, with 5 GB of CUDA libraries"
  install "$folder" "$requirements" || fail "pip could not install $requirements; its message is above."
}

halide() {
  local folder=$1/venv-halide requirements=benchmarks/requirements-halide.txt
  ready "$folder" "$requirements" && return
  install "$folder" "$requirements" || fail "pip could not install $requirements; its message is above."
}

main() {
  local wanted=(libraries torch halide)
  if [[ ${1:-} == --only ]]; then
    [[ ${2:-} =~ ^(libraries|torch|halide)$ ]] || fail "--only takes libraries, torch or halide."
    wanted=("$2")
    shift 2
  fi
  local folder=${1:-${PEERS_DIR:-.peers}} what
  [[ $# -le 1 ]] || fail "one folder is enough: scripts/peers.sh [--only libraries|torch|halide] [DIR]"
  works python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' ||
    fail "python3 with venv, 3.11 or newer, is needed."
  mkdir -p "$folder"
  for what in "${wanted[@]}"; do "$what" "$folder"; done
  [[ $folder == .peers ]] || say "tell the benchmark where they are: export PEERS_DIR=$(realpath "$folder")"
  say "ready: make bench-cpu, make bench-pipelines"
}

main "$@"
