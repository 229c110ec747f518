"""Brings out the fine detail of a picture and leaves its edges alone.

The brightness of each pixel is averaged with that of its neighbours, where near ones and those of similar brightness
count most (a bilateral filter). What this average lacks is the detail, and `gain` times that is put back. Since the
average does not reach across edges, they get no halo, as they would from a plain unsharp mask.

    python image_pipeline.py photograph.jpg sharper.png
    python image_pipeline.py                                # makes a picture itself: picture.png, detail.png

The result is compared with NumPy. Reading and writing pictures needs Pillow.
"""

import argparse
import sys
import time

import numpy as np

import tilewright as tw

detail = tw.define("""
    def detail(uint8(H, W, 3) rgb, int radius, float near, float similar, float gain) -> (out) {
      luma(y, x) = 0.299 * rgb(y, x, 0) + 0.587 * rgb(y, x, 1) + 0.114 * rgb(y, x, 2)

      # What each neighbour has more than the pixel itself. Beyond the border, its pixels repeat.
      difference(v, u, y, x) = luma(clamp(y + v - radius, 0, H - 1), clamp(x + u - radius, 0, W - 1)) - luma(y, x)
        where v in 0:2*radius + 1, u in 0:2*radius + 1

      # Near and similar neighbours count most. Neither tensor is ever made for the whole picture: the schedule computes
      # differences where they are used, and weights a row at a time.
      weight(v, u, y, x) = exp(-(dy*dy + dx*dx) * near - difference(v, u, y, x) * difference(v, u, y, x) * similar)
        where dy = v - radius, dx = u - radius
      total(y, x) +=! weight(v, u, y, x)
      shift(y, x) +=! weight(v, u, y, x) * difference(v, u, y, x)

      # The average is luma + shift / total; what the pixel has more than that is the detail. uint8 stops at 0 and 255.
      out(y, x, c) = uint8(rint(rgb(y, x, c) - gain * shift(y, x) / total(y, x)))
    }
""")


def falloff(sigma):
    """The factor of a squared distance in the exponent of a Gaussian curve."""
    return 1 / (2 * sigma * sigma)


def numpy_detail(rgb, radius, near, similar, gain):
    """The same, written with shifted copies of the whole picture."""
    height, width, _ = rgb.shape
    luma = rgb.astype(np.float32) @ np.array([0.299, 0.587, 0.114], np.float32)
    padded = np.pad(luma, radius, mode="edge")
    total, shift = np.zeros_like(luma), np.zeros_like(luma)
    for dy in range(-radius, radius + 1):
        for dx in range(-radius, radius + 1):
            neighbour = padded[radius + dy : radius + dy + height, radius + dx : radius + dx + width]
            difference = neighbour - luma
            weight = np.exp(-(dy * dy + dx * dx) * np.float32(near) - difference**2 * np.float32(similar))
            total += weight
            shift += difference * weight
    sharper = rgb - np.float32(gain) * (shift / total)[:, :, None]
    return np.rint(sharper).clip(0, 255).astype(np.uint8)


def make_picture(height=480, width=640):
    """A lit ball on a table in front of a wall, with faint texture everywhere: something with edges and with detail."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    wall = 150 + 60 * x / width + 6 * np.sin(x / 3) * np.sin(y / 5)
    table = 90 + 40 * (((x // 40) + (y // 24)) % 2) + 5 * np.sin((x + y) / 2)
    grey = np.where(y < 0.6 * height, wall, table)

    # The height of the ball above the picture gives the direction of its surface, and that its light.
    radius = 0.3 * height
    u, v = (x - 0.5 * width) / radius, (y - 0.5 * height) / radius
    depth = np.sqrt(np.maximum(1 - u * u - v * v, 0))
    light = np.maximum(-0.5 * u - 0.6 * v + 0.6 * depth, 0)
    ball = 40 + 190 * light + 8 * np.sin(70 * u / (1 + depth)) * np.sin(70 * v / (1 + depth))
    tint = np.where((depth > 0)[:, :, None], [1.0, 0.75, 0.55], [0.9, 0.95, 1.0])
    return (np.where(depth > 0, ball, grey)[:, :, None] * tint).clip(0, 255).astype(np.uint8)


def timed(call, *inputs):
    start = time.perf_counter()
    result = call(*inputs)
    return result, time.perf_counter() - start


def apply(rgb):
    """Filters a picture, compares it with NumPy, and says how long each took."""
    settings = (4, falloff(2.5), falloff(20), 2.5)
    # Compiled beforehand, so that the time is that of the work alone.
    kernel = detail.compile(rgb, *settings)
    result, seconds = timed(kernel, rgb, *settings)
    expected, numpy_seconds = timed(numpy_detail, rgb, *settings)
    # Where the exact value lies halfway between two levels, either may come out.
    difference = np.abs(result.astype(int) - expected).max()
    if difference > 1:
        sys.exit(f"the result differs from NumPy's by up to {difference} levels")
    print(f"{rgb.shape[1]} x {rgb.shape[0]} pixels: {seconds * 1e3:.1f} ms, NumPy {numpy_seconds * 1e3:.1f} ms")
    print(f"the two differ by at most {difference} of 255 levels")
    return result


def main():
    parser = argparse.ArgumentParser(description="Brings out the fine detail of a picture.")
    parser.add_argument("picture", nargs="?", help="a picture file; without it one is made, as picture.png")
    parser.add_argument("result", nargs="?", default="detail.png", help="where the result goes (default: detail.png)")
    options = parser.parse_args()
    try:
        from PIL import Image
    except ImportError:
        sys.exit("reading and writing pictures needs Pillow: pip install pillow")

    if options.picture is None:
        rgb = make_picture()
        Image.fromarray(rgb).save("picture.png")
    else:
        rgb = np.asarray(Image.open(options.picture).convert("RGB"))
    Image.fromarray(apply(rgb)).save(options.result)
    print(f"the result is in {options.result}")


if __name__ == "__main__":
    main()
