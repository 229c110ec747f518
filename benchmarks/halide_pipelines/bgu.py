"""Bilateral-guided upsampling: an affine map of colours for each cell of a grid, by least squares, applied to a large image."""

import halide as hl
import numpy as np

from halide_pipelines.given import Given
from halide_pipelines.pictures import picture

TOLERANCE = 5e-3  # Halide divides by fast_inverse, and few cells are well conditioned; with a division it is 3e-5
VECTOR = 8  # wider vectors do not help
TAPS = {-3: 1 / 64, -2: 1 / 27, -1: 1 / 8, 0: 1.0, 1: 1 / 8, 2: 1 / 27, 3: 1 / 64}


def inputs(rng, s):
    large = picture(rng, 3, s["H"], s["W"])
    rows, columns = np.arange(s["h"]) * s["H"] // s["h"], np.arange(s["w"]) * s["W"] // s["w"]
    small = np.ascontiguousarray(large[:, rows][:, :, columns])
    return {"splat_loc": small, "values": np.sqrt(small), "slice_loc": large}


def result(s):
    return np.empty((3, s["H"], s["W"]), np.float32)


def luma(f, x, y):
    return 0.25 * f[x, y, 0] + 0.5 * f[x, y, 1] + 0.25 * f[x, y, 2]


def blur7(at):
    return sum((at(d) * hl.f32(weight) for d, weight in TAPS.items()), hl.f32(0))


def solve_symmetric(a, b, x, y, z) -> hl.Func:
    """The Func f with f[x, y, z, i, 4 + k] the solution of a times the column k of b, by an L D L' factorisation in place."""
    vi, vj = hl.vars("vi vj")
    f = hl.Func("solve")
    size, columns = len(a), len(b[0])

    def at(i, j):
        return f[x, y, z, i, j]

    def put(i, j, value):
        f[x, y, z, i, j] = value

    f[x, y, z, vi, vj] = hl.undef(hl.Float(32))
    for i in range(size):
        for j in range(size):
            put(i, j, a[i][j])
        for k in range(columns):
            put(i, size + k, b[i][k])
    # L below the diagonal, 1 / D on it.
    for j in range(size):
        put(j, j, hl.fast_inverse(at(j, j)))
        for i in range(j + 1, size):
            put(i, j, at(i, j) * at(j, j))
        for i in range(j + 1, size):
            for k in range(j + 1, size):
                put(i, k, at(k, i) if k < i else at(i, k) - at(k, j) * at(j, i))
    for k in range(size, size + columns):
        for j in range(size):
            for i in range(j):
                put(j, k, at(j, k) - at(j, i) * at(i, k))
        for j in range(size):
            put(j, k, at(j, k) * at(j, j))
        for j in reversed(range(size)):
            for i in range(j + 1, size):
                put(j, k, at(j, k) - at(i, j) * at(i, k))
    return f


def equations(sums):
    """The matrix and the right-hand sides of a cell, pulled towards the identity by a tenth of a sample."""
    regular = hl.f32(0.1)
    entry = {(0, 0): 0, (0, 1): 1, (0, 2): 2, (0, 3): 3, (1, 1): 4, (1, 2): 5, (1, 3): 6, (2, 2): 7, (2, 3): 8, (3, 3): 9}
    a = [[sums(entry[min(i, j), max(i, j)]) + (regular if i == j else 0) for j in range(4)] for i in range(4)]
    b = [[sums(10 + 4 * k + i) + (regular if i == k else 0) for k in range(3)] for i in range(4)]
    return a, b


