"""From the raw pixels of a Bayer sensor to an image: hot pixels, demosaicing, colours, tone curve, sharpening."""

import halide as hl
import numpy as np

from halide_pipelines.given import Given, vector
from halide_pipelines.pictures import integers, picture


def inputs(rng, s):
    return {
        "input": integers(picture(rng, s["H"], s["W"]), np.uint16, 1023),
        "matrix_3200": np.array(
            [
                [1.6697, -0.2693, -0.4004, -42.4346],
                [-0.3576, 1.0615, 1.5949, -37.1158],
                [-0.2175, -1.8751, 6.9640, -26.6970],
            ],
            np.float32,
        ),
        "matrix_7000": np.array(
            [
                [2.2997, -0.4478, 0.1706, -39.0923],
                [-0.3826, 1.5906, -0.2080, -25.4311],
                [-0.0888, -0.7344, 2.2832, -20.0826],
            ],
            np.float32,
        ),
    }


def result(s):
    return np.empty((3, s["H"] - 48, s["W"] - 32), np.uint8)


avg = hl.rounding_halving_add  # the mean, rounded up; Halide finds this operation in the text of its application, too


def blur121(a, b, c):
    return avg(avg(a, c), b)


def interleave_x(a, b):
    x, y = hl.vars("x y")
    out = hl.Func("interleaved_x")
    out[x, y] = hl.select(x % 2 == 0, a[x // 2, y], b[x // 2, y])
    return out


def interleave_y(a, b):
    x, y = hl.vars("x y")
    out = hl.Func("interleaved_y")
    out[x, y] = hl.select(y % 2 == 0, a[x, y // 2], b[x, y // 2])
    return out


def demosaic(planes, x, y, c):
    """The image, and the two stages that are worth storing: green at red and at blue."""
    g_gr, r_r, b_b, g_gb, g_r, g_b = hl.funcs("g_gr r_r b_b g_gb g_r g_b")
    r_gr, b_gr, r_gb, b_gb, r_b, b_r, output = hl.funcs("r_gr b_gr r_gb b_gb r_b b_r demosaiced")
    for number, plane in enumerate((g_gr, r_r, b_b, g_gb)):
        plane[x, y] = planes[x, y, number]

    def nearer(a, b, c, d):
        """The mean of the pair that differs less."""
        return hl.select(hl.absd(a, b) < hl.absd(c, d), avg(a, b), avg(c, d))

    g_r[x, y] = nearer(g_gr[x + 1, y], g_gr[x, y], g_gb[x, y - 1], g_gb[x, y])
    g_b[x, y] = nearer(g_gb[x - 1, y], g_gb[x, y], g_gr[x, y + 1], g_gr[x, y])

    def guided(green, guide, colour, p, q):
        """The mean of a colour at p and q, corrected by the error that green has there."""
        return green[x, y] - avg(guide[p], guide[q]) + avg(colour[p], colour[q])

    r_gr[x, y] = guided(g_gr, g_r, r_r, (x, y), (x - 1, y))
    b_gr[x, y] = guided(g_gr, g_b, b_b, (x, y), (x, y - 1))
    r_gb[x, y] = guided(g_gb, g_r, r_r, (x, y), (x, y + 1))
    b_gb[x, y] = guided(g_gb, g_b, b_b, (x, y), (x + 1, y))

    def diagonal(green, guide, colour, first, second):
        """Along the diagonal of the smaller difference."""
        (p, q), (r, s) = first, second
        closer = hl.absd(colour[p], colour[q]) < hl.absd(colour[r], colour[s])
        return hl.select(closer, guided(green, guide, colour, p, q), guided(green, guide, colour, r, s))

    r_b[x, y] = diagonal(g_b, g_r, r_r, ((x, y), (x - 1, y + 1)), ((x - 1, y), (x, y + 1)))
    b_r[x, y] = diagonal(g_r, g_b, b_b, ((x, y), (x + 1, y - 1)), ((x + 1, y), (x, y - 1)))

    colours = [
        interleave_y(interleave_x(r_gr, r_r), interleave_x(r_b, r_gb)),
        interleave_y(interleave_x(g_gr, g_r), interleave_x(g_b, g_gb)),
        interleave_y(interleave_x(b_gr, b_r), interleave_x(b_b, b_gb)),
    ]
    output[x, y, c] = hl.i16(hl.mux(c, [colour[x, y] for colour in colours]))
    return output, g_r, g_b


def colour_matrix(given: Given, x, y):
    alpha = (hl.f32(1) / given.number("color_temp") - hl.f32(1 / 3200)) / hl.f32(1 / 7000 - 1 / 3200)
    matrix = hl.Func("matrix")
    mixed = given.image("matrix_3200")[x, y] * alpha + given.image("matrix_7000")[x, y] * (1 - alpha)
    matrix[x, y] = hl.i16(mixed * 256)
    return matrix


def tone_curve(given: Given, x):
    black, white = given.number("blackLevel"), given.number("whiteLevel")
    b = hl.f32(2) - hl.pow(hl.f32(2), given.number("contrast") / 100)
    a = 2 - 2 * b
    u = hl.clamp(hl.f32(x - black) * (hl.f32(1) / (white - black)), 0, 1)
    g = hl.pow(u, hl.f32(1) / given.number("gamma"))
    z = hl.select(g > 0.5, 1 - (a * (1 - g) * (1 - g) + b * (1 - g)), a * g * g + b * g)
    curve = hl.Func("curve")
    value = hl.u8(hl.clamp(z * 255 + hl.f32(0.5), 0, 255))
    curve[x] = hl.select(x <= black, hl.u8(0), hl.select(x > white, hl.u8(255), value))
    return curve


def pipeline(given: Given) -> hl.Func:
    raw = given.image("input", borders=True)
    x, y, c, xi, yo, yi, yii = hl.vars("x y c xi yo yi yii")
    shifted, denoised, deinterleaved, corrected, curved = hl.funcs("shifted denoised deinterleaved corrected curved")
    strength, unsharp_y, unsharp, mask, processed = hl.funcs("strength unsharp_y unsharp mask processed")
    shifted[x, y] = raw[x + 16, y + 12]
    neighbours = hl.max(shifted[x - 2, y], shifted[x + 2, y], shifted[x, y - 2], shifted[x, y + 2])
    denoised[x, y] = hl.clamp(shifted[x, y], 0, neighbours)
    deinterleaved[x, y, c] = hl.mux(c, [denoised[2 * x + i, 2 * y + j] for j in (0, 1) for i in (0, 1)])
    demosaiced, g_r, g_b = demosaic(deinterleaved, x, y, c)

    matrix = colour_matrix(given, x, y)
    rows = [matrix[3, k] + sum(matrix[i, k] * hl.i32(demosaiced[x, y, i]) for i in range(3)) for k in range(3)]
    corrected[x, y, c] = hl.mux(c, [hl.i16(row // 256) for row in rows])
    curve = tone_curve(given, x)
    curved[x, y, c] = curve[hl.clamp(corrected[x, y, c], 0, 1023)]

    strength[()] = hl.u8_sat(given.number("sharpen_strength") * 32)
    unsharp_y[x, y, c] = blur121(curved[x, y - 1, c], curved[x, y, c], curved[x, y + 1, c])
    unsharp[x, y, c] = blur121(unsharp_y[x - 1, y, c], unsharp_y[x, y, c], unsharp_y[x + 1, y, c])
    mask[x, y, c] = hl.i16(curved[x, y, c]) - hl.i16(unsharp[x, y, c])
    processed[x, y, c] = hl.u8_sat(curved[x, y, c] + (mask[x, y, c] * strength[()]) // 32)

    if given.expert:
        vec = vector(hl.UInt(16))
        strip = 32
        round_up = hl.TailStrategy.RoundUp
        width, height = processed.output_buffer().width(), processed.output_buffer().height()
        for table in (matrix, curve, strength):
            table.compute_root()
        processed.compute_root().reorder(c, x, y).split(y, yi, yii, 2, round_up).split(yi, yo, yi, strip // 2)
        processed.vectorize(x, 2 * vec, round_up).unroll(c).parallel(yo)
        denoised.compute_at(processed, yi).store_at(processed, yo).prefetch(raw, y, y, 2).fold_storage(y, 4)
        denoised.tile(x, y, x, y, xi, yi, 2 * vec, 2).vectorize(xi).unroll(yi)
        deinterleaved.compute_at(processed, yi).store_at(processed, yo).fold_storage(y, 4)
        deinterleaved.reorder(c, x, y).vectorize(x, 2 * vec, round_up).unroll(c)
        curved.compute_at(processed, yi).store_at(processed, yo).reorder(c, x, y)
        curved.tile(x, y, x, y, xi, yi, 2 * vec, 2, round_up).vectorize(xi).unroll(yi).unroll(c)
        corrected.compute_at(curved, x).reorder(c, x, y).vectorize(x).unroll(c)
        for green in (g_r, g_b):
            green.compute_at(processed, yi).store_at(processed, yo)
            green.vectorize(x, 2 * vec, round_up).fold_storage(y, 4)
        start = hl.LoopAlignStrategy.AlignStart
        g_b.compute_with(hl.LoopLevel(g_r, x, 0), [(x, start), (y, start)])
        demosaiced.compute_at(curved, x).vectorize(x).unroll(y).reorder(c, x, y).unroll(c)
        processed.bound(c, 0, 3).bound(x, 0, width // (2 * vec) * (2 * vec)).bound(y, 0, height // strip * strip)
    return processed
