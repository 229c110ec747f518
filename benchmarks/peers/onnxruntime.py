"""ONNX Runtime's CPU provider, NCHW. Weights are constants of the graph, which it packs when the session is made."""

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

from peers import Kernel
from references.operator import EPSILON

OPSET = 17
IR_VERSION = 9
ONNX_TYPE = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.int32): TensorProto.INT32}


def version() -> str:
    return f"onnxruntime {ort.__version__}"


def session(nodes, x: np.ndarray, constants: dict[str, np.ndarray], threads: int) -> ort.InferenceSession:
    """The graph of `nodes` from the input `x` to the output `y`."""
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", ONNX_TYPE[x.dtype], x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def kernel(nodes, x: np.ndarray, constants: dict[str, np.ndarray], threads: int) -> Kernel:
    running = session(nodes, x, constants, threads)
    (y,) = running.run(None, {"x": x})
    result = ort.OrtValue.ortvalue_from_numpy(y)
    binding = running.io_binding()
    binding.bind_ortvalue_input("x", ort.OrtValue.ortvalue_from_numpy(x))
    binding.bind_ortvalue_output("y", result)
    return Kernel(run=lambda: running.run_with_iobinding(binding), output=result.numpy)


def gemm(inputs, sizes, threads):
    node = helper.make_node("MatMul", ["x", "b"], ["y"])
    return kernel([node], inputs["A"], {"b": inputs["B"]}, threads)


def convolution(x: np.ndarray, weight: np.ndarray, group: int, sizes, threads: int) -> Kernel:
    node = helper.make_node(
        "Conv",
        ["x", "weight"],
        ["y"],
        kernel_shape=[sizes["KH"], sizes["KW"]],
        strides=[sizes["stride"]] * 2,
        pads=[sizes["pad"]] * 4,
        group=group,
    )
    return kernel([node], x, {"weight": weight}, threads)


def conv2d(inputs, sizes, threads):
    return convolution(inputs["I"], inputs["weight"], 1, sizes, threads)


def depthwise_conv2d(inputs, sizes, threads):
    weight = inputs["weight"].reshape(-1, 1, sizes["KH"], sizes["KW"])
    return convolution(inputs["I"], weight, sizes["C"], sizes, threads)


def softmax(inputs, sizes, threads):
    return kernel([helper.make_node("Softmax", ["x"], ["y"], axis=-1)], inputs["I"], {}, threads)


def layer_norm(inputs, sizes, threads):
    node = helper.make_node("LayerNormalization", ["x", "gamma", "beta"], ["y"], axis=-1, epsilon=EPSILON)
    return kernel([node], inputs["I"], {name: inputs[name] for name in ("gamma", "beta")}, threads)


def lookup(inputs, sizes, threads):
    nodes = [
        helper.make_node("Gather", ["table", "x"], ["rows"], axis=0),
        helper.make_node("ReduceSum", ["rows", "axes"], ["y"], keepdims=0),
    ]
    return kernel(nodes, inputs["I"], {"table": inputs["LUT"], "axes": np.array([1])}, threads)


OPERATORS = {
    "gemm": gemm,
    "conv2d": conv2d,
    "depthwise_conv2d": depthwise_conv2d,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "1LUT": lookup,
}
