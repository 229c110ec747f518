"""PyTorch after torch.compile, which fuses what eager PyTorch does step by step. It needs a C++ compiler."""

from peers.pytorch import on_cpu, version
from peers.torch_kernels import KERNELS, compiled

__all__ = ["OPERATORS", "version"]

OPERATORS = {
    name: on_cpu(compiled(KERNELS[name])) for name in ("mlp3", "softmax", "layer_norm", "group_norm", "1LUT", "2LUT")
}
