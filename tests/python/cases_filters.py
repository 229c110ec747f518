"""Pipelines of filters and convolutions after Halide's applications of the same names."""

import numpy as np

from case import Case, floats, sizes

LUMA = [0.299, 0.587, 0.114]


def brightness(rng, *shape):
    """Pixels from 0 to 1. Some of them are outside, where pipelines clamp."""
    return rng.uniform(-0.1, 1.1, shape).astype(np.float32)


def windows(array, *shape):
    """Every window of this shape over the last axes; the axes of a window come last."""
    axes = tuple(range(-len(shape), 0))
    return np.lib.stride_tricks.sliding_window_view(array, shape, axes)


def edges(array, before, after):
    """The array with its last two axes extended by the pixels of the border."""
    leading = [(0, 0)] * (array.ndim - 2)
    return np.pad(array, leading + [(before, after)] * 2, mode="edge")


def harris(input):
    gray = np.tensordot(LUMA, input, 1)
    smooth, slope = np.array([1, 2, 1]), np.array([-1, 0, 1])
    Ix = np.einsum("yxij,i,j->yx", windows(gray, 3, 3), smooth, slope / 12)
    Iy = np.einsum("yxij,i,j->yx", windows(gray, 3, 3), slope / 12, smooth)
    gradient = np.stack([Ix, Iy], axis=-1)
    structure = windows(np.einsum("yxa,yxb->abyx", gradient, gradient), 3, 3).sum(axis=(-2, -1))
    matrices = np.moveaxis(structure, (0, 1), (-2, -1))
    response = np.linalg.det(matrices) - 0.04 * np.trace(matrices, axis1=-2, axis2=-1) ** 2
    return {"output": response[1:-1, 1:-1]}


def unsharp(input):
    gray = np.tensordot(LUMA, input, 1)
    taps = np.exp(-(np.arange(-3, 4) ** 2) / 4.5) / np.sqrt(2 * np.pi * 1.5**2)
    blurred = np.einsum("yxij,i,j->yx", windows(edges(gray, 3, 3), 7, 7), taps, taps)
    return {"output": input * (2 * gray - blurred) / gray}


def bilateral_grid(input, r_sigma, s_sigma=8):
    # The scale of brightness, and the number of its cells, in single precision.
    scale = np.float32(1) / np.float32(r_sigma)
    bins = int(scale)
    height, width = input.shape
    image = np.clip(input, 0, 1).astype(np.float32)
    rows, columns = (height - 1) // s_sigma + 2, (width - 1) // s_sigma + 2

    # Cells -2 to rows + 1 of squares of pixels; their first pixel is half a square before.
    before = 2 * s_sigma + s_sigma // 2
    extent = [(n + 4) * s_sigma for n in (rows, columns)]
    pads = [(before, e - before - n) for e, n in zip(extent, input.shape, strict=True)]
    pixels = np.pad(image, pads, mode="edge")
    y, x = np.indices(pixels.shape) // s_sigma
    z = (pixels * scale + np.float32(0.5)).astype(int) + 2
    grid = np.zeros((2, rows + 4, columns + 4, bins + 6))
    np.add.at(grid, (0, y, x, z), pixels)
    np.add.at(grid, (1, y, x, z), 1)
    for axis in (1, 2, 3):
        taps = np.lib.stride_tricks.sliding_window_view(grid, 5, axis)
        grid = taps @ np.array([1, 4, 6, 4, 1])

    # Between the 8 cells around a pixel; the weight of a cell falls to 0 at the next one.
    z = image * scale
    y, x = np.indices(input.shape) / s_sigma
    total = 0
    for corner in np.ndindex(2, 2, 2):
        cells = [np.floor(at).astype(int) + step for at, step in zip((y, x, z), corner, strict=True)]
        weight = np.prod([1 - abs(at - cell) for at, cell in zip((y, x, z), cells, strict=True)], axis=0)
        total = total + weight * grid[(slice(None), *cells)]
    return {"output": total[0] / total[1]}


def nl_means(input, patch, search, sigma):
    # The image with room for the patch of every pixel that the search reaches.
    reach, around = search // 2, patch // 2
    wide = edges(input, reach + around, search - 1 - reach + patch - 1 - around)
    height, width = input.shape[1:]
    middle = windows(edges(input, around, patch - 1 - around), patch, patch)
    weighted, weights = 0, 0
    for dy, dx in np.ndindex(search, search):
        moved = wide[:, dy : dy + height + patch - 1, dx : dx + width + patch - 1]
        distance = ((windows(moved, patch, patch) - middle) ** 2).sum(axis=(0, -2, -1))
        weight = np.exp(-distance / (sigma * patch) ** 2)
        weighted = weighted + weight * moved[:, around : around + height, around : around + width]
        weights = weights + weight
    return {"output": np.clip(weighted / weights, 0, 1)}


