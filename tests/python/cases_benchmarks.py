"""The benchmark programs: matrix products, normalisation, moments, look-ups, dense layers."""

import numpy as np

from case import Case, floats, indices, sizes
from cases_paper import gconv, lookup_inputs, mlp3, mlp3_weights, relu, two_lookups, valid_conv2d


def group_convolution(I, W1, B):
    return {"O": gconv(I, W1)["O"] + B[:, :, None, None]}


def normalize(I, gamma, beta, mean, var):
    spread = np.sqrt(var + 1e-5)[:, :, None, None, None]
    centred = I - mean[:, :, None, None, None]
    return gamma[:, :, None, None] * centred / spread + beta[:, :, None, None]


def group_normalization_single_kernel(I, gamma, beta):
    mean, var = I.mean(axis=(2, 3, 4)), I.var(axis=(2, 3, 4))
    return {"O": normalize(I, gamma, beta, mean, var), "mean": mean, "var": var}


def kronecker_full(W0, W1, W2, X):
    product = np.kron(W0, np.kron(W1, W2))
    rows = X.reshape(len(X), -1) @ product.T
    return {"Y": rows.reshape(len(X), len(W0), len(W1), len(W2))}


def wavenet1(Data, FilterWeight, FilterBias, GateWeight, GateBias, ResWeight, ResBias, SkipWeight, SkipBias, dilation):
    def two_taps(weight, bias):
        out = np.zeros((len(Data), len(bias), Data.shape[2]))
        for t in range(Data.shape[2]):
            out[:, :, t] = bias + Data[:, :, t] @ weight[:, :, 1].T
            if t >= dilation:
                out[:, :, t] += Data[:, :, t - dilation] @ weight[:, :, 0].T
        return out

    filtered = two_taps(FilterWeight, FilterBias)
    gate = two_taps(GateWeight, GateBias)
    gated = np.tanh(filtered) / (1 + np.exp(-gate))
    residual = Data + ResBias[:, None] + ResWeight @ gated
    skip = SkipBias[:, None] + SkipWeight @ gated
    return {"FilterOut": filtered, "GateOut": gate, "NonLin": gated, "Res": residual, "Skip": skip}


def wavenet1_inputs(rng, B, RES, DIL, SKIP, REC, dilation):
    return {
        "Data": floats(rng, B, RES, REC),
        "FilterWeight": floats(rng, DIL, RES, 2), "FilterBias": floats(rng, DIL),
        "GateWeight": floats(rng, DIL, RES, 2), "GateBias": floats(rng, DIL),
        "ResWeight": floats(rng, RES, DIL), "ResBias": floats(rng, RES),
        "SkipWeight": floats(rng, SKIP, DIL), "SkipBias": floats(rng, SKIP),
        "dilation": dilation,
    }


def softmax(I):
    e = np.exp(I)
    return {"O": e / e.sum(axis=1, keepdims=True)}


def layer_norm(I, gamma, beta, eps):
    centred = I - I.mean(axis=1, keepdims=True)
    return {"O": gamma * centred / np.sqrt(I.var(axis=1, keepdims=True) + eps) + beta}


def group_inputs(rng, N, G, D, H, W):
    return {"I": floats(rng, N, G, D, H, W), "gamma": floats(rng, G, D), "beta": floats(rng, G, D)}


def group_inputs_with_moments(rng, N, G, D, H, W):
    moments = {"mean": floats(rng, N, G), "var": np.abs(floats(rng, N, G))}
    return group_inputs(rng, N, G, D, H, W) | moments


def row_inputs(rng, N, K):
    return {"I": floats(rng, N, K)}


GROUP_SIZES = sizes("N G D H W", (2, 3, 5, 4, 7), (1, 1, 1, 1, 1), (3, 1, 2, 1, 6), (1, 4, 1, 3, 1))
ROW_SIZES = sizes("N K", (4, 7), (1, 1), (1, 9), (5, 1))

