"""Pipelines on image pyramids and grids: coarse levels come from fine ones and are sampled."""

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

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
    """Applies a function to the rows, then to the columns; `shape` ends with their new sizes."""
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

    k = np.arange(top + 1, dtype=single)[:, None, None]
    v = np.trunc(gray * (256 * top)).clip(0, 256 * top) / 256 - k
    level = k / single(top)
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


def lens_blur(left, right, slices, focus, scale, samples, R):
    """The inputs are extended by a margin. Levels of the pyramid are functions of coordinates."""
    _, H, W = left.shape
    margin = R + 4
    l, r = (
        np.pad(im.astype(float), [(0, 0), (margin, margin), (margin, margin + 2 * slices)], mode="edge")
        for im in (left, right)
    )
    width = W + 2 * margin
    shifted = [np.abs(l[:, :, :width] - r[:, :, d : d + width]) for d in range(2 * slices)]
    cost = np.array([(np.minimum(*shifted[2 * z : 2 * z + 2]) ** 2).sum(axis=0) for z in range(slices)])
    confidence = np.broadcast_to(cost.var(axis=0), cost.shape)
    finest = np.stack([cost * confidence, confidence])

    def sampled(level, origin):
        def at(y, x):
            y, x = (np.clip(v + origin, 0, n - 1) for v, n in zip((y, x), level.shape[-2:]))
            return level[..., y[:, None], x]

        return at

    push = [sampled(finest, margin)]
    for k in range(1, 8):
        h, w = max(H >> k, 1), max(W >> k, 1)
        y, x = np.arange(-1, 2 * h + 1), np.arange(-1, 2 * w + 1)
        push.append(sampled(smaller(every_second, push[-1](y, x)), 0))

    def pull(k, y, x):
        if k == 7:
            return push[k](y, x)
        rough = pull(k + 1, *(np.arange(n[0] // 2 - 1, n[-1] // 2 + 2) for n in (y, x)))
        fine = larger(inner_quarters, rough, (None, None))
        return (fine[..., y[0] % 2 :, x[0] % 2 :][..., : len(y), : len(x)] + push[k](y, x)) / 2

    total, weight = pull(0, np.arange(-R, H + R), np.arange(-R, W + R))
    depth = (total / weight).argmin(axis=0)
    radius = np.abs(depth - focus) * scale
    worst = sliding_window_view(radius, (2 * R + 1, 2 * R + 1)).max(axis=(2, 3))

    s, y, x = np.ogrid[:samples, :H, :W]
    offsets = [(uniform(seed, s, y, x) - 0.5) * 2 * worst for seed in (0, 1)]
    u, v = (np.trunc(offset).clip(-R, R).astype(int) for offset in offsets)
    there = (y + v + R, x + u + R)
    here = (slice(R, R + H), slice(R, R + W))
    square = u**2 + v**2
    counts = ((square < radius[here] ** 2) | (depth[there] < depth[here])) & (square < radius[there] ** 2)
    extended = np.pad(left.astype(float), [(0, 0), (R, R), (R, R)], mode="edge")
    colors = left + (counts * extended[:, there[0], there[1]]).sum(axis=1)
    return {"final": colors / (255 * (1 + counts.sum(axis=0)))}


def every_second(line):
    """As `smooth_half`, for a line that has one element more at its beginning and at its end."""
    return (line[..., :-3:2] + 3 * (line[..., 1:-2:2] + line[..., 2:-1:2]) + line[..., 3::2]) / 8


def inner_quarters(line, _):
    """As `quarters`, without the elements that need one beyond an end."""
    return quarters(line, None)[..., 2:-2]


def uniform(seed, *coordinates):
    """Random numbers from 0 to 1 by Philox4x32-10: seed as key, coordinates as counter."""
    low, shift = np.uint64(0xFFFFFFFF), np.uint64(32)
    counter = [np.asarray(c, dtype=np.uint64) for c in (*coordinates, 0, 0, 0, 0)][:4]
    key = [seed, 0]
    for _ in range(10):
        first = counter[0] * np.uint64(0xD2511F53)
        second = counter[2] * np.uint64(0xCD9E8D57)
        counter = [
            (second >> shift) ^ counter[1] ^ np.uint64(key[0]), second & low,
            (first >> shift) ^ counter[3] ^ np.uint64(key[1]), first & low,
        ]
        key = [(key[0] + 0x9E3779B9) % 2**32, (key[1] + 0xBB67AE85) % 2**32]
    return (counter[0] >> np.uint64(8)) / 2.0**24


def bgu(splat_loc, values, slice_loc, cell, r_sigma, factor):
    # The scale of brightness, and the number of its cells, in single precision.
    scale = np.float32(1) / np.float32(r_sigma)
    bins = int(scale)
    (_, h, w), (_, H, W) = splat_loc.shape, slice_loc.shape
    luma = np.array([0.25, 0.5, 0.25])
    big = cell * factor
    rows, columns = (H - 1) // big + 2, (W - 1) // big + 2

    # Moments of every pixel of the cells, which begin half a cell before the image.
    y = np.arange(-3 * cell - cell // 2, (rows + 3) * cell - cell // 2)
    x = np.arange(-3 * cell - cell // 2, (columns + 3) * cell - cell // 2)
    place = (slice(None), y.clip(0, h - 1)[:, None], x.clip(0, w - 1))
    source = np.concatenate([splat_loc[place], np.ones((1, len(y), len(x)))])
    target = values[place]
    brightness = np.einsum("c,cyx->yx", luma, source[:3]).clip(0, 1) * scale
    # Half a bin goes up.
    in_bin = np.floor(brightness + 0.5).astype(int) == np.arange(-3, bins + 5)[:, None, None]

    def grid(moments):
        cells = moments.reshape(*moments.shape[:2], rows + 6, cell, columns + 6, cell)
        bin_of = in_bin.reshape(-1, rows + 6, cell, columns + 6, cell)
        full = np.einsum("ijyaxb,zyaxb->zyxij", cells, bin_of)
        taps = 1 / (np.abs(np.arange(-3, 4)) + 1.0) ** 3
        for axis in range(3):
            full = sliding_window_view(full, 7, axis=axis) @ taps
        return full

    matrix = grid(np.einsum("iyx,jyx->ijyx", source, source)) + 0.1 * np.eye(4)
    wanted = grid(np.einsum("iyx,jyx->ijyx", source, target)) + 0.1 * np.eye(4, 3)
    line = np.linalg.solve(matrix, wanted)

    # Trilinear samples of the grid.
    y, x = np.divmod(np.arange(H), big), np.divmod(np.arange(W), big)
    z = np.einsum("c,cyx->yx", luma, slice_loc).clip(0, 1) * scale
    z = (z.astype(int), z - z.astype(int))
    fitted = 0
    for dz, dy, dx in np.ndindex(2, 2, 2):
        weight_y, weight_x = np.abs(1 - dy - y[1] / big), np.abs(1 - dx - x[1] / big)
        weight = np.abs(1 - dz - z[1]) * weight_y[:, None] * weight_x
        fitted = fitted + weight[..., None, None] * line[z[0] + dz, y[0][:, None] + dy, x[0] + dx]
    pixel = np.concatenate([slice_loc, np.ones((1, H, W))])
    return {"output": np.einsum("yxic,iyx->cyx", fitted, pixel).clip(0, 1)}


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
        local_laplacian, sizes("H W intensities", (21, 17, 4), (1, 1, 2), (7, 40, 8), (33, 2, 3)), off_by=1,
    ),
    Case(
        "pipelines/lens_blur.tw", "lens_blur",
        lambda rng, H, W, slices, focus, samples: {
            "left": pixels(rng, 3, H, W), "right": pixels(rng, 3, H, W),
            "slices": slices, "focus": focus, "scale": 0.5, "samples": samples,
            "R": max(slices - focus, focus) // 2,
        },
        lens_blur, sizes("H W slices focus samples", (9, 13, 5, 2, 6), (2, 3, 2, 1, 2), (16, 5, 7, 1, 9)),
    ),
    Case(
        "pipelines/bgu.tw", "bgu",
        lambda rng, h, w, H, W, cell, r_sigma, factor: {
            **{name: rng.uniform(0, 1, (3, h, w)).astype(np.float32) for name in ("splat_loc", "values")},
            "slice_loc": rng.uniform(0, 1, (3, H, W)).astype(np.float32),
            "cell": cell, "r_sigma": r_sigma, "factor": factor,
        },
        bgu, sizes("h w H W cell r_sigma factor", (9, 7, 27, 20, 4, 0.25, 3), (3, 5, 11, 5, 3, 0.45, 4)),
        tolerance=2e-5,
    ),
]
