"""The operators in PyTorch, NCHW, on whatever device their tensors are: `build(tensors, sizes) -> Kernel`."""

from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F

from peers import Kernel
from references.operator import EPSILON


def array(result: torch.Tensor | tuple[torch.Tensor, ...]) -> np.ndarray:
    """What is compared; several results are joined."""
    return (torch.cat(result, dim=-1) if isinstance(result, tuple) else result).cpu().numpy()


def calling(function) -> Kernel:
    """A kernel of a function that returns new tensors each time."""
    return Kernel(run=function, output=lambda: array(function()))


def into(out: torch.Tensor, function) -> Kernel:
    """A kernel of a function that writes its result there."""
    return Kernel(run=lambda: function(out), output=lambda: array(out))


def gemm(x, sizes):
    out = x["A"].new_empty(sizes["M"], sizes["N"])
    return into(out, lambda out: torch.matmul(x["A"], x["B"], out=out))


def gemv(x, sizes):
    return into(x["A"].new_empty(sizes["M"]), lambda out: torch.mv(x["A"], x["B"], out=out))


def bmm(x, sizes):
    out = x["X"].new_empty(sizes["B"], sizes["N"], sizes["M"])
    return into(out, lambda out: torch.bmm(x["X"], x["Y"], out=out))


def tbmm(x, sizes):
    second = x["Y"].transpose(1, 2)
    out = x["X"].new_empty(sizes["B"], sizes["N"], sizes["K"])
    return into(out, lambda out: torch.bmm(x["X"], second, out=out))


def bilinear(x, sizes):
    return calling(lambda: F.bilinear(x["A"], x["C"], x["B"]))


def convolution(function, x, weight, sizes, groups: int = 1) -> Kernel:
    return calling(lambda: function(x, weight, None, sizes["stride"], sizes["pad"], sizes.get("dilation", 1), groups))


def conv(function):
    def build(x, sizes):
        return convolution(function, x["I"], x["weight"], sizes)

    return build


def conv_transpose(function):
    def build(x, sizes):
        return calling(lambda: function(x["I"], x["weight"], None, sizes["stride"], sizes["pad"]))

    return build


def group_conv2d(x, sizes):
    return convolution(F.conv2d, x["I"].flatten(1, 2), x["weight"].flatten(0, 1), sizes, sizes["G"])


def depthwise_conv2d(x, sizes):
    weight = x["weight"].reshape(-1, 1, sizes["KH"], sizes["KW"])
    return convolution(F.conv2d, x["I"], weight, sizes, sizes["C"])


def softmax(x, sizes):
    return into(torch.empty_like(x["I"]), lambda out: torch.softmax(x["I"], -1, out=out))


def layer_norm(x, sizes):
    return calling(lambda: F.layer_norm(x["I"], (sizes["D"],), x["gamma"], x["beta"], EPSILON))


def lookup(x, sizes):
    return calling(lambda: F.embedding_bag(x["I"], x["LUT"], mode="sum"))


def group_norm(x, sizes):
    image, gamma, beta = x["I"].flatten(1, 2), x["gamma"].flatten(), x["beta"].flatten()
    return calling(lambda: F.group_norm(image, sizes["G"], gamma, beta, EPSILON))


def two_lookups(x, sizes):
    return calling(lambda: tuple(F.embedding_bag(x[f"I{n}"], x[f"LUT{n}"], mode="sum") for n in "12"))


def indexed_lookup(x, sizes):
    """The rows of the table, then their sum."""
    return calling(lambda: x["LUT"][x["I"]].sum(1))


def two_indexed_lookups(x, sizes):
    return calling(lambda: tuple(x[f"LUT{n}"][x[f"I{n}"]].sum(1) for n in "12"))


def mlp3(x, sizes):

    def run():
        second = F.relu(F.linear(x["I"], x["W2"], x["B2"]))
        third = F.relu(F.linear(second, x["W3"], x["B3"]))
        return second, third, F.relu(F.linear(third, x["W4"], x["B4"]))

    return calling(run)


KERNELS = {
    "gemm": gemm,
    "gemv": gemv,
    "bmm": bmm,
    "tbmm": tbmm,
    "bilinear": bilinear,
    "conv1d": conv(F.conv1d),
    "conv2d": conv(F.conv2d),
    "conv3d": conv(F.conv3d),
    "dilated_conv2d": conv(F.conv2d),
    "conv_transpose1d": conv_transpose(F.conv_transpose1d),
    "conv_transpose2d": conv_transpose(F.conv_transpose2d),
    "conv_transpose3d": conv_transpose(F.conv_transpose3d),
    "group_conv2d": group_conv2d,
    "depthwise_conv2d": depthwise_conv2d,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "1LUT": lookup,
    "2LUT": two_lookups,
    "mlp3": mlp3,
}

INDEXED = {"1LUT": indexed_lookup, "2LUT": two_indexed_lookups}


def compiled(build: Callable[..., Kernel], **options) -> Callable[..., Kernel]:
    """The same after torch.compile, with its options."""

    def compiling(x, sizes):
        run = torch.compile(build(x, sizes).run, **options)
        return Kernel(run=run, output=lambda: array(run()))

    return compiling
