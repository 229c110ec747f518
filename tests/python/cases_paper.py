"""The programs of the Tensor Comprehensions paper."""

import numpy as np

from case import Case, floats, indices, sizes


def relu(x):
    return np.maximum(x, 0)


def valid_conv2d(image, weight, sh=1, sw=1):
    """Convolution without padding, one output pixel at a time."""
    (n, _, height, width), (f, _, kh, kw) = image.shape, weight.shape
    out = np.zeros((n, f, (height - kh) // sh + 1, (width - kw) // sw + 1))
    for y in range(out.shape[2]):
        for x in range(out.shape[3]):
            window = image[:, :, sh * y : sh * y + kh, sw * x : sw * x + kw]
            out[:, :, y, x] = np.einsum("ncij,fcij->nf", window, weight)
    return out


def maxpool2x2(**tensors):
    image = tensors["in"]
    b, c, height, width = image.shape
    out = np.zeros((b, c, height // 2, width // 2))
    for y in range(height // 2):
        for x in range(width // 2):
            out[:, :, y, x] = image[:, :, 2 * y : 2 * y + 2, 2 * x : 2 * x + 2].max(axis=(2, 3))
    return {"out": out}


def conv1d(I, K):
    return {"O": np.array([I[i : i + len(K)] @ K for i in range(len(I) - len(K) + 1)])}


def gconv(I, W):
    groups = [valid_conv2d(I[:, g], W[g]) for g in range(I.shape[1])]
    return {"O": np.stack(groups, axis=1)}


def two_lookups(LUT1, I1, LUT2, I2):
    return {"O1": LUT1[I1].sum(axis=1), "O2": LUT2[I2].sum(axis=1)}


def mlp3(I, W2, B2, W3, B3, W4, B4):
    o2 = relu(I @ W2.T + B2)
    o3 = relu(o2 @ W3.T + B3)
    o4 = relu(o3 @ W4.T + B4)
    return {"O2": o2, "O3": o3, "O4": o4}


def prod_model(LUT1, I1, LUT2, I2, I3, W, W1, B1, W2, B2, W3, B3, W4, B4):
    c1, c2, c3 = LUT1[I1].sum(axis=1), LUT2[I2].sum(axis=1), I3 @ W.T
    features = np.concatenate([c1, c2, c3], axis=1)
    o1 = relu(features @ W1.T + B1)
    return {"C1": c1, "C2": c2, "C3": c3, "I": features, "O1": o1} | mlp3(o1, W2, B2, W3, B3, W4, B4)


def lookup_inputs(rng, B, E1, E2, D, L1, L2):
    return {
        "LUT1": floats(rng, E1, D), "I1": indices(rng, E1, B, L1),
        "LUT2": floats(rng, E2, D), "I2": indices(rng, E2, B, L2),
    }


def mlp3_weights(rng, N, O, P, Q):
    return {
        "W2": floats(rng, O, N), "B2": floats(rng, O),
        "W3": floats(rng, P, O), "B3": floats(rng, P),
        "W4": floats(rng, Q, P), "B4": floats(rng, Q),
    }


def prod_model_inputs(rng, B, E1, E2, D, L1, L2, WX, WY, N, O, P, Q):
    return lookup_inputs(rng, B, E1, E2, D, L1, L2) | {
        "I3": floats(rng, B, WX), "W": floats(rng, WY, WX),
        "W1": floats(rng, N, 2 * D + WY), "B1": floats(rng, N),
    } | mlp3_weights(rng, N, O, P, Q)


MV_SIZES = sizes("M K", (7, 5), (1, 1), (1, 6), (8, 1))

CASES = [
    Case(
        "paper/mv.tw", "mv",
        lambda rng, M, K: {"A": floats(rng, M, K), "x": floats(rng, K)},
        lambda A, x: {"C": A @ x},
        MV_SIZES,
    ),
    Case(
        "paper/mv_explicit.tw", "mv_explicit",
        lambda rng, M, K: {"A": floats(rng, M, K), "x": floats(rng, K)},
        lambda A, x: {"C": A @ x},
        MV_SIZES,
    ),
    Case(
        "paper/sgemm.tw", "sgemm",
        lambda rng, N, M, K: {
            "a": 0.5, "b": -1.25, "A": floats(rng, N, M), "B": floats(rng, M, K), "C": floats(rng, N, K),
        },
        lambda a, b, A, B, C: {"C": a * A @ B + b * C},
        sizes("N M K", (5, 7, 3), (1, 1, 1), (1, 4, 6), (6, 1, 5), (3, 8, 1)),
    ),
    Case(
        "paper/fcrelu.tw", "fcrelu",
        lambda rng, B, I, O: {"in": floats(rng, B, I), "weight": floats(rng, O, I), "bias": floats(rng, O)},
        lambda weight, bias, **rest: {"out": relu(rest["in"] @ weight.T + bias)},
        sizes("B I O", (3, 7, 5), (1, 1, 1), (1, 4, 3), (5, 1, 2), (4, 6, 1)),
    ),
    Case(
        "paper/conv2d.tw", "conv2d",
        lambda rng, B, IP, OP, H, W, KH, KW: {
            "in": floats(rng, B, IP, H, W), "weight": floats(rng, OP, IP, KH, KW),
        },
        lambda weight, **rest: {"out": valid_conv2d(rest["in"], weight)},
        sizes(
            "B IP OP H W KH KW",
            (2, 3, 5, 7, 6, 3, 2), (1, 1, 1, 1, 1, 1, 1), (1, 2, 3, 4, 5, 4, 5), (3, 1, 2, 1, 6, 1, 3),
        ),
    ),
    Case(
        "paper/maxpool2x2.tw", "maxpool2x2",
        lambda rng, B, C, H, W: {"in": floats(rng, B, C, H, W)},
        maxpool2x2,
        sizes("B C H W", (2, 3, 7, 4), (1, 1, 2, 2), (1, 2, 3, 5)),
    ),
    Case(
        "paper/gather.tw", "gather",
        lambda rng, N, A, B: {"X": floats(rng, N), "I": indices(rng, N, A, B)},
        lambda X, I: {"Z": X[I]},
        sizes("N A B", (7, 3, 5), (1, 1, 1), (1, 4, 2), (6, 1, 9)),
    ),
    Case(
        "paper/sconv2d.tw", "sconv2d",
        lambda rng, sh, sw, N, C, F, H, W, KH, KW: {
            "sh": sh, "sw": sw,
            "I": floats(rng, N, C, H, W), "W": floats(rng, F, C, KH, KW), "B": floats(rng, F),
        },
        lambda sh, sw, I, W, B: {"O": valid_conv2d(I, W, sh, sw) + B[:, None, None]},
        sizes(
            "sh sw N C F H W KH KW",
            (2, 3, 2, 3, 5, 9, 8, 3, 2), (1, 1, 1, 2, 3, 4, 5, 2, 3), (3, 2, 1, 1, 1, 1, 1, 1, 1),
            (4, 1, 3, 1, 2, 5, 3, 2, 3),
        ),
    ),
    Case(
        "paper/conv1d.tw", "conv1d",
        lambda rng, M, N: {"I": floats(rng, M), "K": floats(rng, N)},
        conv1d,
        sizes("M N", (9, 4), (1, 1), (5, 5), (6, 1)),
    ),
    Case(
        "paper/outerProductMM.tw", "outerProductMM",
        lambda rng, P, Q, R, S, T: {"A": floats(rng, P, Q, R), "B": floats(rng, S, R, T)},
        lambda A, B: {"O": A[:, None] @ B},
        sizes("P Q R S T", (2, 3, 7, 5, 4), (1, 1, 1, 1, 1), (3, 1, 4, 1, 2)),
    ),
    Case(
        "paper/tmm.tw", "tmm",
        lambda rng, M, N, K: {"A": floats(rng, M, K), "B": floats(rng, N, K)},
        lambda A, B: {"C": A @ B.T},
        sizes("M N K", (5, 3, 7), (1, 1, 1), (1, 6, 4), (8, 2, 1)),
    ),
    Case(
        "paper/tbmm.tw", "tbmm",
        lambda rng, B, N, M, K: {"X": floats(rng, B, N, M), "Y": floats(rng, B, K, M)},
        lambda X, Y: {"Z": X @ Y.transpose(0, 2, 1)},
        sizes("B N M K", (3, 5, 7, 2), (1, 1, 1, 1), (1, 4, 3, 6), (5, 2, 1, 3)),
    ),
    Case(
        "paper/gconv.tw", "gconv",
        lambda rng, N, G, C, F, H, W, KH, KW: {
            "I": floats(rng, N, G, C, H, W), "W": floats(rng, G, F, C, KH, KW),
        },
        gconv,
        sizes("N G C F H W KH KW", (2, 3, 2, 5, 6, 5, 3, 2), (1, 1, 1, 1, 1, 1, 1, 1), (1, 4, 3, 1, 3, 4, 3, 1)),
    ),
    Case(
        "paper/prodModel.tw", "2LUT",
        lookup_inputs, two_lookups,
        sizes("B E1 E2 D L1 L2", (3, 9, 7, 5, 4, 2), (1, 1, 1, 1, 1, 1), (2, 1, 6, 1, 3, 5)),
    ),
    Case(
        "paper/prodModel.tw", "MLP1",
        lambda rng, B, M, N: {"I": floats(rng, B, M), "W1": floats(rng, N, M), "B1": floats(rng, N)},
        lambda I, W1, B1: {"O1": relu(I @ W1.T + B1)},
        sizes("B M N", (3, 7, 5), (1, 1, 1), (4, 1, 6)),
    ),
    Case(
        "paper/prodModel.tw", "MLP3",
        lambda rng, B, N, O, P, Q: {"I": floats(rng, B, N)} | mlp3_weights(rng, N, O, P, Q),
        mlp3,
        sizes("B N O P Q", (3, 7, 5, 4, 2), (1, 1, 1, 1, 1), (2, 1, 6, 1, 3)),
    ),
    Case(
        "paper/prodModel.tw", "prodModel",
        prod_model_inputs, prod_model,
        sizes(
            "B E1 E2 D L1 L2 WX WY N O P Q",
            (3, 9, 7, 2, 4, 3, 5, 6, 8, 5, 4, 2), (1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1),
            (2, 4, 1, 3, 1, 5, 1, 1, 4, 2, 1, 3),
        ),
    ),
]
