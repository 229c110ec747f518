#!/usr/bin/env python3
"""Makes test pictures: a scene, its raw picture from a sensor, a stereo pair, and damaged scenes.

    python3 scripts/test_pictures.py FOLDER [--width 640] [--height 480] [--seed 0]

The scene has gradients, edges, textures and noise. The same seed and size give the same files:

    scene.png        RGB, 8 bits, with the sRGB curve
    scene_16.png     RGB, 16 bits, with the sRGB curve
    scene.pfm        RGB, float32, linear
    gray.png         gray, 8 bits, with the sRGB curve
    bayer.png        one channel of 16 bits: the Bayer mosaic GRBG of the scene, linear, as a camera of
                     10 bits stores it: black is 25, white 1023. It has noise, and a few hot pixels
    bayer.raw        the same, as little-endian uint16 without a header
    mosaic.png       one channel of 8 bits: the Bayer mosaic GRBG of scene.png
    left.png         RGB, 8 bits, and the same from further to the right:
    right.png        the pixel (y, x) of left is the pixel (y, x - disparity(y, x)) of right, if both see it
    disparity.pfm    gray, float32
    noisy.png        scene.png with noise
    dim.png          scene.png in 60 of its 256 levels
    levels_16.png    gray.png with the same numbers from 0 to 255 in 16 bits
    holes.png        RGB and alpha: scene.png, transparent where pixels are missing
    small_16.png     scene_16.png at a quarter of its height and width

Some programs need numbers beside a picture:

    matrix_3200.npy  colour matrices of the sensor, for light of 3200 and of 7000 kelvin
    matrix_7000.npy
    filters.npz      weights of examples/pipelines/demosaic.tw: the filters of Malvar, He and Cutler

Needs NumPy, and nothing else.
"""

import argparse
import io
import struct
import zlib
from pathlib import Path

import numpy as np

BLACK, WHITE = 25, 1023
# One pixel of so many is hot.
HOT_PIXELS = 5000
NEAR, FAR = 12, 4
SMALLEST = 32
# The colours of the sites of a Bayer cell: green, red, blue, green.
SITES = (1, 0, 2, 1)


# --- The scene.


