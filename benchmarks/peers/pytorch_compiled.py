"""PyTorch after torch.compile, which fuses what eager PyTorch does step by step. It needs a C++ compiler."""

from collections.abc import Callable

import torch

from peers import Kernel, pytorch
from peers.pytorch import version

__all__ = ["OPERATORS", "version"]


def compiled(build: Callable[..., Kernel]) -> Callable[..., Kernel]:
    def compiling(inputs, sizes, threads):
        run = torch.compile(build(inputs, sizes, threads).run)
        return Kernel(run=run, output=lambda: pytorch.array(run()))

    return compiling


OPERATORS = {
    name: compiled(pytorch.OPERATORS[name]) for name in ("mlp3", "softmax", "layer_norm", "group_norm", "1LUT", "2LUT")
}
