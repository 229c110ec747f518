#!/usr/bin/env python3
"""Makes test pictures: a scene, its raw picture from a sensor, and a stereo pair.

    python3 scripts/test_pictures.py FOLDER [--width 640] [--height 480] [--seed 0]

The scene has gradients, edges, textures and noise. The same seed and size give the same files:

    scene.png      RGB, 8 bits, with the sRGB curve
    scene_16.png   RGB, 16 bits, with the sRGB curve
    scene.pfm      RGB, float32, linear
    gray.png       gray, 8 bits, with the sRGB curve
    bayer.png      one channel of 16 bits: the Bayer mosaic GRBG of the scene, linear, as a camera of
                   10 bits stores it: black is 25, white 1023. It has noise, and a few hot pixels
    bayer.raw      the same, as little-endian uint16 without a header
    left.png       RGB, 8 bits, and the same from further to the right:
    right.png      the pixel (y, x) of left is the pixel (y, x - disparity(y, x)) of right, if both see it
    disparity.pfm  gray, float32

Needs NumPy, and nothing else.
"""

import argparse
import struct
import zlib
from pathlib import Path

import numpy as np

BLACK, WHITE = 25, 1023
# One pixel of so many is hot.
HOT_PIXELS = 5000
NEAR, FAR = 12, 4
SMALLEST = 32


# --- The scene.


def grid(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns the rows and columns of all pixels, from 0 to 1."""
    return np.meshgrid(np.linspace(0, 1, height), np.linspace(0, 1, width), indexing="ij")


def scene(height: int, width: int, rng: np.random.Generator) -> np.ndarray:
    """Returns a linear RGB picture (height, width, 3) of floats from 0 to 1."""
    y, x = grid(height, width)
    picture = np.stack([0.15 + 0.6 * x, 0.2 + 0.5 * y, 0.7 - 0.5 * x * y], axis=-1)
    add_objects(picture, y, x * width / height, rng)
    add_textures(picture, y, x)
    return np.clip(picture + rng.normal(0, 0.01, picture.shape), 0, 1)


def add_objects(picture: np.ndarray, y: np.ndarray, x: np.ndarray, rng: np.random.Generator):
    """Draws discs and rectangles of one colour each, with sharp edges."""
    for number in range(12):
        row, column = rng.uniform(0, 0.6), rng.uniform(0, x.max())
        size, colour = rng.uniform(0.04, 0.15), rng.uniform(0, 1, 3)
        if number % 2:
            inside = (y - row) ** 2 + (x - column) ** 2 < size**2
        else:
            inside = (abs(y - row) < size / 2) & (abs(x - column) < size)
        picture[inside] = colour


def add_textures(picture: np.ndarray, y: np.ndarray, x: np.ndarray):
    """Draws a grating whose lines become finer to the right, and a chessboard."""
    grating = (y > 0.7) & (y < 0.83)
    picture[grating] = (0.5 + 0.45 * np.sin(900 * x**2))[grating, None]
    board = (np.floor(x * 40) + np.floor(y * 30)) % 2
    chessboard = y > 0.87
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


def mosaic(linear: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns what a sensor with the pattern GRBG sees, as uint16 of 10 bits."""
    height, width, _ = linear.shape
    rows, columns = np.indices((height, width))
    channel = np.where(rows % 2 == columns % 2, 1, np.where(rows % 2 == 0, 0, 2))
    seen = np.take_along_axis(linear, channel[..., None], axis=-1)[..., 0]
    # Photons make noise that grows with the square root of the light.
    seen = BLACK + (WHITE - BLACK) * (seen + rng.normal(0, 1, seen.shape) * 0.01 * np.sqrt(seen))
    hot = rng.choice(seen.size, max(1, seen.size // HOT_PIXELS), replace=False)
    seen.flat[hot] = WHITE
    return np.clip(np.rint(seen), 0, WHITE).astype(np.uint16)


def stereo(height: int, width: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the left and the right view of a disc before a wall, and the disparity of the left."""
    wall, disc = (scene(height, width + NEAR, rng) for _ in range(2))
    rows, columns = np.indices((height, width + NEAR))
    inside = (rows - height / 2) ** 2 + (columns - width / 2) ** 2 < (min(height, width) / 4) ** 2

    def view(shift_far: int, shift_near: int) -> np.ndarray:
        far, near = (slice(shift, shift + width) for shift in (shift_far, shift_near))
        return np.where(inside[:, near, None], disc[:, near], wall[:, far])

    disparity = np.where(inside[:, :width], NEAR, FAR).astype(np.float32)
    return view(0, 0), view(FAR, NEAR), disparity


# --- Files.


def png_bytes(picture: np.ndarray) -> bytes:
    """Encodes a gray or RGB picture of uint8 or uint16 as PNG."""
    height, width = picture.shape[:2]
    bits, colour = 8 * picture.dtype.itemsize, 0 if picture.ndim == 2 else 2
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


def pictures(height: int, width: int, seed: int) -> dict[str, bytes]:
    """Returns the contents of all files by their names."""
    rng = np.random.default_rng(seed)
    linear = scene(height, width, rng)
    sensor = mosaic(linear, rng)
    left, right, disparity = stereo(height, width, rng)
    return {
        "scene.png": png_bytes(integers(srgb(linear), np.uint8)),
        "scene_16.png": png_bytes(integers(srgb(linear), np.uint16)),
        "scene.pfm": pfm_bytes(linear),
        "gray.png": png_bytes(integers(srgb(gray(linear)), np.uint8)),
        "bayer.png": png_bytes(sensor),
        "bayer.raw": sensor.astype("<u2").tobytes(),
        "left.png": png_bytes(integers(srgb(left), np.uint8)),
        "right.png": png_bytes(integers(srgb(right), np.uint8)),
        "disparity.pfm": pfm_bytes(disparity),
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
