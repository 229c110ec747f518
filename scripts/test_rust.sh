#!/usr/bin/env bash
# Runs the Rust tests, all of them even where one fails, and says last what they left out because this machine lacks something.
#
#   scripts/test_rust.sh [ARGUMENT of cargo test...]
#
# A test that cannot do its work here prints a line `skipped: why`, which cargo shows only of tests that fail. Those lines
# are gathered, each once, into skipped.txt in the target folder. NVRTC is taken from .venv, where `make setup-nvrtc` puts it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly SKIPPED=${CARGO_TARGET_DIR:-target}/skipped.txt

# Where the wheel has its library; nothing where there is none.
nvrtc() { compgen -G "$PWD/.venv/lib/python3*/site-packages/nvidia/cu*/lib" | head -n 1; }

# Passes on what cargo says, without the output of tests that passed.
without_successes() {
  awk -v skipped="$SKIPPED" '
    /^successes:$/ { inside = 1 }
    /^failures:$/ || /^test result: / { inside = 0 }
    inside && /^skipped: / && !seen[$0]++ { print > skipped }
    !inside { print; fflush() }'
}

main() {
  local found
  found=$(nvrtc) || true
  mkdir -p "$(dirname "$SKIPPED")"
  : >"$SKIPPED"
  LD_LIBRARY_PATH=${found:+$found:}${LD_LIBRARY_PATH:-} cargo test --no-fail-fast "$@" -- --show-output | without_successes
  scripts/skipped.sh
}

main "$@"
