"""Pipelines on image pyramids and grids: coarse levels are computed from fine ones, and sampled again."""

import numpy as np

from case import Case, pixels, sizes


def along(axis, function, image, *arguments):
    """Applies a function on the last axis to another one."""
    return np.moveaxis(function(np.moveaxis(image, axis, -1), *arguments), -1, axis)


def padded(image, before, after):
    return np.pad(image, [(0, 0)] * (image.ndim - 1) + [(before, after)], mode="edge")


def smaller(function, image):
    """Applies a function on the last axis to the columns, then to the rows."""
    return function(along(-2, function, image))


def larger(function, image, shape):
    """Applies a function to the rows, then to the columns; `shape` ends with the sizes that they get."""
    return along(-2, function, function(image, shape[-1]), shape[-2])


def binomial_half(line):
    """Every second element of a convolution with 1 2 1."""
    wide = padded(line, 1, 1)
    return ((wide[..., :-2] + 2 * wide[..., 1:-1] + wide[..., 2:]) / 4)[..., ::2]


def midpoints(line, size):
    """Twice as many elements: the line itself, and between two elements their mean."""
    wide = padded(line, 0, 1)
    means = (wide[..., :-1] + wide[..., 1:]) / 2
    return np.stack([line, means], axis=-1).reshape(*line.shape[:-1], -1)[..., :size]


def interpolate(input):
    alpha = input[3:]
    levels = [np.concatenate([input[:3] * alpha, alpha])]
    for _ in range(9):
        levels.append(smaller(binomial_half, levels[-1]))
    result = levels.pop()
    while levels:
        level = levels.pop()
        result = level + (1 - level[3]) * larger(midpoints, result, level.shape)
    return {"output": result[:3] / result[3]}


def smooth_half(line):
    """Every second element of a convolution with 1 3 3 1."""
    wide = padded(line, 1, 2)
    sums = wide[..., :-3] + 3 * (wide[..., 1:-2] + wide[..., 2:-1]) + wide[..., 3:]
    return (sums / 8)[..., ::2]


def quarters(line, size):
    """Twice as many elements, at a quarter and at three quarters of the way between two."""
    wide = padded(line, 1, 1)
    left = wide[..., :-2] / 4 + line * 3 / 4
    right = line * 3 / 4 + wide[..., 2:] / 4
    return np.stack([left, right], axis=-1).reshape(*line.shape[:-1], -1)[..., :size]


def local_laplacian(input, intensities, alpha, beta):
    """In float32 as the program, since the last step cuts off the fraction."""
    single = np.float32
    alpha, beta, top = single(alpha), single(beta), intensities - 1
    unit = input.astype(single) / single(65535)
    gray = single(0.299) * unit[0] + single(0.587) * unit[1] + single(0.114) * unit[2]

    v = (np.clip(np.trunc(gray * (256 * top)), 0, 256 * top) - 256 * np.arange(top + 1)[:, None, None]).astype(single)
    v /= 256
    level = np.arange(top + 1, dtype=single)[:, None, None] / single(top)
    bell = np.exp((-v * v / 2).astype(np.float64)).astype(single)
    stacks = [beta * (gray - level) + level + alpha * v * bell]
    grays = [gray]
    for _ in range(7):
        stacks.append(smaller(smooth_half, stacks[-1]))
        grays.append(smaller(smooth_half, grays[-1]))

    result = 0
    for j in reversed(range(8)):
        shape = grays[j].shape
        detail = stacks[j] - larger(quarters, stacks[j + 1], shape) if j < 7 else stacks[j]
        position = grays[j] * single(top)
        below = np.clip(position.astype(int), 0, top - 1)
        t = position - below.astype(single)
        low, high = (np.take_along_axis(detail, n[None], axis=0)[0] for n in (below, below + 1))
        picked = low * (1 - t) + high * t
        result = larger(quarters, result, shape) + picked if j < 7 else picked
    color = input.astype(single) * (result + single(0.01)) / (gray + single(0.01))
    return {"output": np.clip(color, 0, 65535).astype(np.uint16)}


def opaque(rng, *shape):
    """Positive numbers, so that no alpha is 0."""
    return rng.uniform(0.1, 1, shape).astype(np.float32)


CASES = [
    Case(
        "pipelines/interpolate.tw", "interpolate",
        lambda rng, H, W: {"input": opaque(rng, 4, H, W)}, interpolate,
        sizes("H W", (21, 17), (1, 1), (7, 40), (33, 2)),
    ),
    Case(
        "pipelines/local_laplacian.tw", "local_laplacian",
        lambda rng, H, W, intensities: {
            "input": rng.integers(0, 65536, (3, H, W), dtype=np.uint16),
            "intensities": intensities, "alpha": 0.3, "beta": 0.8,
        },
        local_laplacian, sizes("H W intensities", (21, 17, 4), (1, 1, 2), (7, 40, 8), (33, 2, 3)),
    ),
]
