"""PyTorch on the CPU, eager: MKL for the matrix product, oneDNN for convolutions, its own kernels for the rest."""

from collections.abc import Callable

import torch

from peers import Kernel
from peers.torch_kernels import KERNELS


def version() -> str:
    return f"torch {torch.__version__}"


def on_cpu(build: Callable[..., Kernel]) -> Callable[..., Kernel]:
    def building(inputs, sizes, threads):
        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        return build({name: torch.from_numpy(array) for name, array in inputs.items()}, sizes)

    return building


OPERATORS = {name: on_cpu(build) for name, build in KERNELS.items()}
