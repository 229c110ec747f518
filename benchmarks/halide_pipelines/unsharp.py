"""Unsharp mask of an RGB image."""

import math

import halide as hl
import numpy as np

from halide_pipelines.given import Given, vector
from halide_pipelines.pictures import picture

SIGMA = 1.5


def inputs(rng, s):
    return {"input": picture(rng, 3, s["H"], s["W"])}


def result(s):
    return np.empty((3, s["H"], s["W"]), np.float32)


def pipeline(given: Given) -> hl.Func:
    image = given.image("input")
    x, y, c, yo, yi = hl.vars("x y c yo yi")
    kernel, gray, blur_y, blur_x, sharpen, ratio, output = hl.funcs("kernel gray blur_y blur_x sharpen ratio output")
    bounded = hl.BoundaryConditions.repeat_edge(image)
    kernel[x] = hl.exp(-x * x / hl.f32(2 * SIGMA * SIGMA)) / hl.f32(math.sqrt(2 * math.pi) * SIGMA)
    gray[x, y] = 0.299 * bounded[x, y, 0] + 0.587 * bounded[x, y, 1] + 0.114 * bounded[x, y, 2]
    blur_y[x, y] = kernel[0] * gray[x, y] + sum(kernel[i] * (gray[x, y - i] + gray[x, y + i]) for i in (1, 2, 3))
    blur_x[x, y] = kernel[0] * blur_y[x, y] + sum(kernel[i] * (blur_y[x - i, y] + blur_y[x + i, y]) for i in (1, 2, 3))
    sharpen[x, y] = 2 * gray[x, y] - blur_x[x, y]
    ratio[x, y] = sharpen[x, y] / gray[x, y]
    output[x, y, c] = ratio[x, y] * image[x, y, c]

    if given.expert:
        vec = vector(hl.Float(32))
        output.split(y, yo, yi, 32).vectorize(x, vec).parallel(yo).reorder(x, c, yi, yo)
        for stage in (gray, blur_y, ratio):
            stage.compute_at(output, yi).store_at(output, yo).vectorize(x, vec)
    return output
