"""Writes the inputs of an operator as files: `write_inputs.py OPERATOR SIZES FOLDER`, with NumPy; SIZES are JSON.

Prints {"LUT": "FOLDER/LUT.npy", …}. A table of gigabytes is read from a file faster than it is made from a seed.
"""

import json
import sys
from pathlib import Path

import numpy as np

from references import comparison


def write(operator: str, sizes: dict[str, int], folder: Path) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for name, array in comparison.inputs(operator, sizes).items():
        files[name] = str(folder / f"{name}.npy")
        np.save(files[name], array)
    return files


if __name__ == "__main__":
    print(json.dumps(write(sys.argv[1], json.loads(sys.argv[2]), Path(sys.argv[3]))))
