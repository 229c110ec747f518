"""oneDNN's matmul by its C interface, from the wheel `onednn`, threaded by TBB. All operands are plain row-major, so that packing
is part of the call. TBB sizes its thread pool by the processors that the process may run on.

The wheel's processor engine is reached through OpenCL; OCL_ICD_FILENAMES names the driver, which is a wheel as well.
"""

import ctypes
import importlib.metadata
import os
import sys
from pathlib import Path

import numpy as np

from peers import Kernel

FOLDER = Path(sys.prefix, "lib")
os.environ["OCL_ICD_FILENAMES"] = str(FOLDER / "libintelocl.so")
LIBRARY = ctypes.CDLL(str(FOLDER / "libdnnl.so.3"))

# From dnnl_types.h.
CPU, IN_ORDER, F32 = 1, 1, 3
SOURCE, WEIGHTS, DESTINATION = 1, 33, 17


class Argument(ctypes.Structure):
    _fields_ = [("what", ctypes.c_int), ("memory", ctypes.c_void_p)]


def version() -> str:
    return f"onednn {importlib.metadata.version('onednn')}"


def checked(status: int):
    if status:
        raise RuntimeError(f"oneDNN answers with status {status}")


def made(function: str, *arguments) -> ctypes.c_void_p:
    """The handle that a function which makes something gives; it is kept as long as the process."""
    handle = ctypes.c_void_p()
    checked(getattr(LIBRARY, function)(ctypes.byref(handle), *arguments))
    return handle


def description(array: np.ndarray) -> ctypes.c_void_p:
    integers = ctypes.c_int64 * array.ndim
    strides = [stride // array.itemsize for stride in array.strides]
    return made(
        "dnnl_memory_desc_create_with_strides", array.ndim, integers(*array.shape), F32, integers(*strides)
    )


def matmul(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> Kernel:
    engine = made("dnnl_engine_create", CPU, ctypes.c_size_t(0))
    stream = made("dnnl_stream_create", engine, IN_ORDER)
    described = [description(array) for array in (a, b, c)]
    chosen = made("dnnl_matmul_primitive_desc_create", engine, *described[:2], None, described[2], None)
    primitive = made("dnnl_primitive_create", chosen)
    memories = [
        made("dnnl_memory_create", shape, engine, ctypes.c_void_p(array.ctypes.data))
        for shape, array in zip(described, (a, b, c), strict=True)
    ]
    arguments = (Argument * 3)(*zip((SOURCE, WEIGHTS, DESTINATION), memories, strict=True))

    def run():
        checked(LIBRARY.dnnl_primitive_execute(primitive, stream, 3, arguments))
        checked(LIBRARY.dnnl_stream_wait(stream))

    return Kernel(run=run, output=lambda: c)


def gemm(inputs, sizes, threads):
    return matmul(inputs["A"], inputs["B"], np.zeros((sizes["M"], sizes["N"]), np.float32))


def bmm(inputs, sizes, threads):
    return matmul(inputs["X"], inputs["Y"], np.zeros((sizes["B"], sizes["N"], sizes["M"]), np.float32))


def tbmm(inputs, sizes, threads):
    c = np.zeros((sizes["B"], sizes["N"], sizes["K"]), np.float32)
    return matmul(inputs["X"], inputs["Y"].transpose(0, 2, 1), c)


OPERATORS = {"gemm": gemm, "bmm": bmm, "tbmm": tbmm}
