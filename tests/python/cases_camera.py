"""Pipelines after Halide's applications: a camera, a learned demosaic, a histogram, stencils and a disc."""

import numpy as np

from case import Case, floats, pixels, sizes


def moved(image, dy, dx):
    """The pixel at (y + dy, x + dx) of each pixel; beyond the edges the image continues round."""
    return np.roll(image, (-dy, -dx), axis=(-2, -1))


def camera_pipe(
    input, matrix_3200, matrix_7000, color_temp, gamma, contrast, sharpen_strength, blackLevel, whiteLevel
):
    colours = demosaiced(without_hot_pixels(input.astype(np.int64)))
    matrix = colour_matrix(matrix_3200, matrix_7000, color_temp)
    corrected = signed16((np.tensordot(matrix[:, :3], colours, axes=1) + matrix[:, 3, None, None]) // 256)
    curve = tone_curve(gamma, contrast, blackLevel, whiteLevel)
    sharp = sharpened(curve[np.clip(corrected, 0, 1023)], sharpen_strength)
    # The pixels at the edges come from the opposite ones. The result leaves them out.
    height, width = (size // 32 * 32 for size in (input.shape[0] - 24, input.shape[1] - 32))
    return {"processed": sharp[:, 12 : 12 + height, 16 : 16 + width]}


def without_hot_pixels(raw):
    height, width = raw.shape
    raw = raw[: height // 2 * 2, : width // 2 * 2]
    neighbours = [moved(raw, dy, dx) for dy, dx in [(0, -2), (0, 2), (-2, 0), (2, 0)]]
    return np.minimum(raw, np.max(neighbours, axis=0))


def mean(a, b):
    return (a + b + 1) // 2


def signed16(wide):
    return wide.astype(np.int16).astype(np.int64)


def demosaiced(raw):
    gr, r, b, gb = (raw[y::2, x::2] for y in range(2) for x in range(2))

    def along_smaller(image, first, other, second):
        """The mean of two pixels of `image`, or of two of `other` if these differ by no more."""
        a, b = (moved(image, *at) for at in first)
        c, d = (moved(other, *at) for at in second)
        return np.where(abs(a - b) < abs(c - d), mean(a, b), mean(c, d))

    green_r = along_smaller(gr, [(0, 0), (0, 1)], gb, [(-1, 0), (0, 0)])
    green_b = along_smaller(gb, [(0, -1), (0, 0)], gr, [(0, 0), (1, 0)])

    def guided(green, source, green_source, *at):
        """Two pixels of `source`, with green's deviation from its mean; `at` names the two."""
        first, second = at
        return (
            green
            - mean(moved(green_source, *first), moved(green_source, *second))
            + mean(moved(source, *first), moved(source, *second))
        )

    def diagonal(green, source, green_source, dy, dx):
        falling, rising = [(0, 0), (dy, dx)], [(0, dx), (dy, 0)]
        differs = [abs(moved(source, *a) - moved(source, *b)) for a, b in (falling, rising)]
        return np.where(
            differs[0] < differs[1],
            guided(green, source, green_source, *falling),
            guided(green, source, green_source, *rising),
        )

    red = [
        guided(gr, r, green_r, (0, 0), (0, -1)),
        r,
        diagonal(green_b, r, green_r, 1, -1),
        guided(gb, r, green_r, (0, 0), (1, 0)),
    ]
    green = [gr, green_r, green_b, gb]
    blue = [
        guided(gr, b, green_b, (0, 0), (-1, 0)),
        diagonal(green_r, b, green_b, -1, 1),
        b,
        guided(gb, b, green_b, (0, 0), (0, 1)),
    ]
    return signed16(np.stack([interleaved(sites) for sites in (red, green, blue)]))


def interleaved(sites):
    """One image from its pixels in even and odd rows and columns."""
    height, width = sites[0].shape
    cells = np.array(sites).reshape(2, 2, height, width)
    return cells.transpose(2, 0, 3, 1).reshape(2 * height, 2 * width)


def colour_matrix(warm, cold, temperature):
    """In float32, as its fraction is cut off."""
    one = np.float32(1)
    part = (one / np.float32(temperature) - one / 3200) / (one / 7000 - one / 3200)
    mixed = warm.astype(np.float32) * part + cold.astype(np.float32) * (1 - part)
    return (mixed * 256).astype(np.int64)


def tone_curve(gamma, contrast, black, white):
    """In float32, as its fraction is cut off."""
    level = np.arange(1024)
    b = 2 - np.float32(2) ** np.float32(contrast / 100)
    a = 2 - 2 * b
    linear = np.clip((level - black).astype(np.float32) * (np.float32(1) / np.float32(white - black)), 0, 1)
    bright = linear ** np.float32(1 / gamma)
    dark = 1 - bright
    curve = np.where(bright > 0.5, 1 - (a * dark * dark + b * dark), a * bright * bright + b * bright)
    curve = np.clip(curve * 255 + np.float32(0.5), 0, 255).astype(np.int64)
    return np.select([level <= black, level > white], [0, 255], curve)


def sharpened(image, strength):
    rows = mean(mean(moved(image, -1, 0), moved(image, 1, 0)), image)
    blurred = mean(mean(moved(rows, 0, -1), moved(rows, 0, 1)), rows)
    added = (image - blurred) * int(np.clip(strength * 32, 0, 255)) // 32
    return np.clip(image + added, 0, 255).astype(np.uint8)


def camera_inputs(rng, H, W):
    def matrix():
        return np.hstack([1.8 * np.eye(3), np.zeros((3, 1))]).astype(np.float32) + 0.4 * floats(rng, 3, 4)

    return {
        "input": rng.integers(100, 400, (H, W), dtype=np.uint16),
        "matrix_3200": matrix(), "matrix_7000": matrix(),
        "color_temp": 3700.0, "gamma": 2.0, "contrast": 50.0, "sharpen_strength": 1.5,
        "blackLevel": 25, "whiteLevel": 1000,
    }


def convolved(image, weight, bias):
    """3 by 3 windows of the image with zeros around it, times the weights."""
    padded = np.pad(image, [(0, 0), (1, 1), (1, 1)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.einsum("nyxij,mnij->myx", windows, weight) + bias[:, None, None]


def demosaic(
    mosaic, first_weight, first_bias, weight, bias, last_weight, last_bias, full_weight, full_bias, layers
):
    height, width = mosaic.shape
    cells = mosaic.reshape(height // 2, 2, width // 2, 2).transpose(1, 3, 0, 2)
    features = cells.reshape(4, height // 2, width // 2)
    for w, b in [(first_weight, first_bias), *zip(weight, bias, strict=True)]:
        features = np.maximum(convolved(features, w, b), 0)
    colours = convolved(features, last_weight, last_bias).reshape(3, 4, height // 2, width // 2)
    colours = np.stack([interleaved(sites) for sites in colours])
    pattern = np.tile([[1, 0], [2, 1]], (height // 2, width // 2))
    masked = np.where(pattern == np.arange(3)[:, None, None], mosaic, 0)
    return {"image": convolved(np.concatenate([colours, masked]), full_weight, full_bias)}


def demosaic_inputs(rng, H, W, C, layers):
    def weights(*shape):
        return floats(rng, *shape) / np.float32(np.sqrt(9 * shape[-3]))

    return {
        "mosaic": floats(rng, H, W),
        "first_weight": weights(C, 4, 3, 3), "first_bias": floats(rng, C),
        "weight": weights(layers, C, C, 3, 3), "bias": floats(rng, layers, C),
        "last_weight": weights(12, C, 3, 3), "last_bias": floats(rng, 12),
        "full_weight": weights(3, 6, 3, 3), "full_bias": floats(rng, 3),
        "layers": layers,
    }


def hist(input):
    """In float32: fractions are cut off, and each operation rounds."""
    red, green, blue = input.astype(np.float32)
    part = np.float32
    luma = part(0.299) * red + part(0.587) * green + part(0.114) * blue
    cr = (red - luma) * part(0.713) + 128 - 128
    cb = (blue - luma) * part(0.564) + 128 - 128
    level = np.minimum(luma.astype(np.int64), 255)
    pixels_up_to = np.bincount(level.ravel(), minlength=256).cumsum().astype(np.float32)
    spread = np.clip(pixels_up_to * part(255 / level.size), 0, 255)[level]
    out = [
        spread + part(1.4) * cr,
        spread - part(0.343) * cb - part(0.711) * cr,
        spread + part(1.765) * cb,
    ]
    return {"output": np.clip(out, 0, 255).astype(np.uint8)}


def stencil_chain(input, stages):
    """The input is extended once, and each stage leaves out a margin of 2 pixels."""
    image = np.pad(input, 2 * stages, mode="edge").astype(np.int64)
    weights = np.outer(np.arange(1, 6), np.arange(1, 6))
    for _ in range(stages):
        windows = np.lib.stride_tricks.sliding_window_view(image, (5, 5))
        image = np.einsum("yxij,ij->yx", windows, weights) % 65536
    return {"output": image.astype(np.uint16)}


def max_filter(input, radius, slices):
    """Every offset of the disc by itself."""
    margin = radius + 1
    _, height, width = input.shape
    padded = np.pad(input, [(0, 0), (margin, margin), (margin, margin)], mode="edge")
    offsets = np.arange(radius + 1)
    out = np.full(input.shape, -np.inf)
    for dx in range(-radius, radius + 1):
        rows = np.count_nonzero(dx**2 + offsets**2 < (radius + 0.25) ** 2)
        for dy in range(-rows, rows + 1):
            y, x = margin + dy, margin + dx
            out = np.maximum(out, padded[:, y : y + height, x : x + width])
    return {"output": out}


CASES = [
    Case("pipelines/camera_pipe.tw", "camera_pipe", camera_inputs, camera_pipe,
         sizes("H W", (61, 71), (88, 64), (56, 97))),
    Case("pipelines/demosaic.tw", "demosaic", demosaic_inputs, demosaic,
         sizes("H W C layers", (6, 10, 3, 2), (2, 2, 1, 1), (4, 6, 5, 3))),
    Case("pipelines/hist.tw", "hist", lambda rng, H, W: {"input": pixels(rng, 3, H, W)}, hist,
         sizes("H W", (5, 7), (1, 1), (23, 31))),
    Case("pipelines/stencil_chain.tw", "stencil_chain",
         lambda rng, H, W, stages: {"input": rng.integers(0, 65536, (H, W), dtype=np.uint16), "stages": stages},
         stencil_chain, sizes("H W stages", (5, 7, 3), (1, 1, 2), (9, 4, 1), (3, 5, 32))),
    Case("pipelines/max_filter.tw", "max_filter",
         lambda rng, H, W, radius, slices: {"input": floats(rng, 3, H, W), "radius": radius, "slices": slices},
         max_filter, sizes("H W radius slices", (13, 9, 3, 4), (5, 7, 26, 6), (1, 1, 1, 3), (40, 3, 5, 4))),
]
