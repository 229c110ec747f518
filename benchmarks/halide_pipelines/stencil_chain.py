"""A chain of 5 by 5 stencils on 16-bit pixels."""

import halide as hl
import numpy as np

from halide_pipelines.given import Given, vector
from halide_pipelines.pictures import integers, picture

GROUP = 11  # stencils between two that are stored as a whole


def inputs(rng, s):
    return {"input": integers(picture(rng, s["H"], s["W"]), np.uint16, 65535)}


def result(s):
    return np.empty((s["H"], s["W"]), np.uint16)


def pipeline(given: Given) -> hl.Func:
    x, y, xo, yo, xi, yi, t = hl.vars("x y xo yo xi yi t")
    stages = [hl.BoundaryConditions.repeat_edge(given.image("input"))]
    for number in range(given.sizes["stages"]):
        stage, before = hl.Func(f"stage_{number}"), stages[-1]
        taps = [hl.u16((i + 3) * (j + 3)) * before[x + i, y + j] for i in range(-2, 3) for j in range(-2, 3)]
        stage[x, y] = sum(taps[1:], taps[0])
        stages.append(stage)
    output = hl.Func("output")
    output[x, y] = stages[-1][x, y]

    if given.expert:
        vec = vector(hl.UInt(16))
        last = len(stages) - 1
        for j in range(last, 0, -GROUP):
            out = output if j == last else stages[j]
            width, height = (given.sizes[size] + 4 * (last - j) for size in ("W", "H"))
            out.compute_root().tile(x, y, xo, yo, xi, yi, width // 4, height // 4)
            out.fuse(xo, yo, t).parallel(t).vectorize(xi, vec)
            for stage in stages[max(0, j - GROUP + 1) : j]:
                stage.store_at(out, t).compute_at(out, yi).vectorize(stage.args()[0], vec)
    return output
