"""The inputs of every operator, and single elements of its result in float64, to check a peer's output against.

Runs in the peers' environment, for it needs NumPy. The inputs follow what `tilewright` fills in when it is given none: floats
between -1 and 1, indices uniform over the table.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from workload import Workload

TOLERANCE = 1e-4  # a hundred times what float32 needs here, a tenth of what bfloat16 would lose
SAMPLES = 16
EPSILON = 1e-5  # of layer normalisation
CACHE_LINE = 64

Inputs = dict[str, np.ndarray]
Sizes = dict[str, int]


@dataclass(frozen=True)
class Operator:
    inputs: Callable[[np.random.Generator, Sizes], Inputs]
    shape: Callable[[Sizes], tuple[int, ...]]
    element: Callable[[Inputs, Sizes, tuple[int, ...]], float]


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy that begins at a cache line, as the frameworks' own tensors do; NumPy promises 16 bytes only."""
    memory = np.empty(array.nbytes + CACHE_LINE, np.uint8)
    start = -memory.ctypes.data % CACHE_LINE
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return aligned(rng.random(shape, dtype=np.float32) * 2 - 1)


def gemm_inputs(rng, s):
    return {"A": floats(rng, s["M"], s["K"]), "B": floats(rng, s["K"], s["N"])}


def gemm_element(x, s, at):
    i, j = at
    return x["A"][i].astype(float) @ x["B"][:, j].astype(float)


def convolved(size: int, kernel: int, s: Sizes) -> int:
    return (size + 2 * s["pad"] - kernel) // s["stride"] + 1


def image_shape(s: Sizes) -> tuple[int, int]:
    return convolved(s["H"], s["KH"], s), convolved(s["W"], s["KW"], s)


def window(image: np.ndarray, s: Sizes, h: int, w: int) -> np.ndarray:
    """What the kernel sees of (channels, H, W) at output pixel h, w, with zeros outside."""
    pad = s["pad"]
    padded = np.pad(image.astype(float), ((0, 0), (pad, pad), (pad, pad)))
    top, left = h * s["stride"], w * s["stride"]
    return padded[:, top : top + s["KH"], left : left + s["KW"]]


def conv2d_inputs(rng, s):
    return {
        "I": floats(rng, s["N"], s["C"], s["H"], s["W"]),
        "weight": floats(rng, s["K"], s["C"], s["KH"], s["KW"]),
    }


def conv2d_element(x, s, at):
    n, k, h, w = at
    return (window(x["I"][n], s, h, w) * x["weight"][k]).sum()


def depthwise_inputs(rng, s):
    return {
        "I": floats(rng, s["N"], s["C"], s["H"], s["W"]),
        "weight": floats(rng, s["C"], s["M"], s["KH"], s["KW"]),
    }


def depthwise_element(x, s, at):
    n, c, m, h, w = at
    return (window(x["I"][n, c : c + 1], s, h, w) * x["weight"][c, m]).sum()


def softmax_inputs(rng, s):
    return {"I": floats(rng, s["N"], s["D"])}


def softmax_element(x, s, at):
    n, d = at
    row = x["I"][n].astype(float)
    powers = np.exp(row - row.max())
    return powers[d] / powers.sum()


def layer_norm_inputs(rng, s):
    return {"I": floats(rng, s["N"], s["D"]), "gamma": floats(rng, s["D"]), "beta": floats(rng, s["D"])}


def layer_norm_element(x, s, at):
    n, d = at
    row = x["I"][n].astype(float)
    return x["gamma"][d] * (row[d] - row.mean()) / np.sqrt(row.var() + EPSILON) + x["beta"][d]


def lookup_inputs(rng, s):
    indices = rng.integers(0, s["E"], (s["B"], s["L"]), dtype=np.int32)
    return {"LUT": floats(rng, s["E"], s["D"]), "I": aligned(indices)}


def lookup_element(x, s, at):
    b, d = at
    return x["LUT"][x["I"][b], d].astype(float).sum()


def matrix(rows: str, columns: str) -> Callable[[Sizes], tuple[int, ...]]:
    return lambda s: (s[rows], s[columns])


OPERATORS = {
    "gemm": Operator(gemm_inputs, matrix("M", "N"), gemm_element),
    "conv2d": Operator(conv2d_inputs, lambda s: (s["N"], s["K"], *image_shape(s)), conv2d_element),
    "depthwise_conv2d": Operator(
        depthwise_inputs, lambda s: (s["N"], s["C"], s["M"], *image_shape(s)), depthwise_element
    ),
    "softmax": Operator(softmax_inputs, matrix("N", "D"), softmax_element),
    "layer_norm": Operator(layer_norm_inputs, matrix("N", "D"), layer_norm_element),
    "1LUT": Operator(lookup_inputs, matrix("B", "D"), lookup_element),
}


def inputs(workload: Workload) -> Inputs:
    return OPERATORS[workload.operator].inputs(np.random.default_rng(0), workload.sizes)


def output_shape(workload: Workload) -> tuple[int, ...]:
    return OPERATORS[workload.operator].shape(workload.sizes)


def error(workload: Workload, given: Inputs, output: np.ndarray) -> float:
    """The largest difference from float64 over some elements, corners included, relative to the largest of them."""
    shape = output_shape(workload)
    output = output.reshape(shape)
    rng = np.random.default_rng(1)
    places = [tuple(0 for _ in shape), tuple(extent - 1 for extent in shape)]
    places += [tuple(int(rng.integers(extent)) for extent in shape) for _ in range(SAMPLES)]
    element = OPERATORS[workload.operator].element
    wanted = np.array([element(given, workload.sizes, place) for place in places])
    found = np.array([output[place] for place in places], dtype=float)
    return float(np.abs(found - wanted).max() / np.abs(wanted).max())
