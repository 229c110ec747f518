"""Intel MKL's sgemm with B packed beforehand, which only a constant B allows: cblas_sgemm_pack and cblas_sgemm_compute."""

import ctypes

import numpy as np

from peers import Kernel
from peers.mkl import LIBRARY, NO_TRANSPOSE, ROW_MAJOR, pointer, version

__all__ = ["OPERATORS", "version"]

PACKED, B_MATRIX = 151, 162


def gemm(inputs, sizes, threads):
    m, n, k = (ctypes.c_int(sizes[name]) for name in "MNK")
    a, b = inputs["A"], inputs["B"]
    c = np.zeros((sizes["M"], sizes["N"]), np.float32)
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    LIBRARY.cblas_sgemm_pack_get_size.restype = ctypes.c_size_t
    packed = np.zeros(LIBRARY.cblas_sgemm_pack_get_size(B_MATRIX, m, n, k), np.uint8)
    LIBRARY.cblas_sgemm_pack(ROW_MAJOR, B_MATRIX, NO_TRANSPOSE, m, n, k, one, pointer(b), n, pointer(packed))
    arguments = (ROW_MAJOR, NO_TRANSPOSE, PACKED, m, n, k, pointer(a), k, pointer(packed), n, zero, pointer(c), n)
    return Kernel(run=lambda: LIBRARY.cblas_sgemm_compute(*arguments), output=lambda: c)


OPERATORS = {"gemm": gemm}
