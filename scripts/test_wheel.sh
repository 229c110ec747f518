#!/usr/bin/env bash
# Tests a wheel as a user has it: installed by pip, where nothing of this repository is in the way.
#
#   scripts/test_wheel.sh WHEEL
#
# The environment has NumPy and nothing else, so tests of other libraries are skipped. What the wheel needs of the system, how
# large it is and how long importing it takes are printed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wheel=$(realpath -- "${1:?give the path of the wheel}")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
readonly wheel folder

main() {
  python3 -m venv "$folder/clean"
  "$folder/clean/bin/python" -m pip install --quiet --disable-pip-version-check "$wheel" pytest
  cp -r tests/package examples "$folder"
  cd "$folder"
  echo "size: $(stat -c %s "$wheel" | numfmt --to=iec) packed"
  echo "needs: $(ldd clean/lib/python3*/site-packages/tilewright/_native.abi3.so | awk '{ print $1 }' | paste -sd ' ')"
  clean/bin/python -c 'import time; begun = time.perf_counter(); import tilewright; print(f"import: {time.perf_counter() - begun:.3f} s")'
  clean/bin/python -m pytest -q package
}

main
