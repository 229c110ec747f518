"""Fills the transparent pixels of an image from their neighbours, by a pyramid of 10 levels."""

import halide as hl
import numpy as np

from halide_pipelines.given import Given, vector
from halide_pipelines.pictures import picture

MIDDLE = 4  # the level whose input has a boundary condition of its own, so that the pyramid does not reach far beyond the image


def inputs(rng, s):
    return {"input": picture(rng, 4, s["H"], s["W"])}


def result(s):
    return np.empty((3, s["H"], s["W"]), np.float32)


def level_funcs(name: str, levels: int) -> list[hl.Func]:
    return [hl.Func(f"{name}_{level}") for level in range(levels)]


def pipeline(given: Given) -> hl.Func:
    image, levels = given.image("input"), given.sizes["levels"]
    x, y, c, xo, xi, yo, yi = hl.vars("x y c xo xi yo yi")
    down, downx, filled = (level_funcs(name, levels) for name in ("down", "downx", "filled"))
    up, upx = (level_funcs(name, levels) for name in ("up", "upx"))
    normalize = hl.Func("normalize")
    image.dim(2).set_bounds(0, 4)
    bounded = hl.BoundaryConditions.repeat_edge(image)

    down[0][x, y, c] = hl.select(c < 3, bounded[x, y, c] * bounded[x, y, 3], bounded[x, y, 3])
    for level in range(1, levels):
        before = down[level - 1]
        if level == MIDDLE:
            width, height = image.width() // (1 << (level - 1)), image.height() // (1 << (level - 1))
            clamped = hl.Func("clamped")
            clamped[x, y, c] = before[hl.clamp(x, 0, width), hl.clamp(y, 0, height), c]
            before = clamped
        downx[level][x, y, c] = (before[x * 2 - 1, y, c] + 2 * before[x * 2, y, c] + before[x * 2 + 1, y, c]) * hl.f32(0.25)
        rows = downx[level]
        down[level][x, y, c] = (rows[x, y * 2 - 1, c] + 2 * rows[x, y * 2, c] + rows[x, y * 2 + 1, c]) * hl.f32(0.25)

    filled[levels - 1][x, y, c] = down[levels - 1][x, y, c]
    for level in reversed(range(levels - 1)):
        coarse = filled[level + 1]
        upx[level][x, y, c] = (coarse[x // 2, y, c] + coarse[(x + 1) // 2, y, c]) / 2
        up[level][x, y, c] = (upx[level][x, y // 2, c] + upx[level][x, (y + 1) // 2, c]) / 2
        filled[level][x, y, c] = down[level][x, y, c] + (1 - down[level][x, y, 3]) * up[level][x, y, c]
    normalize[x, y, c] = filled[0][x, y, c] / filled[0][x, y, 3]

    if given.expert:
        vec = vector(hl.Float(32))
        for stage in down[1 : levels - 1]:
            stage.compute_root().never_partition([x]).reorder(x, c, y).split(y, yo, yi, 8).parallel(yo).vectorize(x, vec)
        # The first level is computed twice: storing it takes longer.
        first = down[0].clone_in(downx[1])
        first.store_at(down[1], yo).compute_at(down[1], yi).reorder(c, x, y).unroll(c).vectorize(x, vec).never_partition([y])
        normalize.bound(x, 0, image.width()).bound(y, 0, image.height()).bound(c, 0, 3).never_partition([y])
        normalize.split(x, xo, xi, vec).split(y, yo, yi, 32).reorder(xi, c, xo, yi, yo)
        normalize.unroll(c).vectorize(xi).parallel(yo)
        for stage in filled[1:]:
            stage.store_at(normalize, yo).compute_at(normalize, yi).never_partition_all().vectorize(x, vec)
    return normalize
