"""Pipelines on image pyramids and grids: coarse levels come from fine ones and are sampled."""

from functools import partial

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from case import Case, pixels, sizes


def along(axis, function, image, *arguments):
    """Applies a function on the last axis to another one."""
    return np.moveaxis(function(np.moveaxis(image, axis, -1), *arguments), -1, axis)


def smaller(function, image):
    """Applies a function on the last axis to the columns, then to the rows."""
    return function(along(-2, function, image))


def larger(function, image, y, x):
    """Applies a function of a line and its new coordinates to the rows, then to the columns."""
    return along(-2, function, function(image, x), y)


# Levels of pyramids are functions of coordinates without bounds. Their arguments are consecutive rows and columns.


def extended(image, origin=0):
    """An image whose border is repeated. `origin` is the row and column of the place (0, 0)."""

    def at(y, x):
        y, x = (np.clip(v + origin, 0, n - 1) for v, n in zip((y, x), image.shape[-2:]))
        return image[..., y[:, None], x]

    return at


def halved(level, weigh):
    """The next coarser level. `weigh` takes lines from 2*x - 1, for the first x, to 2*x + 2, for the last."""

    def at(y, x):
        return smaller(weigh, level(*(np.arange(2 * v[0] - 1, 2 * v[-1] + 3) for v in (y, x))))

    return at


def doubled(level, sample):
    """The next finer level. `sample` takes lines from x // 2 - 1, for the first x, to x // 2 + 1, for the last."""

    def at(y, x):
        return larger(sample, level(*(np.arange(v[0] // 2 - 1, v[-1] // 2 + 2) for v in (y, x))), y, x)

    return at


def binomial(line):
    """Every second element of a convolution with 1 2 1."""
    return (line[..., :-3:2] + 2 * line[..., 1:-2:2] + line[..., 2:-1:2]) / 4


def smooth(line):
    """Every second element of a convolution with 1 3 3 1."""
    return (line[..., :-3:2] + 3 * (line[..., 1:-2:2] + line[..., 2:-1:2]) + line[..., 3::2]) / 8


def midpoints(line, x):
    """Elements at even places, and between two elements their mean."""
    first = x[0] // 2 - 1
    return (line[..., x // 2 - first] + line[..., (x + 1) // 2 - first]) / 2


def quarters(line, x):
    """Between two elements, at a quarter and at three quarters of the way."""
    near = x // 2 - (x[0] // 2 - 1)
    far = near + np.where(x % 2 == 0, -1, 1)
    return line[..., near] * 3 / 4 + line[..., far] / 4


def interpolate(input, levels=10):
    _, H, W = input.shape
    alpha = input[3:]
    pushed = [extended(np.concatenate([input[:3] * alpha, alpha]))]
    for k in range(1, levels):
        fine = pushed[-1]
        if k == 4:
            fine = extended(fine(np.arange(H // 8 + 1), np.arange(W // 8 + 1)))
        pushed.append(halved(fine, binomial))

    def filled(k, y, x):
        level = pushed[k](y, x)
        if k == levels - 1:
            return level
        return level + (1 - level[3]) * doubled(partial(filled, k + 1), midpoints)(y, x)

    result = filled(0, np.arange(H), np.arange(W))
    return {"output": result[:3] / result[3]}


def local_laplacian(input, intensities, alpha, beta, levels=8):
    """In float32 as the program, since the last step cuts off the fraction."""
    single = np.float32
    alpha, beta, top = single(alpha), single(beta), intensities - 1
    unit = input.astype(single) / single(65535)
    gray = single(0.299) * unit[0] + single(0.587) * unit[1] + single(0.114) * unit[2]

    k = np.arange(top + 1, dtype=single)[:, None, None]
    v = np.trunc(gray * (256 * top)).clip(0, 256 * top) / 256 - k
    level = k / single(top)
    bell = np.exp((-v * v / 2).astype(np.float64)).astype(single)
    stacks = [extended(beta * (gray - level) + level + alpha * v * bell)]
    grays = [extended(gray)]
    for _ in range(1, levels):
        stacks.append(halved(stacks[-1], smooth))
        grays.append(halved(grays[-1], smooth))

    def collapsed(j, y, x):
        detail = stacks[j](y, x)
        if j < levels - 1:
            detail = detail - doubled(stacks[j + 1], quarters)(y, x)
        position = grays[j](y, x) * single(top)
        below = np.clip(position.astype(int), 0, top - 1)
        t = position - below.astype(single)
        low, high = (np.take_along_axis(detail, n[None], axis=0)[0] for n in (below, below + 1))
        picked = low * (1 - t) + high * t
        return picked if j == levels - 1 else doubled(partial(collapsed, j + 1), quarters)(y, x) + picked

    result = collapsed(0, np.arange(gray.shape[0]), np.arange(gray.shape[1]))
    color = input.astype(single) * (result + single(0.01)) / (gray + single(0.01))
    return {"output": np.clip(color, 0, 65535).astype(np.uint16)}


def lens_blur(left, right, slices, focus, scale, samples, R):
    """The inputs are extended by a margin, and so is each level but the first."""
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

    push = [extended(finest, margin)]
    for k in range(1, 8):
        h, w = max(H >> k, 1), max(W >> k, 1)
        push.append(extended(halved(push[-1], smooth)(np.arange(h), np.arange(w))))

    def pull(k, y, x):
        level = push[k](y, x)
        return level if k == 7 else (doubled(partial(pull, k + 1), quarters)(y, x) + level) / 2

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
    around = np.pad(left.astype(float), [(0, 0), (R, R), (R, R)], mode="edge")
    colors = left + (counts * around[:, there[0], there[1]]).sum(axis=1)
    return {"final": colors / (255 * (1 + counts.sum(axis=0)))}


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
        lambda rng, H, W, levels: {"input": opaque(rng, 4, H, W), "levels": levels}, interpolate,
        sizes("H W levels", (21, 17, 10), (1, 1, 6), (7, 40, 7), (33, 2, 5)),
    ),
    Case(
        "pipelines/local_laplacian.tw", "local_laplacian",
        lambda rng, H, W, intensities, levels: {
            "input": rng.integers(0, 65536, (3, H, W), dtype=np.uint16),
            "intensities": intensities, "alpha": 0.3, "beta": 0.8, "levels": levels,
        },
        local_laplacian,
        sizes("H W intensities levels", (21, 17, 4, 4), (9, 5, 2, 8), (1, 1, 2, 3), (7, 40, 8, 3), (33, 2, 3, 5)),
        off_by=1,
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
