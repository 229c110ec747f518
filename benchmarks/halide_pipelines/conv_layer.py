"""A layer of a network: bias, 3 by 3 convolution, ReLU; channels are innermost."""

import halide as hl
import numpy as np

from halide_pipelines.given import TARGET, Given, vector


def inputs(rng, s):
    def uniform(*shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, shape).astype(np.float32)

    return {
        "input": uniform(s["N"], s["H"] + 2, s["W"] + 2, s["CI"]),
        "filter": uniform(s["CI"], 3, 3, s["CO"]),
        "bias": uniform(s["CO"]),
    }


def result(s):
    return np.empty((s["N"], s["H"], s["W"], s["CO"]), np.float32)


def fix_shape(param, *extents: int):
    """Halide compiles for this size: what lies one after the other in memory is known."""
    stride = 1
    for number, extent in enumerate(extents):
        param.dim(number).set_bounds(0, extent)
        param.dim(number).set_stride(stride)
        stride *= extent


def pipeline(given: Given) -> hl.Func:
    image, weight, bias = given.image("input"), given.image("filter"), given.image("bias")
    n_, h, w, ci_, co_ = (given.sizes[size] for size in ("N", "H", "W", "CI", "CO"))
    x, y, c, n, co, ci, xo, xi = hl.vars("x y c n co ci xo xi")
    conv, relu = hl.funcs("conv relu")
    r = hl.RDom([(0, ci_), (0, 3), (0, 3)])
    conv[c, x, y, n] = bias[c]
    conv[c, x, y, n] += weight[c, r.y, r.z, r.x] * image[r.x, x + r.y, y + r.z, n]
    relu[c, x, y, n] = hl.max(0, conv[c, x, y, n])

    fix_shape(relu.output_buffer(), co_, w, h, n_)
    fix_shape(image, ci_, w + 2, h + 2, n_)
    fix_shape(weight, co_, 3, 3, ci_)
    fix_shape(bias, co_)
    if given.expert:
        vec = vector(hl.Float(32))
        # 20 accumulators where there are 32 vector registers, 12 where there are 16.
        wide = TARGET.has_feature(hl.TargetFeature.AVX512_Skylake)
        vectors, pixels = (4, 5) if wide else (3, 4)
        relu.split(c, co, ci, vec * vectors).split(x, xo, xi, pixels).reorder(ci, xi, xo, y, n, co)
        relu.vectorize(ci, vec).unroll(ci).unroll(xi).parallel(y).parallel(n).parallel(co)
        conv.compute_at(relu, xo).vectorize(c, vec).unroll(c).unroll(x).unroll(y)
        conv.update().reorder(c, x, y, r.x, r.y, r.z, n)
        conv.update().vectorize(c, vec).unroll(c).unroll(x).unroll(y).unroll(r.x, 2)
        loaded, pixel = weight.in_(), image.in_()
        loaded.compute_at(conv, r.x).vectorize(loaded.args()[0], vec).unroll(loaded.args()[0]).unroll(loaded.args()[3])
        pixel.compute_at(conv, x).unroll(pixel.args()[0])
    return relu
