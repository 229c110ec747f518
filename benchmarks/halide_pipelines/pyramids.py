"""Steps between two levels of a pyramid, as local_laplacian and lens_blur take them; `rest` are the axes after x and y."""

import halide as hl


def downsample(f: hl.Func, *rest: hl.Var) -> hl.Func:
    """Half the size, with the weights 1 3 3 1."""
    x, y = hl.vars("x y")
    downx, downy = hl.funcs("downx downy")
    at = (x, y, *rest)
    downx[at] = (f[2 * x - 1, y, *rest] + 3 * (f[2 * x, y, *rest] + f[2 * x + 1, y, *rest]) + f[2 * x + 2, y, *rest]) / 8
    g = downx
    downy[at] = (g[x, 2 * y - 1, *rest] + 3 * (g[x, 2 * y, *rest] + g[x, 2 * y + 1, *rest]) + g[x, 2 * y + 2, *rest]) / 8
    return downy


def upsample(f: hl.Func, *rest: hl.Var) -> hl.Func:
    """Twice the size, by linear interpolation."""
    x, y = hl.vars("x y")
    upx, upy = hl.funcs("upx upy")
    weight_x, weight_y = (hl.f32((at % 2) * 2 + 1) / 4 for at in (x, y))
    upx[x, y, *rest] = hl.lerp(f[(x + 1) // 2, y, *rest], f[(x - 1) // 2, y, *rest], weight_x)
    upy[x, y, *rest] = hl.lerp(upx[x, (y + 1) // 2, *rest], upx[x, (y - 1) // 2, *rest], weight_y)
    return upy
