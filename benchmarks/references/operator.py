"""What an operator's reference consists of, and what all references use."""

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

EPSILON = 1e-5  # of the normalisations
CACHE_LINE = 64

Inputs = dict[str, np.ndarray]
Sizes = dict[str, int]
Place = tuple[int, ...]


@dataclass(frozen=True)
class Operator:
    inputs: Callable[[np.random.Generator, Sizes], Inputs]
    shape: Callable[[Sizes], tuple[int, ...]]
    element: Callable[[Inputs, Sizes, Place], float]
    results: tuple[str, ...] = ("O",)  # the program's results that are compared; several are joined along the last axis
    scalars: dict[str, float] = field(default_factory=dict)  # what the program takes besides


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins at a cache line, as the frameworks' own tensors do; NumPy promises 16 bytes only."""
    memory = np.empty(array.nbytes + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return aligned(rng.random(shape, dtype=np.float32) * 2 - 1)


def shaped(*names: str) -> Callable[[Sizes], tuple[int, ...]]:
    return lambda s: tuple(s[name] for name in names)


def dot(a: np.ndarray, b: np.ndarray) -> float:
    return float(a.astype(float) @ b.astype(float))
