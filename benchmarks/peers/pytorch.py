"""PyTorch, eager, NCHW: MKL for the matrix product, oneDNN for convolutions, its own kernels for the rest."""

import numpy as np
import torch
import torch.nn.functional as F

from peers import Kernel
from references.operator import EPSILON


def version() -> str:
    return f"torch {torch.__version__}"


def tensors(inputs, threads):
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return {name: torch.from_numpy(array) for name, array in inputs.items()}


def array(result: torch.Tensor | tuple[torch.Tensor, ...]) -> np.ndarray:
    """What is compared; several results are joined."""
    return (torch.cat(result, dim=-1) if isinstance(result, tuple) else result).numpy()


def calling(function) -> Kernel:
    """A kernel of a function that returns new tensors each time."""
    return Kernel(run=function, output=lambda: array(function()))


def gemm(inputs, sizes, threads):
    x = tensors(inputs, threads)
    c = torch.empty(sizes["M"], sizes["N"])
    return Kernel(run=lambda: torch.matmul(x["A"], x["B"], out=c), output=c.numpy)


def gemv(inputs, sizes, threads):
    x = tensors(inputs, threads)
    out = torch.empty(sizes["M"])
    return Kernel(run=lambda: torch.mv(x["A"], x["B"], out=out), output=out.numpy)


def bmm(inputs, sizes, threads):
    x = tensors(inputs, threads)
    out = torch.empty(sizes["B"], sizes["N"], sizes["M"])
    return Kernel(run=lambda: torch.bmm(x["X"], x["Y"], out=out), output=out.numpy)


def tbmm(inputs, sizes, threads):
    x = tensors(inputs, threads)
    second = x["Y"].transpose(1, 2)
    out = torch.empty(sizes["B"], sizes["N"], sizes["K"])
    return Kernel(run=lambda: torch.bmm(x["X"], second, out=out), output=out.numpy)


def bilinear(inputs, sizes, threads):
    x = tensors(inputs, threads)
    return calling(lambda: F.bilinear(x["A"], x["C"], x["B"]))


def convolution(function, x, weight, sizes, groups: int = 1) -> Kernel:
    return calling(lambda: function(x, weight, None, sizes["stride"], sizes["pad"], sizes.get("dilation", 1), groups))


def conv(function):
    def build(inputs, sizes, threads):
        x = tensors(inputs, threads)
        return convolution(function, x["I"], x["weight"], sizes)

    return build


def conv_transpose(function):
    def build(inputs, sizes, threads):
        x = tensors(inputs, threads)
        return calling(lambda: function(x["I"], x["weight"], None, sizes["stride"], sizes["pad"]))

    return build


def group_conv2d(inputs, sizes, threads):
    x = tensors(inputs, threads)
    return convolution(F.conv2d, x["I"].flatten(1, 2), x["weight"].flatten(0, 1), sizes, sizes["G"])


def depthwise_conv2d(inputs, sizes, threads):
    x = tensors(inputs, threads)
    weight = x["weight"].reshape(-1, 1, sizes["KH"], sizes["KW"])
    return convolution(F.conv2d, x["I"], weight, sizes, sizes["C"])


def softmax(inputs, sizes, threads):
    x = tensors(inputs, threads)
    out = torch.empty_like(x["I"])
    return Kernel(run=lambda: torch.softmax(x["I"], -1, out=out), output=out.numpy)


def layer_norm(inputs, sizes, threads):
    x = tensors(inputs, threads)
    return calling(lambda: F.layer_norm(x["I"], (sizes["D"],), x["gamma"], x["beta"], EPSILON))


def lookup(inputs, sizes, threads):
    x = tensors(inputs, threads)
    return calling(lambda: F.embedding_bag(x["I"], x["LUT"], mode="sum"))


def group_norm(inputs, sizes, threads):
    x = tensors(inputs, threads)
    image, gamma, beta = x["I"].flatten(1, 2), x["gamma"].flatten(), x["beta"].flatten()
    return calling(lambda: F.group_norm(image, sizes["G"], gamma, beta, EPSILON))


def two_lookups(inputs, sizes, threads):
    x = tensors(inputs, threads)
    return calling(lambda: tuple(F.embedding_bag(x[f"I{n}"], x[f"LUT{n}"], mode="sum") for n in "12"))


def mlp3(inputs, sizes, threads):
    x = tensors(inputs, threads)

    def run():
        second = F.relu(F.linear(x["I"], x["W2"], x["B2"]))
        third = F.relu(F.linear(second, x["W3"], x["B3"]))
        return second, third, F.relu(F.linear(third, x["W4"], x["B4"]))

    return calling(run)


OPERATORS = {
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
