"""Recursive low-pass filter: along the columns, transpose, and again."""

import halide as hl
import numpy as np

from halide_pipelines.given import Given, vector
from halide_pipelines.pictures import picture


def inputs(rng, s):
    return {"input": picture(rng, 3, s["H"], s["W"])}


def result(s):
    return np.empty((3, s["H"], s["W"]), np.float32)


def blur_cols_transpose(image, height, alpha, expert: bool) -> hl.Func:
    x, y, c, xo, yo = hl.vars("x y c xo yo")
    blur, transpose = hl.funcs("blur transpose")
    ry = hl.RDom([(1, height - 1)])
    up = height - ry - 1
    blur[x, y, c] = hl.undef(hl.Float(32))
    blur[x, 0, c] = image[x, 0, c]
    blur[x, ry, c] = (1 - alpha) * blur[x, ry - 1, c] + alpha * image[x, ry, c]
    blur[x, up, c] = (1 - alpha) * blur[x, up + 1, c] + alpha * blur[x, up, c]
    transpose[x, y, c] = blur[y, x, c]

    if expert:
        vec = vector(hl.Float(32))
        transpose.compute_root().tile(x, y, xo, yo, x, y, vec, vec * 4).vectorize(x).parallel(yo).parallel(c)
        blur.compute_at(transpose, yo)
        blur.update(0).unscheduled()
        for scan in (1, 2):
            blur.update(scan).reorder(x, ry).vectorize(x)
    return transpose


def pipeline(given: Given) -> hl.Func:
    image, alpha = given.image("input"), given.number("alpha")
    down = blur_cols_transpose(image, image.height(), alpha, given.expert)
    return blur_cols_transpose(down, image.width(), alpha, given.expert)
