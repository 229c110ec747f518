"""Image pipelines: scatter, ordered recurrences, pyramids and borders."""

import numpy as np

from case import Case, floats, pixels, sizes


def equalize(rgb):
    wide = rgb.astype(np.int64)
    luma = (wide @ [77, 150, 29] + 128) // 256
    hist = np.bincount(luma.ravel(), minlength=256)
    level = hist.cumsum() * 255 // luma.size
    shift = level[luma] - luma
    out = np.clip(wide + shift[:, :, None], 0, 255)
    return {"hist": hist.astype(np.int32), "out": out.astype(np.uint8)}


def iir_blur(I, alpha):
    def both_ways(rows):
        rows = rows.copy()
        for y in range(1, len(rows)):
            rows[y] = alpha * rows[y] + (1 - alpha) * rows[y - 1]
        for y in reversed(range(len(rows) - 1)):
            rows[y] = alpha * rows[y] + (1 - alpha) * rows[y + 1]
        return rows

    return {"O": both_ways(both_ways(I).T).T}


def downsample(I):
    height, width = I.shape
    even = np.pad(I, [(0, height % 2), (0, width % 2)], mode="edge")
    return even.reshape(-(-height // 2), 2, -(-width // 2), 2).mean(axis=(1, 3))


def upsample(small, like):
    return np.kron(small, np.ones((2, 2)))[: like.shape[0], : like.shape[1]]


def pyramid(I, gain):
    level1 = downsample(I)
    level2 = downsample(level1)
    detail0 = I - upsample(level1, I)
    detail1 = level1 - upsample(level2, level1)
    boosted = upsample(level2, level1) + gain * detail1
    return {"O": upsample(boosted, I) + gain * detail0}


def stencil(padded, weights):
    """The sum of nine shifted images; `padded` is one pixel larger on every side."""
    height, width = padded.shape[0] - 2, padded.shape[1] - 2
    return sum(
        weights[dy][dx] * padded[dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)
    )


def blur_zero(I):
    return {"O": stencil(np.pad(I, 1), np.full((3, 3), 1 / 9))}


def blur_repeat(I):
    total = stencil(np.pad(I.astype(np.int64), 1, mode="edge"), [[1, 2, 1], [2, 4, 2], [1, 2, 1]])
    return {"O": ((total + 8) // 16).astype(np.uint8)}


IMAGE_SIZES = sizes("H W", (5, 7), (1, 1), (1, 6), (9, 1), (2, 3), (8, 4))

CASES = [
    Case(
        "images/equalize.tw", "equalize",
        lambda rng, H, W: {"rgb": pixels(rng, H, W, 3)}, equalize, IMAGE_SIZES,
    ),
    Case(
        "images/iir_blur.tw", "iir_blur",
        lambda rng, H, W: {"I": floats(rng, H, W), "alpha": 0.25}, iir_blur, IMAGE_SIZES,
    ),
    Case(
        "images/pyramid.tw", "downsample",
        lambda rng, H, W: {"I": floats(rng, H, W)}, lambda I: {"O": downsample(I)}, IMAGE_SIZES,
    ),
    Case(
        "images/pyramid.tw", "pyramid",
        lambda rng, H, W: {"I": floats(rng, H, W), "gain": 1.5}, pyramid, IMAGE_SIZES,
    ),
    Case(
        "images/blur_zero.tw", "blur_zero",
        lambda rng, H, W: {"I": floats(rng, H, W)}, blur_zero, IMAGE_SIZES,
    ),
    Case(
        "images/blur_repeat.tw", "blur_repeat",
        lambda rng, H, W: {"I": pixels(rng, H, W)}, blur_repeat, IMAGE_SIZES,
    ),
]
