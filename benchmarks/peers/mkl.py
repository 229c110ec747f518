"""Intel MKL's products by their C interface, from the wheel `mkl`. Both operands are packed inside the call, and so timed."""

import ctypes
import importlib.metadata
import sys
from pathlib import Path

import numpy as np

from peers import Kernel

ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE = 101, 111, 112

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


def batch(x: np.ndarray, y: np.ndarray, z: np.ndarray, transpose_y: bool) -> Kernel:
    """z(b) = x(b) y(b), or with y(b) transposed, for every b."""
    count, m, n = (ctypes.c_int(extent) for extent in z.shape)
    k = ctypes.c_int(x.shape[2])
    columns = ctypes.c_int(y.shape[2])
    strides = [ctypes.c_int(array[0].size) for array in (x, y, z)]
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    arguments = (
        ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE if transpose_y else NO_TRANSPOSE, m, n, k,
        one, pointer(x), k, strides[0], pointer(y), columns, strides[1],
        zero, pointer(z), n, strides[2], count,
    )  # fmt: skip
    return Kernel(run=lambda: LIBRARY.cblas_sgemm_batch_strided(*arguments), output=lambda: z)


def bmm(inputs, sizes, threads):
    z = np.zeros((sizes["B"], sizes["N"], sizes["M"]), np.float32)
    return batch(inputs["X"], inputs["Y"], z, transpose_y=False)


def tbmm(inputs, sizes, threads):
    z = np.zeros((sizes["B"], sizes["N"], sizes["K"]), np.float32)
    return batch(inputs["X"], inputs["Y"], z, transpose_y=True)


OPERATORS = {"gemm": gemm, "bmm": bmm, "tbmm": tbmm}
