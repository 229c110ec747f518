"""Compares what a `tilewright run` command computes with the reference: `result_check.py OPERATOR SIZES COMMAND…`, with NumPy.

SIZES are those of the command, as JSON.

Prints {"error": 3e-07}, or {"unavailable": "…"} with the reason; or {"unchecked": "…"} where there is no NumPy to compare with.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

try:
    import numpy as np

    from references import comparison
except ImportError as problem:
    print(json.dumps({"unchecked": str(problem)}))
    sys.exit()


def check(operator: str, sizes: dict[str, int], command: list[str]) -> dict:
    given = comparison.inputs(operator, sizes)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for tensor, array in given.items():
            np.save(folder / f"{tensor}.npy", array)
            command += ["--in", f"{tensor}={folder / tensor}.npy"]
        for scalar, value in comparison.OPERATORS[operator].scalars.items():
            command += ["--in", f"{scalar}={value}"]
        done = subprocess.run([*command, "--out", folder / "out"], capture_output=True, text=True)
        if done.returncode != 0:
            reason = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
            return {"unavailable": f"`tilewright run` ended with status {done.returncode}: {reason}"}
        results = {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}
    error = comparison.error(operator, sizes, given, comparison.joined(operator, results))
    if not error < comparison.TOLERANCE:
        return {"unavailable": f"wrong result: off by {error:.1e} of the largest element"}
    return {"error": error}


if __name__ == "__main__":
    print(json.dumps(check(sys.argv[1], json.loads(sys.argv[2]), sys.argv[3:])))
