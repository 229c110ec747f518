"""Matrix and vector products."""

from references.operator import Operator, dot, floats, shaped


def gemm_inputs(rng, s):
    return {"A": floats(rng, s["M"], s["K"]), "B": floats(rng, s["K"], s["N"])}


def gemm_element(x, s, at):
    i, j = at
    return dot(x["A"][i], x["B"][:, j])


def gemv_inputs(rng, s):
    return {"A": floats(rng, s["M"], s["K"]), "B": floats(rng, s["K"])}


def gemv_element(x, s, at):
    return dot(x["A"][at[0]], x["B"])


def bmm_inputs(rng, s):
    return {"X": floats(rng, s["B"], s["N"], s["K"]), "Y": floats(rng, s["B"], s["K"], s["M"])}


def bmm_element(x, s, at):
    b, n, m = at
    return dot(x["X"][b, n], x["Y"][b, :, m])


def tbmm_inputs(rng, s):
    return {"X": floats(rng, s["B"], s["N"], s["M"]), "Y": floats(rng, s["B"], s["K"], s["M"])}


def tbmm_element(x, s, at):
    b, n, k = at
    return dot(x["X"][b, n], x["Y"][b, k])


def bilinear_inputs(rng, s):
    return {
        "A": floats(rng, s["N"], s["K"]),
        "B": floats(rng, s["M"], s["K"], s["L"]),
        "C": floats(rng, s["N"], s["L"]),
    }


def bilinear_element(x, s, at):
    i, j = at
    return float(x["A"][i].astype(float) @ x["B"][j].astype(float) @ x["C"][i].astype(float))


OPERATORS = {
    "gemm": Operator(gemm_inputs, shaped("M", "N"), gemm_element),
    "gemv": Operator(gemv_inputs, shaped("M"), gemv_element),
    "bmm": Operator(bmm_inputs, shaped("B", "N", "M"), bmm_element, results=("Z",)),
    "tbmm": Operator(tbmm_inputs, shaped("B", "N", "K"), tbmm_element, results=("Z",)),
    "bilinear": Operator(bilinear_inputs, shaped("N", "M"), bilinear_element),
}
