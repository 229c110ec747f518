#!/usr/bin/env bash
# Builds the Python package as a wheel, with the maturin of .venv.
#
#   scripts/build_wheel.sh FOLDER
#
# maturin patches the module so that it finds the libraries that are beside it in the wheel. The patched file is
# target/maturin/lib_native.so, which is a hard link to cargo's own target/release/deps/lib_native.so. If nothing has changed
# since, cargo gives the patched module to the next build, and maturin fails, because it cannot find `libffi-<hash>.so.8`.
# So this script first gives cargo the module back as it was linked.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wheels=${1:?give the folder for the wheel}
readonly wheels target=${CARGO_TARGET_DIR:-target}
readonly patched=$target/maturin/lib_native.so own=$target/release/deps/lib_native.so
# maturin leaves a copy from before the patch here, unless it has failed.
readonly linked=$target/release/lib_native.so

unpatch() {
  [[ $patched -ef $own ]] || return 0
  rm "$patched" "$own"
  # Without the copy, cargo compiles this one crate again and links it, which takes a minute or two.
  [[ ! -e $linked ]] || cp --preserve=timestamps "$linked" "$own"
}

main() {
  unpatch
  rm -rf "$wheels"
  PATH="$PWD/.venv/bin:$PATH" maturin build --release --manifest-path crates/python/Cargo.toml --out "$wheels"
}

main
