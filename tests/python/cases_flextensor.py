"""The twelve operators of FlexTensor's table 1.

Convolutions are written for any number of axes: pad first, then one output pixel at a time.
Transposed ones spread each input pixel over the output, then cut off the padding.
"""

from itertools import product

import numpy as np

from case import Case, floats, sizes


def conv(image, weight, stride, pad, dilation=1):
    """(N, C, axes...) with (K, C, taps...) gives (N, K, axes...)."""
    taps = weight.shape[2:]
    padded = np.pad(image, [(0, 0), (0, 0)] + [(pad, pad)] * len(taps))
    reach = [dilation * (k - 1) + 1 for k in taps]
    extent = [(n - r) // stride + 1 for n, r in zip(padded.shape[2:], reach)]
    out = np.zeros((len(image), len(weight), *extent))
    for at in product(*map(range, extent)):
        window = tuple(slice(stride * i, stride * i + r, dilation) for i, r in zip(at, reach))
        flat = padded[:, :, *window].reshape(len(image), -1)
        out[:, :, *at] = flat @ weight.reshape(len(weight), -1).T
    return out


def conv_transpose(image, weight, stride, pad):
    """(N, C, axes...) with (C, K, taps...) gives (N, K, axes...)."""
    axes, taps = image.shape[2:], weight.shape[2:]
    full = np.zeros((len(image), weight.shape[1], *((n - 1) * stride + k for n, k in zip(axes, taps))))
    for at in product(*map(range, axes)):
        window = tuple(slice(stride * i, stride * i + k) for i, k in zip(at, taps))
        full[:, :, *window] += np.tensordot(image[:, :, *at], weight, 1)
    inside = tuple(slice(pad, n - pad) for n in full.shape[2:])
    return full[:, :, *inside]


def group_conv2d(I, weight, stride, pad):
    groups = [conv(I[:, g], weight[g], stride, pad) for g in range(I.shape[1])]
    return {"O": np.stack(groups, axis=1)}


def depthwise_conv2d(I, weight, stride, pad):
    channels = [conv(I[:, [c]], weight[c][:, None], stride, pad) for c in range(I.shape[1])]
    return {"O": np.stack(channels, axis=1)}


def inputs(image: str, weight: str, scalars: str = "stride pad"):
    """An input maker from the size names of each tensor and the names of the scalars."""

    def make(rng, **size):
        return {
            "I": floats(rng, *(size[name] for name in image.split())),
            "weight": floats(rng, *(size[name] for name in weight.split())),
            **{name: size[name] for name in scalars.split()},
        }

    return make


# Among these: a kernel as large as the image, padding wider than the kernel, a window that ends before the border.
CONV1D_SIZES = sizes(
    "N C L K KL stride pad",
    (2, 3, 9, 5, 4, 1, 0), (1, 2, 7, 3, 3, 1, 1), (1, 2, 8, 3, 3, 2, 1), (2, 1, 7, 4, 2, 3, 0), (1, 3, 5, 1, 5, 1, 0),
    (3, 1, 2, 2, 1, 2, 3), (1, 1, 1, 1, 1, 1, 0),
)
CONV2D_SIZES = sizes(
    "N C H W K KH KW stride pad",
    (2, 3, 7, 5, 4, 3, 2, 1, 0), (1, 2, 4, 5, 3, 3, 2, 1, 1), (1, 2, 8, 7, 3, 3, 3, 2, 1), (2, 1, 5, 9, 2, 2, 4, 3, 2),
    (1, 3, 4, 3, 1, 4, 3, 1, 0), (3, 1, 1, 4, 2, 1, 3, 2, 3), (1, 1, 1, 1, 1, 1, 1, 1, 0),
)
CONV3D_SIZES = sizes(
    "N C D H W K KD KH KW stride pad",
    (2, 2, 4, 5, 3, 3, 2, 3, 1, 1, 0), (1, 1, 3, 2, 4, 2, 3, 2, 3, 1, 1), (1, 2, 3, 5, 4, 3, 3, 3, 2, 2, 1),
    (1, 1, 2, 3, 4, 2, 2, 3, 4, 1, 0), (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0), (2, 1, 1, 2, 1, 1, 1, 1, 2, 3, 2),
)

# Here padding cuts the output, so it stays smaller than what the kernel adds. A stride above the kernel leaves gaps.
CONV_TRANSPOSE1D_SIZES = sizes(
    "N C L K KL stride pad",
    (2, 3, 5, 4, 3, 1, 0), (1, 2, 4, 3, 4, 2, 1), (2, 1, 6, 2, 3, 3, 2), (1, 2, 5, 1, 2, 4, 0), (1, 3, 1, 2, 5, 2, 2),
    (1, 1, 1, 1, 1, 1, 0),
)
CONV_TRANSPOSE2D_SIZES = sizes(
    "N C H W K KH KW stride pad",
    (2, 3, 4, 5, 2, 3, 2, 1, 0), (1, 2, 5, 3, 3, 4, 3, 2, 1), (2, 1, 3, 4, 2, 2, 5, 3, 2), (1, 2, 3, 2, 1, 1, 2, 3, 0),
    (1, 3, 1, 1, 2, 4, 3, 2, 1), (1, 1, 1, 1, 1, 1, 1, 1, 0),
)
CONV_TRANSPOSE3D_SIZES = sizes(
    "N C D H W K KD KH KW stride pad",
    (2, 2, 2, 3, 4, 3, 3, 2, 1, 1, 0), (1, 2, 3, 2, 4, 2, 3, 4, 2, 2, 1), (1, 1, 2, 1, 3, 2, 1, 2, 1, 3, 0),
    (1, 2, 2, 3, 1, 2, 4, 3, 5, 3, 1), (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0),
)

CASES = [
    Case(
        "flextensor/gemv.tw", "gemv",
        lambda rng, M, K: {"A": floats(rng, M, K), "B": floats(rng, K)},
        lambda A, B: {"O": A @ B},
        sizes("M K", (7, 5), (1, 1), (1, 6), (8, 1)),
    ),
    Case(
        "flextensor/gemm.tw", "gemm",
        lambda rng, M, K, N: {"A": floats(rng, M, K), "B": floats(rng, K, N)},
        lambda A, B: {"O": A @ B},
        sizes("M K N", (5, 7, 3), (1, 1, 1), (1, 4, 6), (6, 1, 5), (3, 8, 1)),
    ),
    Case(
        "flextensor/bilinear.tw", "bilinear",
        lambda rng, N, M, K, L: {"A": floats(rng, N, K), "B": floats(rng, M, K, L), "C": floats(rng, N, L)},
        lambda A, B, C: {"O": np.array([[a @ form @ c for form in B] for a, c in zip(A, C)])},
        sizes("N M K L", (3, 2, 5, 7), (1, 1, 1, 1), (4, 3, 1, 6), (2, 1, 4, 1)),
    ),
    Case(
        "flextensor/conv1d.tw", "conv1d",
        inputs("N C L", "K C KL"), lambda **t: {"O": conv(t.pop("I"), **t)}, CONV1D_SIZES,
    ),
    Case(
        "flextensor/conv_transpose1d.tw", "conv_transpose1d",
        inputs("N C L", "C K KL"), lambda **t: {"O": conv_transpose(t.pop("I"), **t)}, CONV_TRANSPOSE1D_SIZES,
    ),
    Case(
        "flextensor/conv2d.tw", "conv2d",
        inputs("N C H W", "K C KH KW"), lambda **t: {"O": conv(t.pop("I"), **t)}, CONV2D_SIZES,
    ),
    Case(
        "flextensor/conv_transpose2d.tw", "conv_transpose2d",
        inputs("N C H W", "C K KH KW"), lambda **t: {"O": conv_transpose(t.pop("I"), **t)}, CONV_TRANSPOSE2D_SIZES,
    ),
    Case(
        "flextensor/conv3d.tw", "conv3d",
        inputs("N C D H W", "K C KD KH KW"), lambda **t: {"O": conv(t.pop("I"), **t)}, CONV3D_SIZES,
    ),
    Case(
        "flextensor/conv_transpose3d.tw", "conv_transpose3d",
        inputs("N C D H W", "C K KD KH KW"), lambda **t: {"O": conv_transpose(t.pop("I"), **t)}, CONV_TRANSPOSE3D_SIZES,
    ),
    Case(
        "flextensor/group_conv2d.tw", "group_conv2d",
        inputs("N G C H W", "G K C KH KW"), group_conv2d,
        sizes(
            "N G C H W K KH KW stride pad",
            (2, 3, 2, 7, 5, 4, 3, 2, 1, 0), (1, 2, 3, 6, 7, 1, 3, 3, 2, 1), (1, 4, 1, 3, 2, 2, 2, 1, 3, 2),
            (2, 1, 2, 3, 4, 3, 2, 3, 1, 1), (1, 1, 1, 1, 1, 1, 1, 1, 1, 0),
        ),
    ),
    Case(
        "flextensor/depthwise_conv2d.tw", "depthwise_conv2d",
        inputs("N C H W", "C M KH KW"), depthwise_conv2d,
        sizes(
            "N C H W M KH KW stride pad",
            (2, 3, 7, 5, 4, 3, 2, 1, 0), (1, 2, 8, 7, 1, 3, 3, 2, 1), (1, 4, 3, 2, 2, 2, 1, 3, 2),
            (2, 1, 3, 4, 3, 2, 3, 1, 1), (1, 1, 1, 1, 1, 1, 1, 1, 0),
        ),
    ),
    Case(
        "flextensor/dilated_conv2d.tw", "dilated_conv2d",
        inputs("N C H W", "K C KH KW", "stride pad dilation"), lambda **t: {"O": conv(t.pop("I"), **t)},
        sizes(
            "N C H W K KH KW stride pad dilation",
            (2, 3, 9, 7, 4, 3, 2, 1, 0, 2), (1, 2, 8, 9, 3, 3, 3, 2, 2, 3), (2, 1, 5, 6, 2, 2, 3, 3, 1, 1),
            (1, 1, 7, 4, 1, 3, 1, 1, 0, 3), (1, 2, 5, 4, 2, 2, 3, 1, 2, 2), (1, 1, 1, 1, 1, 1, 1, 1, 0, 1),
        ),
    ),
]
