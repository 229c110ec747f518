#!/usr/bin/env bash
# Says what the last scripts/test_rust.sh left out, and what would make it whole.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly SKIPPED=${CARGO_TARGET_DIR:-target}/skipped.txt

[[ -s $SKIPPED ]] || exit 0
echo "Not everything could be tested here:"
sort -u "$SKIPPED" | sed 's/^/  /'
if grep -q 'device of cuda' "$SKIPPED"; then
  echo "  \`make test-cuda\` tests kernels on a machine with an NVIDIA GPU."
fi
