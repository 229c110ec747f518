"""PyTorch, eager, NCHW: MKL for the matrix product, oneDNN for convolutions, its own kernels for the rest."""

import torch
import torch.nn.functional as F

from peers import Kernel
from reference import EPSILON


def version() -> str:
    return f"torch {torch.__version__}"


def tensors(inputs, threads):
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return {name: torch.from_numpy(array) for name, array in inputs.items()}


def calling(function) -> Kernel:
    """A kernel of a function that returns a new tensor each time."""
    return Kernel(run=function, output=lambda: function().numpy())


def gemm(inputs, sizes, threads):
    x = tensors(inputs, threads)
    c = torch.empty(sizes["M"], sizes["N"])
    return Kernel(run=lambda: torch.matmul(x["A"], x["B"], out=c), output=c.numpy)


def conv2d(inputs, sizes, threads):
    x = tensors(inputs, threads)
    return calling(lambda: F.conv2d(x["I"], x["weight"], None, sizes["stride"], sizes["pad"]))


def depthwise_conv2d(inputs, sizes, threads):
    x = tensors(inputs, threads)
    weight = x["weight"].reshape(-1, 1, sizes["KH"], sizes["KW"])
    return calling(lambda: F.conv2d(x["I"], weight, None, sizes["stride"], sizes["pad"], groups=sizes["C"]))


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


OPERATORS = {
    "gemm": gemm,
    "conv2d": conv2d,
    "depthwise_conv2d": depthwise_conv2d,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "1LUT": lookup,
}
