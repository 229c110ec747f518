"""The product of two matrices.

Halide's application cuda_mat_mul has no schedule for CPUs. This is the one of Halide's test/performance/matrix_multiplication.cpp,
a tile of accumulators in registers, with as many as this machine has.
"""

import halide as hl
import numpy as np

from halide_pipelines.given import TARGET, Given, vector


def inputs(rng, s):
    return {
        "A": rng.uniform(-1, 1, (s["M"], s["K"])).astype(np.float32),
        "B": rng.uniform(-1, 1, (s["K"], s["N"])).astype(np.float32),
    }


def result(s):
    return np.empty((s["M"], s["N"]), np.float32)


def pipeline(given: Given) -> hl.Func:
    a, b = given.image("A"), given.image("B")
    x, y, xi, yi, yii, xy = hl.vars("x y xi yi yii xy")
    prod, out = hl.funcs("prod out")
    k = hl.RDom([(0, given.sizes["K"])]).x
    prod[x, y] = hl.f32(0)
    prod[x, y] += a[k, y] * b[x, k]
    out[x, y] = prod[x, y]
    out.bound(x, 0, given.sizes["N"]).bound(y, 0, given.sizes["M"])

    if given.expert:
        vec = vector(hl.Float(32))
        wide = TARGET.has_feature(hl.TargetFeature.AVX512_Skylake)
        vectors, rows = (4, 4) if wide else (3, 4)
        out.tile(x, y, xi, yi, vectors * vec, 32).fuse(x, y, xy).parallel(xy)
        out.split(yi, yi, yii, rows).vectorize(xi, vec).unroll(xi).unroll(yii)
        prod.compute_at(out, yi).vectorize(x, vec).unroll(x).unroll(y)
        prod.update().reorder(x, y, k).vectorize(x, vec).unroll(x).unroll(y).unroll(k, 2)
    return out
