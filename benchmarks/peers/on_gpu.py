"""The libraries on an NVIDIA GPU, all through PyTorch, single precision: no TF32 anywhere.

`PEERS` maps a peer to the operators that it has, each `build(tensors, sizes) -> Kernel`. A peer that needs other settings of
PyTorch than the rest has a context manager in `SETTINGS`, which holds while it runs.

| peer | is |
|---|---|
| cublas | torch.matmul and torch.bmm |
| cudnn | cuDNN's convolutions, called as such, the fastest of its algorithms chosen by measuring |
| native | PyTorch's own convolutions: those of F.conv2d and the like with cuDNN turned off |
| eager | PyTorch step by step; embedding_bag for look-ups |
| eager_indexed | look-ups as an index and a sum |
| compiled | torch.compile |
| compiled_graphs | torch.compile with its mode "reduce-overhead", which replays a CUDA graph |
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

import torch

from peers import Kernel
from peers.torch_kernels import INDEXED, KERNELS, calling, compiled

Build = Callable[..., Kernel]

CONVOLUTIONS = (
    "conv1d", "conv2d", "conv3d", "dilated_conv2d", "group_conv2d", "depthwise_conv2d", "conv_transpose1d", "conv_transpose2d",
    "conv_transpose3d",
)
LAYERS = ("mlp3",)


def single_precision():
    torch.set_grad_enabled(False)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True


@contextmanager
def without_cudnn() -> Iterator[None]:
    torch.backends.cudnn.enabled = False
    try:
        yield
    finally:
        torch.backends.cudnn.enabled = True


def image(x: torch.Tensor) -> torch.Tensor:
    """cuDNN knows images of two and three axes; a signal is an image of one row."""
    return x.unsqueeze(2) if x.dim() == 3 else x


def along(x: torch.Tensor, value: int, across: int) -> list[int]:
    """A number for every axis of the image that `x` becomes; `across` for the one that a signal has not."""
    return [across, value] if x.dim() == 3 else [value] * (x.dim() - 2)


def convolving(x: torch.Tensor, weight: torch.Tensor, sizes: dict, groups: int = 1) -> Kernel:
    padding, stride = along(x, sizes["pad"], 0), along(x, sizes["stride"], 1)
    dilation = along(x, sizes.get("dilation", 1), 1)
    x, weight = image(x), image(weight)
    return calling(
        lambda: torch.cudnn_convolution(
            x, weight, padding, stride, dilation, groups, benchmark=True, deterministic=False, allow_tf32=False
        )
    )


def conv(x, sizes):
    return convolving(x["I"], x["weight"], sizes)


def group_conv2d(x, sizes):
    return convolving(x["I"].flatten(1, 2), x["weight"].flatten(0, 1), sizes, sizes["G"])


def depthwise_conv2d(x, sizes):
    return convolving(x["I"], x["weight"].reshape(-1, 1, sizes["KH"], sizes["KW"]), sizes, sizes["C"])


def conv_transpose(x, sizes):
    padding, stride = along(x["I"], sizes["pad"], 0), along(x["I"], sizes["stride"], 1)
    none, one = along(x["I"], 0, 0), along(x["I"], 1, 1)
    signal, weight = image(x["I"]), image(x["weight"])
    return calling(
        lambda: torch.cudnn_convolution_transpose(
            signal, weight, padding, none, stride, one, 1, benchmark=True, deterministic=False, allow_tf32=False
        )
    )


CUDNN: dict[str, Build] = {
    "conv1d": conv,
    "conv2d": conv,
    "conv3d": conv,
    "dilated_conv2d": conv,
    "group_conv2d": group_conv2d,
    "depthwise_conv2d": depthwise_conv2d,
    "conv_transpose1d": conv_transpose,
    "conv_transpose2d": conv_transpose,
    "conv_transpose3d": conv_transpose,
}

# torch.compile turns an index and a sum into one kernel, and calls embedding_bag as it is.
FUSED: dict[str, Build] = {name: KERNELS[name] for name in LAYERS} | INDEXED

PEERS: dict[str, dict[str, Build]] = {
    "cublas": {name: KERNELS[name] for name in ("gemm", "bmm", "tbmm", "gemv")},
    "cudnn": CUDNN,
    "native": {name: KERNELS[name] for name in CONVOLUTIONS},
    "eager": {name: KERNELS[name] for name in (*LAYERS, "1LUT", "2LUT")},
    "eager_indexed": INDEXED,
    "compiled": {name: compiled(build) for name, build in FUSED.items()},
    "compiled_graphs": {name: compiled(build, mode="reduce-overhead") for name, build in FUSED.items()},
}
SETTINGS = {"native": without_cudnn}


def settings(peer: str):
    return SETTINGS.get(peer, nullcontext)()
