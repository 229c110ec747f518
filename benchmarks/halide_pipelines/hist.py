"""Histogram equalisation of an RGB image."""

import halide as hl
import numpy as np

from halide_pipelines.given import Given, vector
from halide_pipelines.pictures import integers, picture

SHARE = 0.02  # brightness is computed in floats and cut to an integer: its last bit may decide


def inputs(rng, s):
    return {"input": integers(picture(rng, 3, s["H"], s["W"]), np.uint8, 255)}


def result(s):
    return np.empty((3, s["H"], s["W"]), np.uint8)


def pipeline(given: Given) -> hl.Func:
    image = given.image("input")
    x, y, c = hl.vars("x y c")
    luma, cr, cb, hist_rows, hist, cdf, bin_of, eq, output = hl.funcs("luma cr cb hist_rows hist cdf bin_of eq output")
    luma[x, y] = 0.299 * image[x, y, 0] + 0.587 * image[x, y, 1] + 0.114 * image[x, y, 2]
    cr[x, y] = (image[x, y, 0] - luma[x, y]) * 0.713 + 128
    cb[x, y] = (image[x, y, 2] - luma[x, y]) * 0.564 + 128

    rx = hl.RDom([(0, image.width())]).x
    ry = hl.RDom([(0, image.height())]).x
    b = hl.RDom([(1, 255)]).x
    hist_rows[x, y] = 0
    hist_rows[hl.i32(hl.clamp(luma[rx, y], 0, 255)), y] += 1
    hist[x] = 0
    hist[x] += hist_rows[x, ry]
    cdf[x] = hist[0]
    cdf[b] = cdf[b - 1] + hist[b]
    bin_of[x, y] = hl.u8(hl.clamp(luma[x, y], 0, 255))
    eq[x, y] = hl.clamp(cdf[bin_of[x, y]] * (hl.f32(255) / (image.height() * image.width())), 0, 255)
    red = eq[x, y] + (cr[x, y] - 128) * 1.4
    green = eq[x, y] - 0.343 * (cb[x, y] - 128) - 0.711 * (cr[x, y] - 128)
    blue = eq[x, y] + 1.765 * (cb[x, y] - 128)
    output[x, y, c] = hl.mux(c, [hl.u8(hl.clamp(colour, 0, 255)) for colour in (red, green, blue)])

    if given.expert:
        vec = vector(hl.Float(32))
        cdf.bound(x, 0, 256)
        rows = hist_rows.in_()
        # Luma is computed twice: once a row for the histogram, so that it is vectorised, and again for the output.
        luma.clone_in(hist_rows).compute_at(rows, y).vectorize(x, vec)
        rows.compute_root().vectorize(x, vec).parallel(y, 4)
        hist_rows.compute_at(rows, y).vectorize(x, vec).update().reorder(y, rx).unroll(y)
        hist.compute_root().vectorize(x, vec)
        hist.update().reorder(x, ry).vectorize(x, vec).unroll(x, 4).parallel(x).reorder(ry, x)
        cdf.compute_root()
        output.reorder(c, x, y).bound(c, 0, 3).unroll(c).parallel(y, 8).vectorize(x, vec * 2)
    return output
