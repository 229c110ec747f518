"""OpenVINO's CPU plugin, NCHW in and out. Weights are constants of the model, which it packs when the model is compiled."""

import numpy as np
import openvino as ov
import openvino.opset13 as op

from peers import Kernel
from references.operator import EPSILON


def version() -> str:
    return f"openvino {ov.__version__}"


def kernel(graph, x: np.ndarray, threads: int) -> Kernel:
    """A kernel of `graph`, a function from the node of the input to the node of the output."""
    parameter = op.parameter(x.shape, x.dtype, name="x")
    settings = {
        "INFERENCE_PRECISION_HINT": "f32",  # else bfloat16 where the processor has AMX
        "INFERENCE_NUM_THREADS": str(threads),
        "NUM_STREAMS": "1",
        "ENABLE_CPU_PINNING": "NO",  # the harness pins all contenders alike
    }
    model = ov.Core().compile_model(ov.Model([graph(parameter)], [parameter]), "CPU", settings)
    request = model.create_infer_request()
    request.set_input_tensor(0, ov.Tensor(x, shared_memory=True))

    def run():
        request.start_async()
        request.wait()

    return Kernel(run=run, output=lambda: np.array(request.get_output_tensor(0).data))


def gemm(inputs, sizes, threads):
    return kernel(lambda x: op.matmul(x, op.constant(inputs["B"]), False, False), inputs["A"], threads)


def window(sizes) -> tuple[list[int], list[int], list[int], list[int]]:
    """Strides, padding at the beginning and at the end, and dilations."""
    return [sizes["stride"]] * 2, [sizes["pad"]] * 2, [sizes["pad"]] * 2, [1, 1]


def conv2d(inputs, sizes, threads):
    return kernel(lambda x: op.convolution(x, op.constant(inputs["weight"]), *window(sizes)), inputs["I"], threads)


def depthwise_conv2d(inputs, sizes, threads):
    weight = op.constant(inputs["weight"][:, :, None])  # groups, out, in, height, width
    return kernel(lambda x: op.group_convolution(x, weight, *window(sizes)), inputs["I"], threads)


def softmax(inputs, sizes, threads):
    return kernel(lambda x: op.softmax(x, 1), inputs["I"], threads)


def layer_norm(inputs, sizes, threads):
    def graph(x):
        normal = op.mvn(x, op.constant(np.array([1])), True, EPSILON, "inside_sqrt")
        return op.add(op.multiply(normal, op.constant(inputs["gamma"])), op.constant(inputs["beta"]))

    return kernel(graph, inputs["I"], threads)


def lookup(inputs, sizes, threads):
    return kernel(lambda x: op.embedding_bag_packed_sum(op.constant(inputs["LUT"]), x), inputs["I"], threads)


OPERATORS = {
    "gemm": gemm,
    "conv2d": conv2d,
    "depthwise_conv2d": depthwise_conv2d,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "1LUT": lookup,
}
