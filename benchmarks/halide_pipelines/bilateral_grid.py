"""Bilateral grid: smooths a grey image and keeps its edges."""

import halide as hl
import numpy as np

from halide_pipelines.given import Given
from halide_pipelines.pictures import picture


def inputs(rng, s):
    return {"input": picture(rng, s["H"], s["W"])}


def result(s):
    return np.empty((s["H"], s["W"]), np.float32)


def blur5(a, b, c, d, e):
    return a + b * 4 + c * 6 + d * 4 + e


def pipeline(given: Given) -> hl.Func:
    image, r_sigma = given.image("input"), given.number("r_sigma")
    size = given.sizes["s_sigma"]
    x, y, z, c = hl.vars("x y z c")
    histogram, blurz, blurx, blury, interpolated, output = hl.funcs("histogram blurz blurx blury interpolated output")
    bounded = hl.BoundaryConditions.repeat_edge(image)

    r = hl.RDom([(0, size), (0, size)])
    value = hl.clamp(bounded[x * size + r.x - size // 2, y * size + r.y - size // 2], 0, 1)
    histogram[x, y, z, c] = hl.f32(0)
    histogram[x, y, hl.i32(value * (hl.f32(1) / r_sigma) + hl.f32(0.5)), c] += hl.mux(c, [value, hl.f32(1)])

    blurz[x, y, z, c] = blur5(*(histogram[x, y, z + d, c] for d in range(-2, 3)))
    blurx[x, y, z, c] = blur5(*(blurz[x + d, y, z, c] for d in range(-2, 3)))
    blury[x, y, z, c] = blur5(*(blurx[x, y + d, z, c] for d in range(-2, 3)))

    zv = hl.clamp(image[x, y], 0, 1) * (hl.f32(1) / r_sigma)
    zi = hl.i32(zv)
    xf, yf, zf = hl.f32(x % size) / size, hl.f32(y % size) / size, zv - zi
    xi, yi = x // size, y // size

    def between(i):
        return hl.lerp(
            hl.lerp(blury[xi, yi, i, c], blury[xi + 1, yi, i, c], xf),
            hl.lerp(blury[xi, yi + 1, i, c], blury[xi + 1, yi + 1, i, c], xf),
            yf,
        )

    interpolated[x, y, c] = hl.lerp(between(zi), between(zi + 1), zf)
    output[x, y] = interpolated[x, y, 0] / interpolated[x, y, 1]

    histogram.set_estimate(z, -2, 16)
    for blur in (blurz, blurx, blury):
        blur.set_estimate(z, 0, 12)
    if given.expert:
        blurz.compute_at(blurx, y).reorder(c, z, x, y).vectorize(x, 8).unroll(c)
        histogram.compute_at(blurz, y)
        histogram.update().reorder(c, r.x, r.y, x, y).unroll(c)
        blurx.compute_root().reorder(c, x, z, y).parallel(y).vectorize(x, 8).unroll(c)
        blury.compute_at(output, y).store_in(hl.MemoryType.Stack)
        blury.reorder(c, x, y, z).reorder_storage(c, z, x, y).vectorize(x, 8).unroll(c)
        output.compute_root().parallel(y, 8).vectorize(x, 8)
    return output
