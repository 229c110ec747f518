"""Layers of networks: softmax, normalisations, look-ups, a perceptron."""

import numpy as np

from references.operator import EPSILON, Inputs, Operator, aligned, floats, shaped


def softmax_inputs(rng, s):
    return {"I": floats(rng, s["N"], s["D"])}


def softmax_element(x, s, at):
    n, d = at
    row = x["I"][n].astype(float)
    powers = np.exp(row - row.max())
    return powers[d] / powers.sum()


def layer_norm_inputs(rng, s):
    return {"I": floats(rng, s["N"], s["D"]), "gamma": floats(rng, s["D"]), "beta": floats(rng, s["D"])}


def layer_norm_element(x, s, at):
    n, d = at
    row = x["I"][n].astype(float)
    return x["gamma"][d] * (row[d] - row.mean()) / np.sqrt(row.var() + EPSILON) + x["beta"][d]


def group_norm_inputs(rng, s):
    return {
        "I": floats(rng, s["N"], s["G"], s["D"], s["H"], s["W"]),
        "gamma": floats(rng, s["G"], s["D"]),
        "beta": floats(rng, s["G"], s["D"]),
    }


def group_norm_element(x, s, at):
    n, g, d, *pixel = at
    group = x["I"][n, g].astype(float)
    normal = (group[(d, *pixel)] - group.mean()) / np.sqrt(group.var() + EPSILON)
    return x["gamma"][g, d] * normal + x["beta"][g, d]


def lookup_inputs(rng, s):
    return table(rng, s, "")


def lookup_element(x, s, at):
    b, d = at
    return x["LUT"][x["I"][b], d].astype(float).sum()


def table(rng, s, number: str) -> Inputs:
    indices = rng.integers(0, s[f"E{number}"], (s["B"], s[f"L{number}"]), dtype=np.int32)
    return {f"LUT{number}": floats(rng, s[f"E{number}"], s["D"]), f"I{number}": aligned(indices)}


def two_lookups_inputs(rng, s):
    return table(rng, s, "1") | table(rng, s, "2")


def two_lookups_element(x, s, at):
    b, column = at
    which, d = divmod(column, s["D"])
    return x[f"LUT{which + 1}"][x[f"I{which + 1}"][b], d].astype(float).sum()


MLP3 = (("W2", "B2", "O", "N"), ("W3", "B3", "P", "O"), ("W4", "B4", "Q", "P"))  # weight, bias, outputs, inputs


def mlp3_inputs(rng, s):
    x = {"I": floats(rng, s["B"], s["N"])}
    for weight, bias, outputs, inputs in MLP3:
        x |= {weight: floats(rng, s[outputs], s[inputs]), bias: floats(rng, s[outputs])}
    return x


def mlp3_element(x, s, at):
    b, column = at
    values, layers = x["I"][b].astype(float), []
    for weight, bias, _, _ in MLP3:
        values = np.maximum(x[weight].astype(float) @ values + x[bias], 0)
        layers.append(values)
    return np.concatenate(layers)[column]


OPERATORS = {
    "softmax": Operator(softmax_inputs, shaped("N", "D"), softmax_element),
    "layer_norm": Operator(layer_norm_inputs, shaped("N", "D"), layer_norm_element, scalars={"eps": EPSILON}),
    "group_norm": Operator(group_norm_inputs, shaped("N", "G", "D", "H", "W"), group_norm_element),
    "1LUT": Operator(lookup_inputs, shaped("B", "D"), lookup_element),
    "2LUT": Operator(two_lookups_inputs, lambda s: (s["B"], 2 * s["D"]), two_lookups_element, results=("O1", "O2")),
    "mlp3": Operator(mlp3_inputs, lambda s: (s["B"], s["O"] + s["P"] + s["Q"]), mlp3_element, results=("O2", "O3", "O4")),
}
