"""Inputs by the operator, and how far an output is from the reference."""

import numpy as np

from references import convolutions, layers, products
from references.operator import Inputs, Sizes

TOLERANCE = 1e-4  # a hundred times what float32 needs here, a tenth of what bfloat16 would lose
SAMPLES = 16

OPERATORS = products.OPERATORS | convolutions.OPERATORS | layers.OPERATORS


def inputs(operator: str, sizes: Sizes) -> Inputs:
    return OPERATORS[operator].inputs(np.random.default_rng(0), sizes)


def error(operator: str, sizes: Sizes, given: Inputs, output: np.ndarray) -> float:
    """The largest difference from float64 over some elements, corners included, relative to the largest of them."""
    known = OPERATORS[operator]
    shape = known.shape(sizes)
    output = output.reshape(shape)
    rng = np.random.default_rng(1)
    places = [tuple(0 for _ in shape), tuple(extent - 1 for extent in shape)]
    places += [tuple(int(rng.integers(extent)) for extent in shape) for _ in range(SAMPLES)]
    wanted = np.array([known.element(given, sizes, place) for place in places])
    found = np.array([output[place] for place in places], dtype=float)
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())


def joined(operator: str, results: dict[str, np.ndarray]) -> np.ndarray:
    """The results of the program as the one array that is compared."""
    arrays = [results[name] for name in OPERATORS[operator].results]
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays, axis=-1)
