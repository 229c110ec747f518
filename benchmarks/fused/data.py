"""The inputs of a program, and the comparison of a result with the expected one. Needs NumPy.

A program has the same inputs in every process: a seed makes them.
"""

import numpy as np

from fused.program import Program, Tensor
from references.operator import aligned

TYPES = {"float": np.float32, "bool": np.bool_, "int8": np.int8, "uint8": np.uint8, "int64": np.int64}
SHARE = 1e-3  # of the elements may differ where a number between two steps may go to either


def drawn(program: Program) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)

    def array(tensor: Tensor) -> np.ndarray:
        return aligned(np.asarray(program.draw(tensor)(rng, tensor.shape, program.sizes)).astype(TYPES[tensor.type]))

    return {tensor.name: array(tensor) for tensor in program.inputs()}


def apart(found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """The differences, relative to the largest element."""
    return np.abs(found.astype(float) - expected.astype(float)) / max(float(np.abs(expected).max()), 1e-30)


def error(found: np.ndarray, expected: np.ndarray, tolerance: float, rounded: bool) -> float:
    """The largest difference; elements beyond the tolerance are an error, unless they are few and `rounded`, or integers."""
    if found.shape != expected.shape:
        raise ArithmeticError(f"wrong result: the shape is {found.shape} and not {expected.shape}")
    differences = apart(found, expected)
    beyond = np.mean(~(differences <= tolerance))  # NaN differs
    if beyond > (SHARE if rounded or whole(expected) else 0):
        largest = differences.max()
        raise ArithmeticError(f"wrong result: off by {largest:.1e} of the largest element, where {tolerance:.1e} is allowed")
    return float(differences.max())


def whole(array: np.ndarray) -> bool:
    return not np.issubdtype(array.dtype, np.floating)
