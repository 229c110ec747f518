"""Convolutions of every kind and rank. The axes of an image are known by their kernels: H is one where there is KH."""

from collections.abc import Iterator

import numpy as np

from references.operator import Inputs, Operator, Place, Sizes, floats


def axes(s: Sizes) -> list[str]:
    return [axis for axis in "DHWL" if f"K{axis}" in s]


def image(s: Sizes) -> list[int]:
    return [s[axis] for axis in axes(s)]


def kernel(s: Sizes) -> list[int]:
    return [s[f"K{axis}"] for axis in axes(s)]


def convolved(s: Sizes) -> tuple[int, ...]:
    reach = [s.get("dilation", 1) * (length - 1) + 1 for length in kernel(s)]
    return tuple((size + 2 * s["pad"] - far) // s["stride"] + 1 for size, far in zip(image(s), reach, strict=True))


def transposed(s: Sizes) -> tuple[int, ...]:
    return tuple((i - 1) * s["stride"] - 2 * s["pad"] + k for i, k in zip(image(s), kernel(s), strict=True))


def taps(s: Sizes, pixel: Place) -> Iterator[tuple[Place, Place]]:
    """The taps of the kernel that fall into the image at an output pixel, each with where it falls."""
    for tap in np.ndindex(*kernel(s)):
        place = tuple(s["stride"] * o + s.get("dilation", 1) * t - s["pad"] for o, t in zip(pixel, tap, strict=True))
        if all(0 <= at < size for at, size in zip(place, image(s), strict=True)):
            yield tap, place


def transposed_taps(s: Sizes, pixel: Place) -> Iterator[tuple[Place, Place]]:
    """The taps by which an output pixel is reached, each with the input that it comes from."""
    for tap in np.ndindex(*kernel(s)):
        ahead = [o + s["pad"] - t for o, t in zip(pixel, tap, strict=True)]
        place = tuple(distance // s["stride"] for distance in ahead)
        falls = all(distance % s["stride"] == 0 for distance in ahead)
        if falls and all(0 <= at < size for at, size in zip(place, image(s), strict=True)):
            yield tap, place


def total(x: np.ndarray, weight: np.ndarray, pairs: Iterator[tuple[Place, Place]]) -> float:
    """The sum over the channels, which come first in both, and the taps."""
    every = slice(None)
    return float(sum(x[(every, *at)].astype(float) @ weight[(every, *tap)].astype(float) for tap, at in pairs))


def conv_inputs(rng, s) -> Inputs:
    return {"I": floats(rng, s["N"], s["C"], *image(s)), "weight": floats(rng, s["K"], s["C"], *kernel(s))}


def conv_element(x, s, at):
    n, k, *pixel = at
    return total(x["I"][n], x["weight"][k], taps(s, pixel))


def transposed_inputs(rng, s) -> Inputs:
    return {"I": floats(rng, s["N"], s["C"], *image(s)), "weight": floats(rng, s["C"], s["K"], *kernel(s))}


def transposed_element(x, s, at):
    n, k, *pixel = at
    return total(x["I"][n], x["weight"][:, k], transposed_taps(s, pixel))


def group_inputs(rng, s) -> Inputs:
    return {
        "I": floats(rng, s["N"], s["G"], s["C"], *image(s)),
        "weight": floats(rng, s["G"], s["K"], s["C"], *kernel(s)),
    }


def group_element(x, s, at):
    n, g, k, *pixel = at
    return total(x["I"][n, g], x["weight"][g, k], taps(s, pixel))


def depthwise_inputs(rng, s) -> Inputs:
    return {"I": floats(rng, s["N"], s["C"], *image(s)), "weight": floats(rng, s["C"], s["M"], *kernel(s))}


def depthwise_element(x, s, at):
    n, c, m, *pixel = at
    return total(x["I"][n, c : c + 1], x["weight"][c, m : m + 1], taps(s, pixel))


CONVOLUTION = Operator(conv_inputs, lambda s: (s["N"], s["K"], *convolved(s)), conv_element)
TRANSPOSED = Operator(transposed_inputs, lambda s: (s["N"], s["K"], *transposed(s)), transposed_element)

OPERATORS = {
    "conv1d": CONVOLUTION,
    "conv2d": CONVOLUTION,
    "conv3d": CONVOLUTION,
    "dilated_conv2d": CONVOLUTION,
    "conv_transpose1d": TRANSPOSED,
    "conv_transpose2d": TRANSPOSED,
    "conv_transpose3d": TRANSPOSED,
    "group_conv2d": Operator(group_inputs, lambda s: (s["N"], s["G"], s["K"], *convolved(s)), group_element),
    "depthwise_conv2d": Operator(
        depthwise_inputs, lambda s: (s["N"], s["C"], s["M"], *convolved(s)), depthwise_element
    ),
}
