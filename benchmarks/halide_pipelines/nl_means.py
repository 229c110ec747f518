"""Non-local means: each pixel is a mean of those around it, weighted by how much their patches resemble its own."""

import halide as hl
import numpy as np

from halide_pipelines.given import Given, vector
from halide_pipelines.pictures import picture

TOLERANCE = 1e-4  # Halide has fast_exp where ours has exp


def inputs(rng, s):
    return {"input": picture(rng, 3, s["H"], s["W"])}


def result(s):
    return np.empty((3, s["H"], s["W"]), np.float32)


def pipeline(given: Given) -> hl.Func:
    image, sigma = given.image("input"), given.number("sigma")
    patch, search = given.number("patch"), given.number("search")
    x, y, c, dx, dy, tx, ty = hl.vars("x y c dx dy tx ty")
    dc, d, blur_d_y, blur_d, w, alpha, total, output = hl.funcs("dc d blur_d_y blur_d w alpha total output")
    bounded = hl.BoundaryConditions.repeat_edge(image)

    channels = hl.RDom([(0, 3)]).x
    around = hl.RDom([(-(patch // 2), patch)]).x
    area = hl.RDom([(-(search // 2), search), (-(search // 2), search)])
    difference = bounded[x, y, c] - bounded[x + dx, y + dy, c]
    dc[x, y, dx, dy, c] = difference * difference
    d[x, y, dx, dy] = hl.sum(dc[x, y, dx, dy, channels])
    blur_d_y[x, y, dx, dy] = hl.sum(d[x, y + around, dx, dy])
    blur_d[x, y, dx, dy] = hl.sum(blur_d_y[x + around, y, dx, dy])
    w[x, y, dx, dy] = hl.fast_exp(blur_d[x, y, dx, dy] * (hl.f32(-1) / (sigma * sigma * patch * patch)))

    # Channel 3 of the total is the sum of the weights.
    alpha[x, y, c] = hl.mux(c, [bounded[x, y, 0], bounded[x, y, 1], bounded[x, y, 2], hl.f32(1)])
    total[x, y, c] = hl.f32(0)
    total[x, y, c] += w[x, y, area.x, area.y] * alpha[x + area.x, y + area.y, c]
    output[x, y, c] = hl.clamp(total[x, y, c] / total[x, y, 3], 0, 1)

    output.output_buffer().dim(2).set_bounds(0, 3)
    if given.expert:
        vec = vector(hl.Float(32))
        output.compute_root().reorder(c, x, y).tile(x, y, tx, ty, x, y, 16, 8).parallel(ty).vectorize(x, vec)
        blur_d_y.compute_at(output, tx).hoist_storage(output, ty).reorder(y, x).vectorize(x, vec)
        d.compute_at(output, tx).hoist_storage(output, ty).vectorize(x, vec)
        total.compute_at(output, x).reorder(c, x, y).bound(c, 0, 4).unroll(c).vectorize(x, vec)
        total.update().reorder(c, x, y, area.x, area.y).unroll(c).vectorize(x, vec)
        blur_d.compute_at(total, x).vectorize(x, vec)
    return output
