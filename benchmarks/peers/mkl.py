"""Intel MKL's sgemm by its C interface, from the wheel `mkl`. Both operands are packed inside the call, and so timed."""

import ctypes
import importlib.metadata
import sys
from pathlib import Path

import numpy as np

from peers import Kernel

ROW_MAJOR, NO_TRANSPOSE = 101, 111

LIBRARY = ctypes.CDLL(str(min(Path(sys.prefix, "lib").glob("libmkl_rt.so*"))), mode=ctypes.RTLD_GLOBAL)


def version() -> str:
    return f"mkl {importlib.metadata.version('mkl')}"


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def gemm(inputs, sizes, threads):
    m, n, k = (ctypes.c_int(sizes[name]) for name in "MNK")
    a, b = inputs["A"], inputs["B"]
    c = np.zeros((sizes["M"], sizes["N"]), np.float32)
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    arguments = (ROW_MAJOR, NO_TRANSPOSE, NO_TRANSPOSE, m, n, k, one, pointer(a), k, pointer(b), n, zero, pointer(c), n)
    return Kernel(run=lambda: LIBRARY.cblas_sgemm(*arguments), output=lambda: c)


OPERATORS = {"gemm": gemm}