def pipeline(given: Given) -> hl.Func:
    r_sigma, cell = given.number("r_sigma"), given.number("cell")
    splat_loc, values, slice_loc = given.image("splat_loc"), given.image("values"), given.image("slice_loc")
    x, y, z, c = hl.vars("x y z c")
    gray_splat, gray_slice, histogram, blurx, blury, blurz = hl.funcs("gray_splat gray_slice histogram blurx blury blurz")
    line, matrix_y, matrix_x, matrix_z, slice_z, interpolated, sliced = hl.funcs(
        "line matrix_y matrix_x matrix_z slice_z interpolated sliced"
    )
    splat, value = hl.BoundaryConditions.repeat_edge(splat_loc), hl.BoundaryConditions.repeat_edge(values)
    factor_x = hl.i32(hl.ceil(hl.f32(slice_loc.width()) / splat_loc.width()))
    factor_y = hl.i32(hl.ceil(hl.f32(slice_loc.height()) / splat_loc.height()))
    gray_splat[x, y] = luma(splat, x, y)
    gray_slice[x, y] = luma(slice_loc, x, y)

    # The sums of products that a cell needs for its least squares.
    r = hl.RDom([(0, cell), (0, cell)])
    sx, sy = x * cell + r.x - cell // 2, y * cell + r.y - cell // 2
    zi = hl.i32(hl.round(hl.clamp(gray_splat[sx, sy], 0, 1) * (hl.f32(1) / r_sigma)))
    s = [splat[sx, sy, channel] for channel in range(3)]
    v = [value[sx, sy, channel] for channel in range(3)]
    moments = [s[0] * s[0], s[0] * s[1], s[0] * s[2], s[0], s[1] * s[1], s[1] * s[2], s[1], s[2] * s[2], s[2], hl.f32(1)]
    moments += [product for colour in v for product in (colour * s[0], colour * s[1], colour * s[2], colour)]
    histogram[x, y, z, c] = hl.f32(0)
    histogram[x, y, zi, c] += hl.mux(c, moments)

    blurz[x, y, z, c] = blur7(lambda d: histogram[x, y, z + d, c])
    blury[x, y, z, c] = blur7(lambda d: blurz[x, y + d, z, c])
    blurx[x, y, z, c] = blur7(lambda d: blury[x + d, y, z, c])
    solved = solve_symmetric(*equations(lambda channel: blurx[x, y, z, channel]), x, y, z)
    line[x, y, z, c] = hl.mux(c, [solved[x, y, z, i, 4 + k] for k in range(3) for i in range(4)])

    # The matrix of each pixel, between eight cells, and the pixel's colour times this matrix.
    big = cell * hl.max(factor_x, factor_y)
    yf, xf = hl.f32(y) / big, hl.f32(x) / big
    yi, xi = hl.i32(hl.floor(yf)), hl.i32(hl.floor(xf))
    matrix_y[x, y, z, c] = hl.lerp(line[x, yi, z, c], line[x, yi + 1, z, c], yf - yi)
    matrix_x[x, y, z, c] = hl.lerp(matrix_y[xi, y, z, c], matrix_y[xi + 1, y, z, c], xf - xi)
    zv = hl.clamp(gray_slice[x, y], 0, 1) * hl.i32(hl.f32(1) / r_sigma)
    slice_z[x, y] = (hl.i32(zv), zv - hl.i32(zv))
    low, part = slice_z[x, y][0], slice_z[x, y][1]
    matrix_z[x, y, c] = hl.lerp(matrix_x[x, y, low, c], matrix_x[x, y, low + 1, c], part)
    products = [matrix_z[x, y, 4 * c + channel] * slice_loc[x, y, channel] for channel in range(3)]
    interpolated[x, y, c] = products[0] + products[1] + products[2] + matrix_z[x, y, 4 * c + 3]
    sliced[x, y, c] = hl.clamp(interpolated[x, y, c], 0, 1)

    if given.expert:
        histogram.compute_at(blurz, y)
        histogram.update().reorder(c, r.x, r.y, x, y).unroll(c)
        gray_splat.compute_at(blurz, y).vectorize(x, VECTOR)
        blurz.compute_root().reorder(c, z, x, y).parallel(y).vectorize(x, VECTOR)
        blury.compute_at(line, z).hoist_storage(line, y).vectorize(x, VECTOR)
        blurx.compute_at(line, x).vectorize(x)
        for update in range(solved.num_update_definitions()):
            solved.update(update).vectorize(x)
        solved.compute_at(line, x)
        line.compute_root().parallel(y).vectorize(x, VECTOR).reorder(c, x, y).unroll(c)
        matrix_y.compute_root().parallel(c).parallel(z).vectorize(x, VECTOR)
        matrix_z.store_at(sliced, x).compute_at(sliced, c).reorder(c, x, y).unroll(c).vectorize(x)
        sliced.compute_root().parallel(y).vectorize(x, VECTOR).reorder(c, x, y).bound(c, 0, 3).unroll(c)
    return sliced