def grid(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rows and columns of all pixels, from 0 to 1."""
    return np.meshgrid(np.linspace(0, 1, height), np.linspace(0, 1, width), indexing="ij")


def scene(height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Returns a linear RGB picture (height, width, 3) of floats from 0 to 1."""
    y, x = grid(height, width)
    picture = sky(y, rng)
    add_ridges(picture, y, rng)
    add_balloons(picture, y, x * width / height, rng)
    add_houses(picture, y, x * width / height, rng)
    add_textures(picture, y, x)
    return np.clip(picture + rng.normal(0, 0.004, picture.shape), 0.002, 1)


def fractal(shape: tuple[int, int], rng: np.random.Generator, cells: int, octaves: int = 6) -> np.ndarray:
    """Returns smooth noise of mean 0: octaves of half the size and 0.55 of the height each."""
    y, x = grid(*shape)
    total = np.zeros(shape)
    for octave in range(octaves):
        rows, columns = cells << octave, (cells << octave) * shape[1] // max(shape) + 1
        values = rng.uniform(-1, 1, (rows + 2, columns + 2))
        i, j = (y * rows).astype(int), (x * columns).astype(int)
        # Smooth steps, so that no cell shows.
        fy, fx = (part * part * (3 - 2 * part) for part in (y * rows - i, x * columns - j))
        above = values[i, j] * (1 - fx) + values[i, j + 1] * fx
        below = values[i + 1, j] * (1 - fx) + values[i + 1, j + 1] * fx
        total += 0.55**octave * (above * (1 - fy) + below * fy)
    return total


def sky(y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns an evening sky with clouds."""
    down = np.clip(y / 0.6, 0, 1)[..., None]
    picture = (1 - down) * [0.1, 0.28, 0.7] + down * [0.95, 0.55, 0.3]
    clouds = np.clip(fractal(y.shape, rng, 4), 0, 1)[..., None] * (1 - 0.6 * down)
    return picture * (1 - clouds) + clouds * [1.0, 0.9, 0.85]


def add_ridges(picture: np.ndarray, y: np.ndarray, rng: np.random.Generator):
    """Draws three ridges, one before the other: rock in haze, forest, and a meadow."""
    ridges = [
        (0.46, 0.16, [0.3, 0.27, 0.36]),
        (0.56, 0.07, [0.03, 0.09, 0.06]),
        (0.66, 0.03, [0.12, 0.26, 0.03]),
    ]
    for number, (top, height, colour) in enumerate(ridges):
        profile = top - height * fractal((2, y.shape[1]), rng, 4 + 2 * number)[0]
        texture = fractal(y.shape, rng, 24 << number, 4)
        ground = np.multiply.outer(1 + 0.6 * texture, colour)
        picture[...] = np.where((y > profile)[..., None], ground, picture)


def add_balloons(picture: np.ndarray, y: np.ndarray, x: np.ndarray, rng: np.random.Generator):
    """Draws discs with stripes in the sky."""
    for number in range(5):
        row, size = rng.uniform(0.12, 0.4), rng.uniform(0.05, 0.11)
        column = x.max() * (number + rng.uniform(0.2, 0.8)) / 5
        first, second = rng.uniform(0, 1, (2, 3))
        inside = (y - row) ** 2 + (x - column) ** 2 < size**2
        stripe = np.floor((x - column) / size * 3) % 2 == 0
        light = 0.6 + 0.5 * np.clip((row - y) / size + 0.5, -0.5, 0.8)
        colours = np.where(stripe[..., None], first, second) * light[..., None]
        picture[inside] = colours[inside]


def add_houses(picture: np.ndarray, y: np.ndarray, x: np.ndarray, rng: np.random.Generator):
    """Draws houses on the meadow: a wall, a roof and dark windows."""
    for number in range(4):
        middle = x.max() * (number + rng.uniform(0.35, 0.65)) / 4
        foot, half = rng.uniform(0.74, 0.8), rng.uniform(0.07, 0.11)
        across, up = (x - middle) / half, (foot - y) / half
        wall = (abs(across) < 1) & (up > 0) & (up < 1.2)
        roof = (up >= 1.2) & (abs(across) < 1.2 * (2 - up) / 0.8)
        window = wall & (abs(up - 0.65) < 0.22) & (abs(abs(across) - 0.5) < 0.2)
        picture[wall] = rng.uniform(0.5, 0.95) * np.array([1.0, 0.95, 0.85])
        picture[roof] = [rng.uniform(0.3, 0.6), 0.06, 0.04]
        picture[window] = [0.02, 0.025, 0.04]


def add_textures(picture: np.ndarray, y: np.ndarray, x: np.ndarray):
    """Draws a grating whose lines become finer to the right, and a chessboard."""
    grating = (y > 0.84) & (y < 0.91)
    picture[grating] = (0.5 + 0.45 * np.sin(900 * x**2))[grating, None]
    board = (np.floor(x * 40) + np.floor(y * 30)) % 2
    chessboard = y > 0.934
    picture[chessboard] = (0.1 + 0.8 * board)[chessboard, None]


def srgb(linear: np.ndarray) -> np.ndarray:
    """Applies the curve of sRGB."""
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def integers(picture: np.ndarray, dtype: type) -> np.ndarray:
    """Turns floats from 0 to 1 into integers that use the whole range of a type."""
    return np.rint(picture * np.iinfo(dtype).max).astype(dtype)


def gray(linear: np.ndarray) -> np.ndarray:
    return linear @ np.array([0.2126, 0.7152, 0.0722])


# --- The sensor and the stereo pair.


def through_filters(picture: np.ndarray) -> np.ndarray:
    """Returns the channel of each pixel that a sensor with the pattern GRBG sees."""
    height, width, _ = picture.shape
    rows, columns = np.indices((height, width))
    channel = np.array(SITES)[2 * (rows % 2) + columns % 2]
    return np.take_along_axis(picture, channel[..., None], axis=-1)[..., 0]


def mosaic(linear: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns what a sensor with the pattern GRBG sees, as uint16 of 10 bits."""
    seen = through_filters(linear)
    # Photons make noise that grows with the square root of the light.
    seen = BLACK + (WHITE - BLACK) * (seen + rng.normal(0, 1, seen.shape) * 0.01 * np.sqrt(seen))
    hot = rng.choice(seen.size, max(1, seen.size // HOT_PIXELS), replace=False)
    seen.flat[hot] = WHITE
    return np.clip(np.rint(seen), 0, WHITE).astype(np.uint16)


def stereo(height: int, width: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the left and the right view of a disc before a scene, and the disparity of the left."""
    wall = scene(height, width + NEAR, rng)
    rows, columns = np.indices((height, width + NEAR))
    radius = min(height, width) / 4
    y, x = (rows - height / 2) / radius, (columns - width / 2) / radius
    inside = y**2 + x**2 < 1
    disc = target(y, x, rng)

    def view(shift_far: int, shift_near: int) -> np.ndarray:
        far, near = (slice(shift, shift + width) for shift in (shift_far, shift_near))
        return np.where(inside[:, near, None], disc[:, near], wall[:, far])

    disparity = np.where(inside[:, :width], NEAR, FAR).astype(np.float32)
    return view(0, 0), view(FAR, NEAR), disparity


def target(y: np.ndarray, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns a disc for darts of radius 1: rings and sectors with a grain."""
    ring = np.floor(6 * np.hypot(y, x))
    sector = np.floor(np.arctan2(y, x) * 10 / np.pi + 0.5)
    colours = np.where(((ring + sector) % 2 == 0)[..., None], [0.7, 0.05, 0.05], [0.85, 0.8, 0.6])
    return np.clip(colours * (1 + 0.4 * fractal(y.shape, rng, 32, 3))[..., None], 0, 1)


# --- Damaged and small scenes.


def noisy(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return np.clip(picture + rng.normal(0, 0.07, picture.shape), 0, 1)


def with_holes(picture: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns a picture with alpha. It misses most pixels on the left, and lines on the right."""
    y, x = grid(*picture.shape[:2])
    missing = rng.uniform(size=x.shape) > np.clip(0.2 + 1.6 * x, 0, 1)
    waves = y + 0.06 * np.sin(25 * x + 6 * y)
    missing |= (x > 0.5) & (np.abs(waves * 7 % 1 - 0.5) < 0.1)
    alpha = np.where(missing, 0.0, 1.0)[..., None]
    return np.concatenate([picture * alpha, alpha], axis=-1)


def reduced(picture: np.ndarray, factor: int) -> np.ndarray:
    """Returns the means of squares of pixels; pixels beyond the last whole square are left out."""
    height, width = (n // factor for n in picture.shape[:2])
    whole = picture[: height * factor, : width * factor]
    return whole.reshape(height, factor, width, factor, -1).mean(axis=(1, 3))


# --- Numbers beside pictures.


def colour_matrix(strength: float) -> np.ndarray:
    """Returns a matrix (3, 4) that moves colours away from gray. Its last column adds nothing."""
    mixing = (1 + strength) * np.eye(3) - strength / 3
    return np.hstack([mixing, np.zeros((3, 1))]).astype(np.float32)


def kernel(colour: int, site: int) -> np.ndarray:
    """Returns the 5 by 5 filter that finds a colour at a site of the mosaic.

    From "High-quality linear interpolation for demosaicing of Bayer-patterned color images", by
    Malvar, He and Cutler, 2004: a mean of the colour's neighbours, corrected by the curvature of the
    colour that the site has.
    """
    taps = np.zeros((5, 5))
    if colour == SITES[site]:
        taps[2, 2] = 8
    elif colour == 1:
        taps[2] = [-1, 2, 4, 2, -1]
        taps[[0, 1, 3, 4], 2] = [-1, 2, 2, -1]
    elif SITES[site] == 1:
        taps[2] = [-1, 4, 5, 4, -1]
        taps[1:4:2, 1:4:2] = -1
        taps[[0, 4], 2] = 0.5
        # Red stands beside the first green, and above and below the second one.
        taps = taps if (colour == 0) == (site == 0) else taps.T
    else:
        taps[2] = [-1.5, 0, 6, 0, -1.5]
        taps[1:4:2, 1:4:2] = 2
        taps[[0, 4], 2] = -1.5
    return taps / 8


def filters() -> dict[str, np.ndarray]:
    """Returns weights of the network demosaic.tw with 4 channels and one layer.

    The convolutions before the last one copy their input. The last one has the filters: 5 by 5
    pixels of the mosaic are at most 3 by 3 of its cells. The convolution at full size copies.
    """

    def copying(outputs: int, inputs: int) -> np.ndarray:
        weight = np.zeros((outputs, inputs, 3, 3), np.float32)
        weight[:, :, 1, 1] = np.eye(outputs, inputs)
        return weight

    last = np.zeros((12, 4, 3, 3), np.float32)
    for colour, site, dy, dx in np.ndindex(3, 4, 5, 5):
        y, x = site // 2 + dy - 2, site % 2 + dx - 2
        last[4 * colour + site, 2 * (y % 2) + x % 2, 1 + y // 2, 1 + x // 2] += kernel(colour, site)[dy, dx]
    biases = {"first_bias": 4, "bias": (1, 4), "last_bias": 12, "full_bias": 3}
    return {
        "first_weight": copying(4, 4),
        "weight": copying(4, 4)[None],
        "last_weight": last,
        "full_weight": copying(3, 6),
        **{name: np.zeros(shape, np.float32) for name, shape in biases.items()},
    }


# --- Files.


def png_bytes(picture: np.ndarray) -> bytes:
    """Encodes a gray or RGB picture of uint8 or uint16, or one with RGB and alpha, as PNG."""
    height, width = picture.shape[:2]
    bits, colour = 8 * picture.dtype.itemsize, {1: 0, 3: 2, 4: 6}[picture[0, 0].size]
    # Each row begins with the number of its filter: none.
    samples = picture.astype(picture.dtype.newbyteorder(">")).reshape(height, -1).view(np.uint8)
    rows = np.concatenate([np.zeros((height, 1), np.uint8), samples], axis=1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, 0)
    parts = [chunk(b"IHDR", header), chunk(b"IDAT", zlib.compress(rows.tobytes(), 6)), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def pfm_bytes(picture: np.ndarray) -> bytes:
    """Encodes a gray or RGB picture of floats as PFM: rows from bottom to top, little-endian."""
    height, width = picture.shape[:2]
    kind = "Pf" if picture.ndim == 2 else "PF"
    return f"{kind}\n{width} {height}\n-1.0\n".encode() + picture[::-1].astype("<f4").tobytes()


def npy_bytes(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def npz_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def pictures(height: int, width: int, seed: int) -> dict[str, bytes]:
    """Returns the contents of all files by their names."""
    rng = np.random.default_rng(seed)
    linear = scene(height, width, rng)
    sensor = mosaic(linear, rng)
    left, right, disparity = stereo(height, width, rng)
    curved, curved_gray = srgb(linear), srgb(gray(linear))
    return {
        "scene.png": png_bytes(integers(curved, np.uint8)),
        "scene_16.png": png_bytes(integers(curved, np.uint16)),
        "scene.pfm": pfm_bytes(linear),
        "gray.png": png_bytes(integers(curved_gray, np.uint8)),
        "bayer.png": png_bytes(sensor),
        "bayer.raw": sensor.astype("<u2").tobytes(),
        "mosaic.png": png_bytes(through_filters(integers(curved, np.uint8))),
        "left.png": png_bytes(integers(srgb(left), np.uint8)),
        "right.png": png_bytes(integers(srgb(right), np.uint8)),
        "disparity.pfm": pfm_bytes(disparity),
        "noisy.png": png_bytes(integers(noisy(curved, rng), np.uint8)),
        "dim.png": png_bytes((90 + 60 * curved).astype(np.uint8)),
        "levels_16.png": png_bytes(integers(curved_gray, np.uint8).astype(np.uint16)),
        "holes.png": png_bytes(integers(with_holes(curved, rng), np.uint8)),
        "small_16.png": png_bytes(integers(reduced(curved, 4), np.uint16)),
        "matrix_3200.npy": npy_bytes(colour_matrix(0.4)),
        "matrix_7000.npy": npy_bytes(colour_matrix(0.2)),
        "filters.npz": npz_bytes(filters()),
    }


def extent(text: str) -> int:
    value = int(text)
    if value < SMALLEST:
        raise argparse.ArgumentTypeError(f"{value} is less than {SMALLEST}, the least that holds the scene")
    return value


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="where the pictures go; it is made if it is missing")
    parser.add_argument("--width", type=extent, default=640, help="columns (default: 640)")
    parser.add_argument("--height", type=extent, default=480, help="rows (default: 480)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random numbers (default: 0)")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, contents in pictures(options.height, options.width, options.seed).items():
        (options.folder / name).write_bytes(contents)
        print(options.folder / name)


if __name__ == "__main__":
    main()
