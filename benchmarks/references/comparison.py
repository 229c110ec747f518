"""Inputs by a workload's operator, and how far an output is from the reference."""

import numpy as np

from references import convolutions, layers, products
from references.operator import Inputs
from workload import Workload

TOLERANCE = 1e-4  # a hundred times what float32 needs here, a tenth of what bfloat16 would lose
SAMPLES = 16

OPERATORS = products.OPERATORS | convolutions.OPERATORS | layers.OPERATORS


def inputs(workload: Workload) -> Inputs:
    return OPERATORS[workload.operator].inputs(np.random.default_rng(0), workload.sizes)


def error(workload: Workload, given: Inputs, output: np.ndarray) -> float:
    """The largest difference from float64 over some elements, corners included, relative to the largest of them."""
    known = OPERATORS[workload.operator]
    shape = known.shape(workload.sizes)
    output = output.reshape(shape)
    rng = np.random.default_rng(1)
    places = [tuple(0 for _ in shape), tuple(extent - 1 for extent in shape)]
    places += [tuple(int(rng.integers(extent)) for extent in shape) for _ in range(SAMPLES)]
    wanted = np.array([known.element(given, workload.sizes, place) for place in places])
    found = np.array([output[place] for place in places], dtype=float)
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def joined(workload: Workload, results: dict[str, np.ndarray]) -> np.ndarray:
    """The results of the program as the one array that is compared."""
    arrays = [results[name] for name in OPERATORS[workload.operator].results]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=-1)