CASES = [
    Case(
        "benchmarks/tmm.tw", "tmm",
        lambda rng, M, N, K: {"A": floats(rng, M, K), "B": floats(rng, N, K)},
        lambda A, B: {"C": A @ B.T},
        sizes("M N K", (5, 3, 7), (1, 1, 1), (1, 6, 4), (8, 2, 1)),
    ),
    Case(
        "benchmarks/bmm.tw", "bmm",
        lambda rng, B, N, K, M: {"X": floats(rng, B, N, K), "Y": floats(rng, B, K, M)},
        lambda X, Y: {"Z": X @ Y},
        sizes("B N K M", (3, 5, 7, 2), (1, 1, 1, 1), (1, 4, 3, 6), (5, 2, 1, 3)),
    ),
    Case(
        "benchmarks/tbmm.tw", "tbmm",
        lambda rng, B, N, M, K: {"X": floats(rng, B, N, M), "Y": floats(rng, B, K, M)},
        lambda X, Y: {"Z": X @ Y.transpose(0, 2, 1)},
        sizes("B N M K", (3, 5, 7, 2), (1, 1, 1, 1), (1, 4, 3, 6), (5, 2, 1, 3)),
    ),
    Case(
        "benchmarks/convolution.tw", "convolution",
        lambda rng, N, C, F, H, W, KH, KW: {
            "I": floats(rng, N, C, H, W), "W1": floats(rng, F, C, KH, KW), "B": floats(rng, F),
        },
        lambda I, W1, B: {"O": valid_conv2d(I, W1) + B[:, None, None]},
        sizes("N C F H W KH KW", (2, 3, 5, 6, 5, 3, 2), (1, 1, 1, 1, 1, 1, 1), (1, 4, 3, 3, 4, 3, 1)),
    ),
    Case(
        "benchmarks/group_convolution.tw", "group_convolution",
        lambda rng, N, G, C, F, H, W, KH, KW: {
            "I": floats(rng, N, G, C, H, W), "W1": floats(rng, G, F, C, KH, KW), "B": floats(rng, G, F),
        },
        group_convolution,
        sizes("N G C F H W KH KW", (2, 3, 2, 5, 6, 5, 3, 2), (1, 1, 1, 1, 1, 1, 1, 1), (1, 4, 3, 1, 3, 4, 3, 1)),
    ),
    Case(
        "benchmarks/group_normalization.tw", "group_normalization",
        group_inputs_with_moments,
        lambda **tensors: {"O": normalize(**tensors)},
        GROUP_SIZES,
    ),
    Case(
        "benchmarks/group_normalization_single_kernel.tw", "group_normalization_single_kernel",
        group_inputs, group_normalization_single_kernel, GROUP_SIZES,
        tolerance=1e-4,  # E(x^2) - E(x)^2 cancels
    ),
    Case(
        "benchmarks/moments.tw", "sum_2D_1D",
        row_inputs, lambda I: {"sum": I.sum(axis=1)}, ROW_SIZES,
    ),
    Case(
        "benchmarks/moments.tw", "mean_2D_1D",
        row_inputs, lambda I: {"mean": I.mean(axis=1)}, ROW_SIZES,
    ),
    Case(
        "benchmarks/moments.tw", "sum_squares_2D_1D",
        row_inputs, lambda I: {"sum_squares": (I**2).sum(axis=1)}, ROW_SIZES,
    ),
    Case(
        "benchmarks/moments.tw", "var_2D_1D",
        lambda rng, N, K: {"I": floats(rng, N, K), "mean": floats(rng, N)},
        lambda I, mean: {"var": (I**2).mean(axis=1) - mean**2},
        ROW_SIZES,
    ),
    Case(
        "benchmarks/moments.tw", "sum_and_squares_2D_1D",
        row_inputs, lambda I: {"sum": I.sum(axis=1), "sum_squares": (I**2).sum(axis=1)}, ROW_SIZES,
    ),
    Case(
        "benchmarks/moments.tw", "moments2_2D_1D",
        row_inputs, lambda I: {"mean": I.mean(axis=1), "var": I.var(axis=1)}, ROW_SIZES,
    ),
    Case(
        "benchmarks/kronecker.tw", "Kronecker3_1",
        lambda rng, M, N0, N1, N2, D2: {"W2": floats(rng, D2, N2), "X": floats(rng, M, N0, N1, N2)},
        lambda W2, X: {"XW2": X @ W2.T},
        sizes("M N0 N1 N2 D2", (2, 3, 4, 5, 7), (1, 1, 1, 1, 1), (3, 2, 1, 6, 1)),
    ),
    Case(
        "benchmarks/kronecker.tw", "Kronecker3_2",
        lambda rng, M, N0, N1, D1, D2: {"W1": floats(rng, D1, N1), "XW2": floats(rng, M, N0, N1, D2)},
        lambda W1, XW2: {"XW2W1": W1 @ XW2},
        sizes("M N0 N1 D1 D2", (2, 3, 4, 5, 7), (1, 1, 1, 1, 1), (3, 2, 1, 6, 1)),
    ),
    Case(
        "benchmarks/kronecker.tw", "Kronecker3_3",
        lambda rng, M, N0, D0, D1, D2: {"W0": floats(rng, D0, N0), "XW2W1": floats(rng, M, N0, D1, D2)},
        lambda W0, XW2W1: {"Y": np.tensordot(XW2W1, W0, (1, 1)).transpose(0, 3, 1, 2)},
        sizes("M N0 D0 D1 D2", (2, 3, 4, 5, 7), (1, 1, 1, 1, 1), (3, 2, 1, 6, 1)),
    ),
    Case(
        "benchmarks/kronecker.tw", "Kronecker3Full",
        lambda rng, M, N0, N1, N2, D0, D1, D2: {
            "W0": floats(rng, D0, N0), "W1": floats(rng, D1, N1), "W2": floats(rng, D2, N2),
            "X": floats(rng, M, N0, N1, N2),
        },
        kronecker_full,
        sizes("M N0 N1 N2 D0 D1 D2", (2, 3, 4, 5, 7, 2, 3), (1, 1, 1, 1, 1, 1, 1), (3, 2, 1, 4, 1, 5, 2)),
    ),
    Case(
        "benchmarks/1LUT.tw", "1LUT",
        lambda rng, B, E, D, L: {"LUT": floats(rng, E, D), "I": indices(rng, E, B, L)},
        lambda LUT, I: {"O": LUT[I].sum(axis=1)},
        sizes("B E D L", (3, 9, 5, 7), (1, 1, 1, 1), (4, 1, 3, 2)),
    ),
    Case(
        "benchmarks/2LUT.tw", "2LUT",
        lookup_inputs, two_lookups,
        sizes("B E1 E2 D L1 L2", (3, 9, 7, 5, 4, 2), (1, 1, 1, 1, 1, 1), (2, 1, 6, 1, 3, 5)),
    ),
    Case(
        "benchmarks/C3.tw", "C3",
        lambda rng, B, WX, WY: {"I": floats(rng, B, WX), "W": floats(rng, WY, WX)},
        lambda I, W: {"O": I @ W.T},
        sizes("B WX WY", (3, 7, 5), (1, 1, 1), (4, 1, 6)),
    ),
    Case(
        "benchmarks/mlp1.tw", "mlp1",
        lambda rng, B, M, N: {"I": floats(rng, B, M), "W1": floats(rng, M, N), "B1": floats(rng, N)},
        lambda I, W1, B1: {"O1": relu(I @ W1 + B1)},
        sizes("B M N", (3, 7, 5), (1, 1, 1), (4, 1, 6)),
    ),
    Case(
        "benchmarks/mlp3.tw", "mlp3",
        lambda rng, B, N, O, P, Q: {"I": floats(rng, B, N)} | mlp3_weights(rng, N, O, P, Q),
        mlp3,
        sizes("B N O P Q", (3, 7, 5, 4, 2), (1, 1, 1, 1, 1), (2, 1, 6, 1, 3)),
    ),
    Case(
        "benchmarks/wavenet1.tw", "wavenet1",
        wavenet1_inputs, wavenet1,
        sizes(
            "B RES DIL SKIP REC dilation",
            (2, 3, 5, 4, 9, 1), (1, 2, 3, 1, 7, 4), (1, 1, 1, 1, 1, 1), (1, 3, 2, 5, 4, 6), (2, 1, 2, 3, 5, 0),
        ),
    ),
    Case(
        "benchmarks/softmax.tw", "softmax",
        lambda rng, N, D: {"I": 60 * floats(rng, N, D)},  # exp(I - top) holds, exp(I + 60) would not
        softmax,
        sizes("N D", (4, 7), (1, 1), (1, 9), (5, 1)),
    ),
    Case(
        "benchmarks/layer_norm.tw", "layer_norm",
        lambda rng, N, D: {"I": floats(rng, N, D), "gamma": floats(rng, D), "beta": floats(rng, D), "eps": 2.0**-16},
        layer_norm,
        sizes("N D", (4, 7), (1, 1), (1, 9), (5, 1)),
        tolerance=1e-4,  # divides by a deviation that can be small
    ),
]
