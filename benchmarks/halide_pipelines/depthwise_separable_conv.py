"""Depthwise separable convolution: 3 by 3 for each channel, then the combination of the channels, bias and ReLU."""

import halide as hl
import numpy as np

from halide_pipelines.given import TARGET, Given, vector


def inputs(rng, s):
    def uniform(*shape: int) -> np.ndarray:
        return rng.uniform(-1, 1, shape).astype(np.float32)

    between = s["C"] * s["M"]
    return {
        "input": uniform(s["N"], s["H"], s["W"], s["C"]),
        "depthwise_filter": uniform(3, 3, between, s["M"]),
        "pointwise_filter": uniform(between, s["K"]),
        "bias": uniform(s["K"]),
    }


def result(s):
    return np.empty((s["N"], s["H"], s["W"], s["K"]), np.float32)


def tile_sizes(vec: int) -> tuple[int, int, int]:
    """Channels, columns and rows, so that the accumulators fit the registers: 24 of 32, 12 of 16."""
    if TARGET.has_feature(hl.TargetFeature.AVX512_Skylake):
        return vec, 6, 4
    return (2 * vec, 3, 2) if vec == 8 else (4 * vec, 2, 1)


def pipeline(given: Given) -> hl.Func:
    image, bias = given.image("input"), given.image("bias")
    depthwise_filter, pointwise_filter = given.image("depthwise_filter"), given.image("pointwise_filter")
    x, y, d, b, di, xi, yi = hl.vars("x y d b di xi yi")
    bounded, depthwise, pointwise, output = hl.funcs("bounded depthwise pointwise output")

    # Zeros beyond the edges. A ready-made boundary condition would partition loops.
    width, height = image.dim(1), image.dim(2)
    inside = (x >= 0) & (x < width.extent()) & (y >= 0) & (y < height.extent())
    pixel = image[d, hl.clamp(x, 0, width.max()), hl.clamp(y, 0, height.max()), b]
    bounded[d, x, y, b] = hl.select(inside, pixel, hl.f32(0))

    multiplier = depthwise_filter.dim(0).extent()
    pad_x, pad_y = depthwise_filter.dim(2).extent() // 2, depthwise_filter.dim(3).extent() // 2
    taps = hl.RDom([(0, depthwise_filter.dim(axis).extent()) for axis in (0, 2, 3)])
    rd, rx, ry = taps.x, taps.y, taps.z
    moved = bounded[d // multiplier, x + rx - pad_x, y + ry - pad_y, b]
    depthwise[d, x, y, b] = hl.f32(0)
    depthwise[d, x, y, b] += depthwise_filter[rd, d, rx, ry] * moved

    rc = hl.RDom([(0, pointwise_filter.dim(1).extent())]).x
    pointwise[d, x, y, b] = bias[d]
    pointwise[d, x, y, b] += pointwise_filter[d, rc] * depthwise[rc, x, y, b]
    output[d, x, y, b] = hl.max(pointwise[d, x, y, b], hl.f32(0))

    if given.expert:
        vec = vector(hl.Float(32))
        channels, columns, rows = tile_sizes(vec)
        ro, ri = hl.RVar("ro"), hl.RVar("ri")
        # The depthwise convolution is computed within slices of the pointwise reduction.
        output.tile([d, x, y], [di, xi, yi], [channels, columns, rows])
        output.vectorize(di).unroll(xi).unroll(yi).fuse(y, b, b).parallel(b)
        pointwise.compute_at(output, d).vectorize(d).unroll(x).unroll(y)
        pointwise.update().reorder(d, x, y, rc, b).vectorize(d).unroll(x).unroll(y).split(rc, ro, ri, channels)
        depthwise.store_in(hl.MemoryType.Stack).bound_extent(d, channels).compute_at(pointwise, ro)
        depthwise.vectorize(d).reorder(x, y, d).unroll(x).unroll(y)
        depthwise.update().vectorize(d).reorder(x, y, d, rd, rx, ry, b).unroll(x).unroll(y)
        bounded.store_in(hl.MemoryType.Stack).compute_at(pointwise, ro)
        bounded.tile(d, x, di, xi, vec, 4, hl.TailStrategy.RoundUp).vectorize(di).unroll(xi)

        depthwise_filter.dim(1).set_stride(multiplier)
        between = pointwise_filter.dim(1).extent()
        square = (depthwise_filter.dim(2).extent() == 3) & (depthwise_filter.dim(3).extent() == 3)
        output.specialize((multiplier == 1) & (between == between // 32 * 32) & square)
    return output
