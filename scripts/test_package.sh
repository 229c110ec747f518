#!/usr/bin/env bash
# Tests the Python package with a native module that cargo has built, in .venv-package.
#
#   scripts/test_package.sh MODULE
#
# The package is put together in the target folder, as a wheel would be; nothing is installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

module=$(realpath -- "${1:?give the path of lib_native.so}")
readonly module package=${CARGO_TARGET_DIR:-target}/package

main() {
  rm -rf "$package"
  mkdir -p "$package"
  cp -r crates/python/python/tilewright "$package"
  rm -f "$package"/tilewright/*.so
  ln -s "$module" "$package/tilewright/_native.abi3.so"
  .venv-package/bin/python -m mypy --strict --follow-imports=silent "$package/tilewright"
  MYPYPATH=$(realpath -- "$package") .venv-package/bin/python -m mypy --strict --follow-imports=silent tests/package/typed_program.py
  PYTHONPATH=$(realpath -- "$package") .venv-package/bin/python -m pytest -q -rs tests/package
}

main
