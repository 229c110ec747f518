#!/usr/bin/env bash
# Tests kernels on an NVIDIA GPU: the Rust tests that use one, every example, tuned kernels, and some under compute-sanitizer.
#
#   scripts/test_cuda.sh [TARGET]
#
# TARGET is cuda:0 where none is given; `tilewright devices` lists what there is. Without that device the status is 3. The
# command is $TILEWRIGHT where it is set, and is built otherwise. Without cargo, $TILEWRIGHT must be set, and the Rust tests
# are left out, which is said. Nothing is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly target=${1:-cuda:0}
readonly TUNE_SECONDS=${TUNE_SECONDS:-5}
readonly FOUND=99 # compute-sanitizer's status for findings

# What is tuned and then compared with the interpreter: small, with remainders, of every kind of access.
readonly TUNED=(
  "examples/flextensor/gemm.tw --sizes M=130,N=66,K=65"
  "examples/benchmarks/bmm.tw --sizes B=6,N=26,K=72,M=26"
  "examples/flextensor/conv2d.tw --sizes N=1,C=17,H=18,W=19,K=20,KH=3,KW=3,stride=1,pad=1"
  "examples/flextensor/conv2d.tw --sizes N=2,C=12,H=18,W=20,K=20,KH=3,KW=3,stride=1,pad=1"
  "examples/flextensor/depthwise_conv2d.tw --sizes N=1,C=12,H=30,W=31,M=2,KH=3,KW=3,stride=2,pad=1"
  "examples/flextensor/conv_transpose2d.tw --sizes N=1,C=13,H=9,W=10,K=11,KH=4,KW=4,stride=2,pad=1"
  "examples/benchmarks/group_convolution.tw --sizes N=3,G=4,C=5,F=6,H=14,W=13,KH=3,KW=3"
  "examples/benchmarks/mlp3.tw --sizes B=128,N=128,O=64,P=32,Q=2"
  "examples/benchmarks/1LUT.tw --sizes B=37,E=1000,D=64,L=50"
  "examples/benchmarks/softmax.tw --sizes N=65,D=300"
)

failed=()
skipped=()

say() { echo "test-cuda: $*"; }

have() { command -v "$1" >/dev/null 2>&1; }

give_up() {
  say "$1" >&2
  exit 3
}

skip() {
  say "skipped: $1"
  skipped+=("$1")
}

# part NAME COMMAND...: goes on after a failure.
part() {
  local name=$1
  shift
  say "$name"
  "$@" && return
  say "FAILED: $name"
  failed+=("$name")
}

# The command, built where there is none yet.
command_to_test() {
  if [[ -n ${TILEWRIGHT:-} ]]; then
    [[ -x $TILEWRIGHT ]] || give_up "TILEWRIGHT is $TILEWRIGHT, and there is no program there."
    realpath -- "$TILEWRIGHT"
  elif have cargo; then
    cargo build >&2 || give_up "the command could not be built; cargo's message is above."
    realpath -- "${CARGO_TARGET_DIR:-target}/debug/tilewright"
  else
    give_up "there is no cargo to build the command with: set TILEWRIGHT to one that is built."
  fi
}

# A Python that has NumPy.
python_with_numpy() {
  local python
  for python in .venv/bin/python python3; do
    "$python" -c 'import numpy' 2>/dev/null && echo "$python" && return
  done
  return 1
}

# Those above code generation are the ones that use a device.
rust_tests() {
  TILEWRIGHT_REQUIRE=cuda,nvrtc scripts/test_rust.sh -p tilewright-runtime -p tilewright-tuner -p tilewright -p tilewright-cli
}

# The line by which an example says to run it.
own_line() { sed -n 's/^# tilewright run //p' "$1"; }

examples() {
  local file line bad=0 words
  for file in examples/*/*.tw; do
    line=$(own_line "$file")
    # xargs takes the quotes off, as a shell does.
    mapfile -t words < <(xargs -n 1 <<<"$line")
    "$tilewright" run "${words[@]}" --target "$target" --check >/dev/null 2>"$folder/said" && continue
    echo "$line: $(tail -n 3 "$folder/said")"
    bad=$((bad + 1))
  done
  [[ $bad -eq 0 ]]
}

# quietly COMMAND...: what it says is shown only if it fails.
quietly() {
  "$@" >"$folder/said" 2>&1 && return
  tail -n 20 "$folder/said"
  return 1
}

# tuned LINE: what a short search finds computes what the interpreter does.
tuned() {
  local cache=$folder/cache.sqlite
  rm -f "$cache"
  # shellcheck disable=SC2086
  quietly "$tilewright" tune $1 --target "$target" --time "${TUNE_SECONDS}s" --cache "$cache" --out "$folder/tuned.sched" || return
  # shellcheck disable=SC2086
  quietly "$tilewright" run $1 --target "$target" --cache "$cache" --check || return
  watched "$1" --schedule "$folder/tuned.sched"
}

# The tool, on the path or in a toolkit.
find_sanitizer() {
  command -v compute-sanitizer || compgen -G '/usr/local/cuda*/bin/compute-sanitizer' | sort | tail -n 1
}

# watched LINE OPTION...: accesses stay in bounds and threads do not race, where there is a tool that sees it.
watched() {
  local line=$1 tool status
  shift
  [[ -n $sanitizer ]] || return 0
  for tool in memcheck racecheck; do
    status=0
    # shellcheck disable=SC2086
    "$sanitizer" --tool "$tool" --error-exitcode "$FOUND" "$tilewright" run $line --target "$target" "$@" \
      >"$folder/said" 2>&1 || status=$?
    [[ $status -ne 0 ]] || continue
    echo "$tool, status $status: $line"
    tail -n 20 "$folder/said"
    return 1
  done
}

main() {
  local python line
  tilewright=$(command_to_test)
  "$tilewright" devices | grep -q "^$target " ||
    give_up "there is no $target on this machine, so nothing can be tested: $("$tilewright" devices | tail -n 1)"
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  sanitizer=
  [[ $target != cuda:* ]] || sanitizer=$(find_sanitizer) || skip "there is no compute-sanitizer, on the path or under /usr/local/cuda*"

  if have cargo; then part "the Rust tests" rust_tests; else skip "the Rust tests: there is no cargo"; fi
  part "every example, at the sizes of its text" examples
  if python=$(python_with_numpy); then
    part "every function of every example, against NumPy" "$python" tests/python/on_device.py "$tilewright" "$target"
  else
    skip "the cases of tests/python: there is no NumPy"
  fi
  for line in "${TUNED[@]}"; do
    part "default: $line" watched "$line" --schedule default
    part "tuned: $line" tuned "$line"
  done

  [[ ${#skipped[@]} -eq 0 ]] || printf 'test-cuda: skipped: %s\n' "${skipped[@]}"
  if [[ ${#failed[@]} -gt 0 ]]; then
    printf 'test-cuda: failed: %s\n' "${failed[@]}"
    exit 1
  fi
  say "everything passed on $target"
}

main "$@"
