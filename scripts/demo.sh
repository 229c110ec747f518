#!/usr/bin/env bash
# Shows what Tilewright does, on two of the examples and on a program with two mistakes; it takes half a minute.
#
#   scripts/demo.sh TILEWRIGHT
#
# TILEWRIGHT is the built command; `make demo` builds it first.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

tilewright=$(realpath -- "${1:?give the path of the tilewright command}")
readonly tilewright example=examples/paper/conv1d.tw matrices=examples/flextensor/gemm.tw

title() { printf '\n== %s\n\n' "$1"; }

# Runs the command, and shows it as one would type it.
show() {
  printf '$ tilewright %s\n' "$*"
  "$tilewright" "$@"
}

good_program() {
  title "A program, as mathematics: index variables are implicit"
  cat "$example"
  title "Checked for every size: names, types, ranges and bounds"
  show check "$example"
  title "The range of each variable and the shape of the result follow from what is indexed"
  show show "$example" --stage ranges
  title "Compiled for this CPU and run, on inputs made from a seed; the interpreter agrees"
  show run "$example" --sizes M=9,N=4 --check
}

fast_program() {
  local sizes=M=512,N=512,K=512
  title "Every program gets a schedule: steps that can be read, edited and given back"
  show show "$matrices" --sizes "$sizes" --stage schedule
  title "And this is how fast it is"
  show bench "$matrices" --sizes "$sizes"
  title "A search on this machine finds a faster one, and keeps it"
  show tune "$matrices" --sizes "$sizes" --time 12s --cache "$folder/cache.sqlite"
  show bench "$matrices" --sizes "$sizes" --cache "$folder/cache.sqlite"
}

wrong_program() {
  local status=0
  title "A program with two mistakes"
  cat >"$folder/wrong.tw" <<'PROGRAM'
def windows(float(N) signal) -> (sums, peak) {
  sums(i) +=! signal(i + k) where i in 0:N, k in 0:3
  peak max=! signl(i)
}
PROGRAM
  cat "$folder/wrong.tw"
  title "Each is shown where it is, with a size at which it happens and a way out"
  (cd "$folder" && show check wrong.tw 2>&1) || status=$?
  # 1 is the status for a mistake in the program.
  [[ $status -eq 1 ]] || { echo "demo: check ended with status $status where 1 was expected" >&2 && exit 1; }
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

good_program
fast_program
wrong_program
