"""The maximum over a disc: vertical maxima of powers of two, two of them for any height, then across."""

import math

import halide as hl
import numpy as np

from halide_pipelines.given import Given
from halide_pipelines.pictures import picture


def inputs(rng, s):
    return {"input": picture(rng, 3, s["H"], s["W"])}


def result(s):
    return np.empty((3, s["H"], s["W"]), np.float32)


def pipeline(given: Given) -> hl.Func:
    image = given.image("input")
    radius = given.sizes["radius"]
    slices = math.ceil(math.log2(radius)) + 1
    x, y, c, t, tx = hl.vars("x y c t tx")
    vert_log, slice_for_radius, vert, filter_height, output = hl.funcs("vert_log slice_for_radius vert filter_height output")
    bounds = [hl.Range(0, image.width()), hl.Range(0, image.height())]
    bounded = hl.BoundaryConditions.repeat_edge(image, bounds)

    # vert_log[x, y, c, t]: the maximum of the 2**t pixels from y on, downwards.
    r = hl.RDom([(-radius, image.height() + radius), (1, slices - 1)])
    vert_log[x, y, c, t] = bounded[x, y, c]
    reach = hl.clamp(hl.i32(1) << (r.y - 1), 0, radius * 2)
    vert_log[x, r.x, c, r.y] = hl.max(vert_log[x, r.x, c, r.y - 1], vert_log[x, r.x + reach, c, r.y - 1])

    # The maximum of 2 t + 1 rows around y: of two slices that overlap.
    slice_for_radius[t] = hl.i32(hl.floor(hl.log(hl.f32(2 * t + 1)) / hl.f32(math.log(2))))
    which = hl.clamp(slice_for_radius[t], 0, slices)
    last = y + t + 1 - hl.clamp(hl.i32(1) << which, 0, 2 * radius)
    vert[x, y, c, t] = hl.max(vert_log[x, y - t, c, which], vert_log[x, last, c, which])

    # The disc has 2 filter_height[dx] + 1 rows at the column dx.
    dy = hl.RDom([(0, radius + 1)]).x
    dx = hl.RDom([(-radius, 2 * radius + 1)]).x
    filter_height[x] = hl.sum(hl.select(x * x + dy * dy < hl.f32((radius + 0.25) ** 2), 1, 0))
    output[x, y, c] = hl.maximum(vert[x + dx, y, c, hl.clamp(filter_height[dx], 0, radius + 1)])

    if given.expert:
        slice_for_radius.compute_root()
        filter_height.compute_root()
        output.compute_root().split(x, tx, x, 256).reorder(x, y, c, tx).fuse(c, tx, t).parallel(t).vectorize(x, 8)
        vert_log.compute_at(output, t).vectorize(x, 8)
        vert_log.update().reorder(x, r.x, r.y, c).vectorize(x, 8)
        vert.compute_at(output, y).vectorize(x, 8)
    return output
