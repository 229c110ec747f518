"""Compiles tensor and image programs, written as mathematics, to fast kernels.

>>> import numpy as np, tilewright as tw
>>> mm = tw.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }")
>>> mm(np.ones((2, 3), np.float32), np.ones((3, 2), np.float32))
array([[3., 3.],
       [3., 3.]], dtype=float32)

`define` returns the functions of a source text. A function takes NumPy arrays, PyTorch tensors, JAX arrays, or any object with
DLPack or a buffer. Its sizes follow from its arguments, and new sizes compile a new kernel. `Function.tune` searches for a faster
kernel. `Function.compile` returns a kernel whose calls have little overhead. `tilewright.torch.op` makes an operator of PyTorch.
"""

from __future__ import annotations

import os as _os
import sys as _sys

from . import _native, cache
from ._function import Function, Module, Tuned, define, function
from ._native import DeviceError, Kernel, ProgramError, ProgramWarning, get_threads, set_threads
from ._native import __version__ as __version__

__all__ = [
    "Device",
    "DeviceError",
    "Function",
    "Kernel",
    "Module",
    "ProgramError",
    "ProgramWarning",
    "Tuned",
    "cache",
    "define",
    "devices",
    "function",
    "get_threads",
    "set_threads",
]

# A forked process has none of the threads that kernels run on.
_os.register_at_fork(after_in_child=_native.after_fork)
_native.set_package_folders([folder for folder in _sys.path if folder])


class Device:
    """A CPU or GPU that kernels run on. `target` is its name for the argument `target=`."""

    def __init__(self, target: str, name: str, memory: int | None) -> None:
        self.target = target
        self.name = name
        self.memory = memory

    def __repr__(self) -> str:
        memory = "" if self.memory is None else f", {self.memory / 2**30:.0f} GiB"
        return f"<tilewright device {self.target}: {self.name}{memory}>"


def devices() -> list[Device]:
    """Lists the CPU of this machine, and the GPUs that CUDA and OpenCL find."""
    return [Device(**device) for device in _native.list_devices()]
