"""Harris corners of an RGB image."""

import halide as hl
import numpy as np

from halide_pipelines.given import Given, vector
from halide_pipelines.pictures import picture

ORIGIN = (3, 3)


def inputs(rng, s):
    return {"input": picture(rng, 3, s["H"], s["W"])}


def result(s):
    return np.empty((s["H"] - 6, s["W"] - 6), np.float32)


def sum3x3(f, x, y):
    return sum(f[x + i, y + j] for i in (-1, 0, 1) for j in (-1, 0, 1))


def pipeline(given: Given) -> hl.Func:
    image = given.image("input", borders=True)
    x, y, yi = hl.vars("x y yi")
    gray, ix, iy, ixx, iyy, ixy = hl.funcs("gray ix iy ixx iyy ixy")
    sxx, syy, sxy, det, trace, output = hl.funcs("sxx syy sxy det trace output")
    gray[x, y] = 0.299 * image[x, y, 0] + 0.587 * image[x, y, 1] + 0.114 * image[x, y, 2]
    iy[x, y] = sum(w / 12 * (gray[x + i, y + 1] - gray[x + i, y - 1]) for i, w in ((-1, 1), (0, 2), (1, 1)))
    ix[x, y] = sum(w / 12 * (gray[x + 1, y + j] - gray[x - 1, y + j]) for j, w in ((-1, 1), (0, 2), (1, 1)))
    ixx[x, y] = ix[x, y] * ix[x, y]
    iyy[x, y] = iy[x, y] * iy[x, y]
    ixy[x, y] = ix[x, y] * iy[x, y]
    sxx[x, y] = sum3x3(ixx, x, y)
    syy[x, y] = sum3x3(iyy, x, y)
    sxy[x, y] = sum3x3(ixy, x, y)
    det[x, y] = sxx[x, y] * syy[x, y] - sxy[x, y] * sxy[x, y]
    trace[x, y] = sxx[x, y] + syy[x, y]
    output[x, y] = det[x, y] - 0.04 * trace[x, y] * trace[x, y]

    if given.expert:
        vec = vector(hl.Float(32))
        output.split(y, y, yi, 32).parallel(y).vectorize(x, vec)
        for stage in (gray, ix, iy):
            stage.store_at(output, y).compute_at(output, yi).vectorize(x, vec)
        ix.compute_with(hl.LoopLevel(iy, x, 0))
    return output
