"""Local Laplacian filter: pyramids of remapped copies of the image, from which the result's Laplacian pyramid is picked."""

import halide as hl
import numpy as np

from halide_pipelines.given import Given
from halide_pipelines.pictures import integers, picture
from halide_pipelines.pyramids import downsample, upsample

TOLERANCE = 2e-5  # one step of uint16
SHARE = 1e-3  # the pixel's brightness picks an entry of a table: rounding may pick the next one
STORED = 5  # levels below this one are computed a strip at a time


def inputs(rng, s):
    return {"input": integers(picture(rng, 3, s["H"], s["W"]), np.uint16, 65535)}


def result(s):
    return np.empty((3, s["H"], s["W"]), np.uint16)


def pipeline(given: Given) -> hl.Func:
    image, intensities = given.image("input"), given.number("intensities")
    alpha, beta = given.number("alpha"), given.number("beta")
    levels = given.sizes["levels"]
    x, y, c, k, yo = hl.vars("x y c k yo")
    remap, floating, gray, colour, output = hl.funcs("remap floating gray colour output")
    pyramid, detail, in_pyramid, out_detail, out_pyramid = (
        [hl.Func(f"{name}_{level}") for level in range(levels)]
        for name in ("pyramid", "detail", "in_pyramid", "out_detail", "out_pyramid")
    )
    bounded = hl.BoundaryConditions.repeat_edge(image)

    fx = hl.f32(x) / 256
    remap[x] = alpha * fx * hl.exp(-fx * fx / 2)
    floating[x, y, c] = bounded[x, y, c] / hl.f32(65535)
    gray[x, y] = 0.299 * floating[x, y, 0] + 0.587 * floating[x, y, 1] + 0.114 * floating[x, y, 2]

    step = k * (hl.f32(1) / (intensities - 1))
    index = hl.clamp(hl.i32(gray[x, y] * hl.f32(intensities - 1) * 256), 0, (intensities - 1) * 256)
    pyramid[0][x, y, k] = beta * (gray[x, y] - step) + step + remap[index - 256 * k]
    in_pyramid[0][x, y] = gray[x, y]
    for j in range(1, levels):
        pyramid[j][x, y, k] = downsample(pyramid[j - 1], k)[x, y, k]
        in_pyramid[j][x, y] = downsample(in_pyramid[j - 1])[x, y]
    detail[levels - 1][x, y, k] = pyramid[levels - 1][x, y, k]
    for j in range(levels - 1):
        detail[j][x, y, k] = pyramid[j][x, y, k] - upsample(pyramid[j + 1], k)[x, y, k]

    # Between the two copies whose intensities are next to the pixel's.
    for j in range(levels):
        place = in_pyramid[j][x, y] * hl.f32(intensities - 1)
        low = hl.clamp(hl.i32(place), 0, intensities - 2)
        part = place - hl.f32(low)
        out_detail[j][x, y] = (1 - part) * detail[j][x, y, low] + part * detail[j][x, y, low + 1]
    out_pyramid[levels - 1][x, y] = out_detail[levels - 1][x, y]
    for j in reversed(range(levels - 1)):
        out_pyramid[j][x, y] = upsample(out_pyramid[j + 1])[x, y] + out_detail[j][x, y]

    eps = hl.f32(0.01)
    colour[x, y, c] = image[x, y, c] * (out_pyramid[0][x, y] + eps) / (gray[x, y] + eps)
    output[x, y, c] = hl.u16(hl.clamp(colour[x, y, c], 0, 65535))

    if given.expert:
        remap.compute_root()
        output.reorder(c, x, y).split(y, yo, y, 64).parallel(yo).vectorize(x, 8)
        gray.compute_root().parallel(y, 32).vectorize(x, 8)
        for j in range(1, STORED):
            in_pyramid[j].compute_root().parallel(y, 32).vectorize(x, 8)
            pyramid[j].compute_root().reorder_storage(x, k, y).reorder(k, y).parallel(y, 8).vectorize(x, 8)
            out_pyramid[j].store_at(output, yo).compute_at(output, y).fold_storage(y, 4).vectorize(x, 8)
        out_pyramid[0].compute_at(output, y).vectorize(x, 8)
        for j in range(STORED, levels):
            in_pyramid[j].compute_root()
            pyramid[j].compute_root().parallel(k)
            out_pyramid[j].compute_root()
    return output
