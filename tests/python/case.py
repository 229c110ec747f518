"""One row of the tables in cases_*.py, and the random inputs they are made of.

A case names a function of an example, makes its inputs at several sizes, and computes the same outputs in plain NumPy.
References see floats as float64 and return them so; the program must answer in float32 within `tolerance`.
Integers must agree exactly, in type too. On a device they may be off by `off_by`, for programs that cut off the fractions of
floats: a device may fuse a product with a sum, which rounds once instead of twice.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Case:
    file: str  # under examples/
    function: str
    inputs: Callable[..., dict]  # inputs(rng, **sizes): arrays, and int or float scalars
    reference: Callable[..., dict]  # reference(**inputs): every output by name
    sizes: list[dict[str, float]]
    tolerance: float = 1e-5  # relative and absolute, for floats
    off_by: int = 0  # absolute, for integers on a device


def sizes(names: str, *rows: tuple[float, ...]) -> list[dict[str, float]]:
    """`sizes("M K", (7, 5), (1, 1))` is `[{"M": 7, "K": 5}, {"M": 1, "K": 1}]`."""
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.uniform(-1, 1, shape).astype(np.float32)


def indices(rng: np.random.Generator, below: int, *shape: int) -> np.ndarray:
    return rng.integers(0, below, shape, dtype=np.int32)


def pixels(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(0, 256, shape, dtype=np.uint8)
