"""How many floating-point operations an operator needs: multiplications and additions, those with padding counted as any other.

A transposed convolution counts each of its products once, however its program looks for them.
"""

from math import prod

AXES = "DHWL"  # of an image; those that a convolution has are known by their kernels


def operations(operator: str, sizes: dict[str, int]) -> float:
    return COUNTS[operator](sizes)


def products(*names: str):
    return lambda s: 2.0 * prod(s[name] for name in names)


def kernel(s: dict[str, int]) -> int:
    return prod(s[f"K{axis}"] for axis in AXES if f"K{axis}" in s)


def image(s: dict[str, int]) -> int:
    return prod(s[axis] for axis in AXES if f"K{axis}" in s)


def convolved(s: dict[str, int]) -> int:
    """The pixels of the result."""

    def along(axis: str) -> int:
        reach = s.get("dilation", 1) * (s[f"K{axis}"] - 1) + 1
        return (s[axis] + 2 * s["pad"] - reach) // s["stride"] + 1

    return prod(along(axis) for axis in AXES if f"K{axis}" in s)


def convolution(*channels: str):
    return lambda s: 2.0 * prod(s[name] for name in channels) * kernel(s) * convolved(s)


def transposed(s: dict[str, int]) -> float:
    return 2.0 * s["N"] * s["C"] * s["K"] * kernel(s) * image(s)


def mlp3(s: dict[str, int]) -> float:
    return 2.0 * s["B"] * (s["N"] * s["O"] + s["O"] * s["P"] + s["P"] * s["Q"])


def two_lookups(s: dict[str, int]) -> float:
    return float(s["B"] * s["D"] * (s["L1"] + s["L2"]))


COUNTS = {
    "gemm": products("M", "N", "K"),
    "bmm": products("B", "N", "K", "M"),
    "conv1d": convolution("N", "C", "K"),
    "conv2d": convolution("N", "C", "K"),
    "conv3d": convolution("N", "C", "K"),
    "dilated_conv2d": convolution("N", "C", "K"),
    "group_conv2d": convolution("N", "G", "C", "K"),
    "depthwise_conv2d": convolution("N", "C", "M"),
    "conv_transpose2d": transposed,
    "mlp3": mlp3,
    "1LUT": lambda s: float(s["B"] * s["D"] * s["L"]),
    "2LUT": two_lookups,
}
