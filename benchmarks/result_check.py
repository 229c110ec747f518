"""Compares what a `tilewright run` command computes with the reference: `result_check.py WORKLOAD COMMAND…`, with NumPy.

Prints {"error": 3e-07}, or {"unavailable": "…"} with the reason.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import families
from references import comparison


def check(name: str, command: list[str]) -> dict:
    work = families.named(name)
    given = comparison.inputs(work)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        for tensor, array in given.items():
            np.save(folder / f"{tensor}.npy", array)
            command += ["--in", f"{tensor}={folder / tensor}.npy"]
        for scalar, value in comparison.OPERATORS[work.operator].scalars.items():
            command += ["--in", f"{scalar}={value}"]
        done = subprocess.run([*command, "--out", folder / "out"], capture_output=True, text=True)
        if done.returncode != 0:
            reason = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr.strip())
            return {"unavailable": f"`tilewright run` ended with status {done.returncode}: {reason}"}
        results = {path.stem: np.load(path) for path in (folder / "out").glob("*.npy")}
    error = comparison.error(work, given, comparison.joined(work, results))
    if not error < comparison.TOLERANCE:
        return {"unavailable": f"wrong result: off by {error:.1e} of the largest element"}
    return {"error": error}


if __name__ == "__main__":
    print(json.dumps(check(sys.argv[1], sys.argv[2:])))
