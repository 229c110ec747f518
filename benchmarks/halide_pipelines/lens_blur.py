"""Blurs a photograph as a large lens would: depth from two views, then a mean over random points of the aperture.

Halide's application has its own random numbers. Here it has Tilewright's, so that results can be compared.
"""

import halide as hl
import numpy as np

from halide_pipelines.given import Given
from halide_pipelines.philox import random
from halide_pipelines.pictures import integers, picture
from halide_pipelines.pyramids import downsample, upsample

SHARE = 1e-3  # rounding decides between two disparities of almost the same cost, and on the border of a disc


def inputs(rng, s):
    left = integers(picture(rng, 3, s["H"], s["W"]), np.uint8, 255)
    near = np.roll(left, 6, axis=2)
    near[:, : s["H"] // 2] = np.roll(left, 2 * s["focus"], axis=2)[:, : s["H"] // 2]
    return {"left": left, "right": near}


def result(s):
    return np.empty((3, s["H"], s["W"]), np.float32)


def pipeline(given: Given) -> hl.Func:
    left_image, right_image = given.image("left"), given.image("right")
    slices, focus, scale, samples = (given.number(name) for name in ("slices", "focus", "scale", "samples"))
    levels = given.sizes["levels"]
    x, y, z, c, xi, yi, t = hl.vars("x y z c xi yi t")
    diff, cost, confidence, filtered, depth, radius, radius_squared = hl.funcs(
        "diff cost confidence filtered depth radius radius_squared"
    )
    worst_y, worst, colours, output, places, weight, final = hl.funcs("worst_y worst colours output places weight final")
    left, right = hl.BoundaryConditions.repeat_edge(left_image), hl.BoundaryConditions.repeat_edge(right_image)
    largest = hl.i32(hl.max(slices - focus, focus) * scale)

    # The cost of each disparity, and its variance, which says how much it can be trusted.
    here = left[x, y, c]
    diff[x, y, z, c] = hl.min(hl.absd(here, right[x + 2 * z, y, c]), hl.absd(here, right[x + 2 * z + 1, y, c]))
    channels = [hl.f32(diff[x, y, z, channel]) for channel in range(3)]
    cost[x, y, z] = channels[0] * channels[0] + channels[1] * channels[1] + channels[2] * channels[2]
    r = hl.RDom([(0, slices)]).x
    mean = hl.sum(cost[x, y, r] / slices)
    confidence[x, y] = hl.sum(cost[x, y, r] * cost[x, y, r]) / slices - mean * mean

    # Pyramids fill in the cost where it says little.
    push, pull = [hl.Func("push_0")], [hl.Func(f"pull_{level}") for level in range(levels)]
    push[0][x, y, z, c] = hl.mux(c, [cost[x, y, z] * confidence[x, y], confidence[x, y]])
    width, height = left_image.width(), left_image.height()
    for level in range(1, levels):
        down = hl.Func(f"push_{level}")
        down[x, y, z, c] = downsample(push[-1], z, c)[x, y, z, c]
        width, height = width // 2, height // 2
        push.append(hl.BoundaryConditions.repeat_edge(down, [hl.Range(0, width), hl.Range(0, height)]))
    pull[-1][x, y, z, c] = push[-1][x, y, z, c]
    for level in reversed(range(levels - 1)):
        coarse = upsample(pull[level + 1], z, c)
        pull[level][x, y, z, c] = hl.lerp(coarse[x, y, z, c], push[level][x, y, z, c], hl.f32(0.5))

    filtered[x, y, z] = pull[0][x, y, z, 0] / pull[0][x, y, z, 1]
    depth[x, y] = hl.argmin(filtered[x, y, r])[0]
    radius[x, y] = hl.abs(depth[x, y] - focus) * scale
    radius_squared[x, y] = radius[x, y] * radius[x, y]
    around = hl.RDom([(-largest, 2 * largest + 1)]).x
    worst_y[x, y] = hl.maximum(radius[x, y + around])
    worst[x, y] = hl.maximum(worst_y[x + around, y])

    # A random point of the aperture counts if its pixel is blurred over this one.
    colours[x, y, c] = hl.mux(c, [*(hl.f32(left[x, y, channel]) for channel in range(3)), hl.f32(255)])
    place = [hl.i32((random(seed, z, y, x) - hl.f32(0.5)) * 2 * worst[x, y]) for seed in (0, 1)]
    places[x, y, z] = tuple(hl.clamp(offset, -largest, largest) for offset in place)
    u, v = places[x, y, z][0], places[x, y, z][1]
    distance = u * u + v * v
    in_disc = (distance < radius_squared[x, y]) | (depth[x + u, y + v] < depth[x, y])
    weight[x, y, z] = hl.select(in_disc & (distance < radius_squared[x + u, y + v]), hl.f32(1), hl.f32(0))
    s = hl.RDom([(0, samples)]).x
    output[x, y, c] = colours[x, y, c]
    output[x, y, c] += weight[x, y, s] * colours[x + places[x, y, s][0], y + places[x, y, s][1], c]
    final[x, y, c] = output[x, y, c] / output[x, y, 3]

    if given.expert:
        push[0].compute_root().reorder(c, z, x, y).bound(c, 0, 2).unroll(c).vectorize(x, 16).parallel(y, 4)
        cost.compute_at(push[0], x).vectorize(x)
        confidence.compute_at(push[0], x).vectorize(x)
        for level in range(1, levels):
            push[level].compute_at(pull[1], t).vectorize(push[level].args()[0], 8)
            if level > 1:
                pull[level].compute_at(pull[1], t).tile(x, y, xi, yi, 8, 2).vectorize(xi).unroll(yi)
        pull[1].compute_root().fuse(z, c, t).parallel(t).tile(x, y, xi, yi, 8, 2).vectorize(xi).unroll(yi)
        depth.compute_root().tile(x, y, xi, yi, 8, 2).vectorize(xi).unroll(yi).parallel(y, 8)
        colours.compute_root().reorder(c, x, y).unroll(c).vectorize(x, 8).parallel(y, 8)
        worst_y.compute_at(final, y).vectorize(x, 8)
        final.compute_root().reorder(c, x, y).bound(c, 0, 3).unroll(c).vectorize(x, 8).parallel(y)
        worst.compute_at(final, y).vectorize(x, 8)
        output.compute_at(final, x).vectorize(x)
        output.update().reorder(c, x, s).vectorize(x).unroll(c)
        weight.compute_at(output, x).unroll(x)
        places.compute_at(output, x).vectorize(x)
    return final