def similar_pixels(rng, H, W, patch, search):
    """Pixels that differ so little that each of the search has weight."""
    image = rng.uniform(0.4, 0.6, (3, H, W)).astype(np.float32)
    return {"input": image, "patch": patch, "search": search, "sigma": 0.12}


def iir_blur(input, alpha):
    def along(size):
        """The filter in both directions as a matrix: lower triangular, times its mirror image."""
        forward = alpha * np.tril((1 - alpha) ** np.abs(np.subtract.outer(range(size), range(size))))
        forward[:, 0] /= alpha
        return forward[::-1, ::-1] @ forward

    _, height, width = input.shape
    return {"output": along(height) @ input @ along(width).T}


def conv_layer(input, filter, bias):
    around = np.lib.stride_tricks.sliding_window_view(input, (3, 3), (1, 2))
    return {"output": np.maximum(np.einsum("nyxcij,cijk->nyxk", around, filter) + bias, 0)}


def depthwise_separable_conv(input, depthwise_filter, pointwise_filter, bias):
    padded = np.pad(input, [(0, 0), (1, 1), (1, 1), (0, 0)])
    around = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (1, 2))
    around = np.repeat(around, depthwise_filter.shape[-1], axis=3)
    depthwise = np.einsum("nyxdij,ijdm->nyxd", around, depthwise_filter)
    return {"output": np.maximum(depthwise @ pointwise_filter + bias, 0)}


IMAGE_SIZES = sizes("H W", (5, 7), (1, 1), (11, 3))

CASES = [
    Case(
        "pipelines/harris.tw", "harris",
        lambda rng, H, W: {"input": brightness(rng, 3, H, W)}, harris,
        sizes("H W", (9, 8), (7, 7), (7, 13)), tolerance=1e-6,
    ),
    Case(
        "pipelines/unsharp.tw", "unsharp",
        lambda rng, H, W: {"input": rng.uniform(0.1, 1, (3, H, W)).astype(np.float32)}, unsharp,
        IMAGE_SIZES, tolerance=2e-6,
    ),
    Case(
        "pipelines/bilateral_grid.tw", "bilateral_grid",
        lambda rng, H, W, **numbers: {"input": brightness(rng, H, W), **numbers}, bilateral_grid,
        [
            *sizes("H W r_sigma", (13, 18, 0.1), (1, 1, 0.1), (7, 9, 0.3), (9, 8, 1.5)),
            dict(H=5, W=11, r_sigma=0.17, s_sigma=3),
        ],
        tolerance=2e-6,
    ),
    Case(
        "pipelines/nl_means.tw", "nl_means", similar_pixels, nl_means,
        sizes("H W patch search", (5, 7, 7, 7), (1, 1, 7, 7), (11, 3, 3, 5), (6, 5, 4, 2)), tolerance=2e-6,
    ),
    Case(
        "pipelines/iir_blur.tw", "iir_blur",
        lambda rng, H, W: {"input": brightness(rng, 3, H, W), "alpha": 0.1}, iir_blur,
        IMAGE_SIZES, tolerance=1e-6,
    ),
    Case(
        "pipelines/conv_layer.tw", "conv_layer",
        lambda rng, N, H, W, CI, CO: {
            "input": floats(rng, N, H + 2, W + 2, CI),
            "filter": floats(rng, CI, 3, 3, CO),
            "bias": floats(rng, CO),
        },
        conv_layer, sizes("N H W CI CO", (2, 3, 4, 3, 2), (1, 1, 1, 1, 1), (1, 5, 3, 7, 5)), tolerance=2e-6,
    ),
    Case(
        "pipelines/depthwise_separable_conv.tw", "depthwise_separable_conv",
        lambda rng, N, H, W, C, K, M: {
            "input": floats(rng, N, H, W, C),
            "depthwise_filter": floats(rng, 3, 3, C * M, M),
            "pointwise_filter": floats(rng, C * M, K),
            "bias": floats(rng, K),
        },
        depthwise_separable_conv,
        sizes("N H W C K M", (2, 4, 5, 3, 2, 2), (1, 1, 1, 1, 1, 1), (1, 3, 7, 4, 5, 1)), tolerance=2e-6,
    ),
    Case(
        "pipelines/mat_mul.tw", "mat_mul",
        lambda rng, M, N, K: {"A": floats(rng, M, K), "B": floats(rng, K, N)},
        lambda A, B: {"out": A @ B}, sizes("M N K", (3, 4, 5), (1, 1, 1), (7, 2, 11)), tolerance=1e-6,
    ),
]
