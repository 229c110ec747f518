"""The longer NumPy references, each against a second way to compute the same thing. Needs no compiler."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import sliding_window_view

import cases_benchmarks
import cases_camera
import cases_filters
import cases_flextensor
import cases_images
import cases_paper
import cases_pyramids

RNG = np.random.default_rng(3)


@pytest.mark.parametrize("axes, taps", [((9,), (4,)), ((7, 5), (3, 2)), ((4, 5, 6), (2, 3, 1))])
@pytest.mark.parametrize("stride, pad, dilation", [(1, 0, 1), (2, 1, 1), (3, 2, 2)])
def test_conv_is_a_product_with_sliding_windows(axes, taps, stride, pad, dilation):
    image, weight = RNG.normal(size=(2, 3, *axes)), RNG.normal(size=(4, 3, *taps))
    n = len(axes)
    padded = np.pad(image, [(0, 0), (0, 0)] + [(pad, pad)] * n)
    reach = [dilation * (k - 1) + 1 for k in taps]
    windows = sliding_window_view(padded, reach, axis=range(2, 2 + n))
    windows = windows[:, :, *[slice(None, None, stride)] * n, *[slice(None, None, dilation)] * n]
    expected = np.einsum("bc...x,kcx->bk...", windows.reshape(*windows.shape[: 2 + n], -1), weight.reshape(4, 3, -1))
    np.testing.assert_allclose(cases_flextensor.conv(image, weight, stride, pad, dilation), expected)


@pytest.mark.parametrize("axes, taps", [((5,), (4,)), ((4, 3), (3, 5)), ((2, 3, 4), (3, 4, 3))])
@pytest.mark.parametrize("stride, pad", [(1, 0), (2, 1), (3, 1)])
def test_conv_transpose_is_the_adjoint_of_conv(axes, taps, stride, pad):
    small, weight = RNG.normal(size=(2, 3, *axes)), RNG.normal(size=(3, 4, *taps))
    spread = cases_flextensor.conv_transpose(small, weight, stride, pad)
    assert spread.shape[2:] == tuple((n - 1) * stride - 2 * pad + k for n, k in zip(axes, taps))
    large = RNG.normal(size=spread.shape)
    gathered = cases_flextensor.conv(large, weight, stride, pad)
    np.testing.assert_allclose((gathered * small).sum(), (large * spread).sum())


def test_valid_conv2d_is_conv_without_padding():
    image, weight = RNG.normal(size=(2, 3, 8, 7)), RNG.normal(size=(4, 3, 3, 2))
    for stride in 1, 2:
        expected = cases_flextensor.conv(image, weight, stride, 0)
        np.testing.assert_allclose(cases_paper.valid_conv2d(image, weight, stride, stride), expected)


def test_depthwise_is_group_convolution_of_one_channel():
    image, weight = RNG.normal(size=(2, 3, 7, 6)), RNG.normal(size=(3, 2, 3, 2))
    depthwise = cases_flextensor.depthwise_conv2d(image, weight, 2, 1)["O"]
    grouped = cases_flextensor.group_conv2d(image[:, :, None], weight[:, :, None], 2, 1)["O"]
    np.testing.assert_allclose(depthwise, grouped)


def test_kronecker_full_is_the_three_steps():
    w0, w1, w2 = RNG.normal(size=(2, 3)), RNG.normal(size=(4, 5)), RNG.normal(size=(3, 2))
    x = RNG.normal(size=(7, 3, 5, 2))
    expected = np.einsum("mabc,da,eb,fc->mdef", x, w0, w1, w2)
    np.testing.assert_allclose(cases_benchmarks.kronecker_full(w0, w1, w2, x)["Y"], expected)


def test_pyramid_with_gain_one_is_the_identity():
    image = RNG.normal(size=(7, 10))
    np.testing.assert_allclose(cases_images.pyramid(image, 1.0)["O"], image)


def test_iir_blur_with_alpha_one_is_the_identity():
    image = RNG.normal(size=(4, 5))
    np.testing.assert_array_equal(cases_images.iir_blur(image, 1.0)["O"], image)


def test_blurs_keep_a_constant_image_inside():
    np.testing.assert_allclose(cases_images.blur_zero(np.ones((5, 6)))["O"][1:-1, 1:-1], 1)
    np.testing.assert_array_equal(cases_images.blur_repeat(np.full((5, 6), 200, np.uint8))["O"], 200)


def test_demosaicing_by_planes_is_demosaicing_at_full_size():
    """At full size, red and blue have the same formulas: across, down and diagonal."""
    raw = RNG.integers(0, 1024, (16, 20))
    sites = np.tile([[0, 1], [2, 3]], (8, 10))

    def pair(image, dy, dx):
        return cases_camera.moved(image, -dy, -dx), cases_camera.moved(image, dy, dx)

    def differs(dy, dx):
        return abs(np.subtract(*pair(raw, dy, dx)))

    def between(image, dy, dx):
        return (sum(pair(image, dy, dx)) + 1) // 2

    level = np.where(differs(0, 1) < differs(1, 0), between(raw, 0, 1), between(raw, 1, 0))
    green = np.where((sites == 0) | (sites == 3), raw, level)
    across, down, rising, falling = (
        green - between(green, *step) + between(raw, *step) for step in [(0, 1), (1, 0), (1, -1), (1, 1)]
    )
    diagonal = np.where(differs(1, -1) < differs(1, 1), rising, falling)
    red = np.choose(sites, [across, raw, diagonal, down])
    blue = np.choose(sites, [down, diagonal, raw, across])
    np.testing.assert_array_equal(cases_camera.demosaiced(raw), [red, green, blue])


def test_smoothing_keeps_a_constant_image():
    image = np.full((3, 9, 10), 0.3)
    np.testing.assert_allclose(cases_filters.nl_means(image, 3, 5, 0.1)["output"], image)
    np.testing.assert_allclose(cases_filters.iir_blur(image, 0.1)["output"], image)
    np.testing.assert_allclose(cases_filters.bilateral_grid(image[0], 0.1)["output"], image[0], rtol=1e-6)
    np.testing.assert_allclose(cases_filters.harris(image)["output"], 0, atol=1e-12)


def test_iir_blur_of_a_pipeline_is_that_of_an_image_for_each_plane():
    image = RNG.normal(size=(3, 4, 5))
    expected = [cases_images.iir_blur(plane, 0.3)["O"] for plane in image]
    np.testing.assert_allclose(cases_filters.iir_blur(image, 0.3)["output"], expected)


def test_harris_is_positive_at_a_corner_and_negative_at_an_edge():
    corner, edge = np.zeros((2, 3, 11, 11))
    corner[:, 5:, 5:] = 1
    edge[:, 5:] = 1
    assert cases_filters.harris(corner)["output"].max() > 0.01
    assert cases_filters.harris(edge)["output"].max() <= 0
    assert cases_filters.harris(edge)["output"].min() < -0.01


def test_bilateral_grid_keeps_an_edge_that_a_blur_would_not():
    image = np.zeros((16, 24))
    image[:, 12:] = 1
    np.testing.assert_allclose(cases_filters.bilateral_grid(image, 0.1)["output"], image, atol=1e-6)


def test_conv_layer_is_conv_with_channels_first():
    image, weight, bias = RNG.normal(size=(2, 6, 7, 3)), RNG.normal(size=(3, 3, 3, 4)), RNG.normal(size=4)
    first = cases_flextensor.conv(image.transpose(0, 3, 1, 2), weight.transpose(3, 0, 1, 2), 1, 0, 1)
    expected = np.maximum(first.transpose(0, 2, 3, 1) + bias, 0)
    np.testing.assert_allclose(cases_filters.conv_layer(image, weight, bias)["output"], expected)


def test_interpolate_keeps_opaque_pixels():
    image = RNG.uniform(size=(4, 9, 6))
    image[3] = 1
    np.testing.assert_allclose(cases_pyramids.interpolate(image)["output"], image[:3])


def test_local_laplacian_without_remapping_is_the_identity():
    image = RNG.integers(0, 65536, (3, 11, 7), dtype=np.uint16)
    result = cases_pyramids.local_laplacian(image, 4, 0.0, 1.0)["output"]
    assert np.abs(result.astype(int) - image).max() <= 1


def test_lens_blur_in_focus_is_the_identity():
    left, right = RNG.integers(0, 256, (2, 3, 7, 9), dtype=np.uint8)
    final = cases_pyramids.lens_blur(left, right, slices=4, focus=1, scale=0.0, samples=3, R=0)["final"]
    np.testing.assert_allclose(final, left / 255)


def test_bgu_finds_an_affine_change_of_colours():
    small, large = RNG.uniform(0.2, 0.8, (3, 40, 40)), RNG.uniform(0.2, 0.8, (3, 80, 80))
    result = cases_pyramids.bgu(small, 0.5 * small + 0.1, large, cell=16, r_sigma=1.0, factor=2)["output"]
    np.testing.assert_allclose(result, 0.5 * large + 0.1, atol=0.01)
