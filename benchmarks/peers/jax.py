"""JAX, compiled by XLA for the CPU, NCHW. XLA sizes its thread pool by the processors that the process may run on."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from peers import Kernel
from references.operator import EPSILON


def version() -> str:
    return f"jax {jax.__version__}"


def kernel(function, *arguments: np.ndarray) -> Kernel:
    compiled = jax.jit(function)
    held = [jnp.asarray(argument) for argument in arguments]
    return Kernel(
        run=lambda: compiled(*held).block_until_ready(),
        output=lambda: np.asarray(compiled(*held)),
    )


def gemm(inputs, sizes, threads):
    return kernel(jnp.matmul, inputs["A"], inputs["B"])


def convolution(x: np.ndarray, weight: np.ndarray, groups: int, sizes) -> Kernel:
    def function(x, weight):
        return lax.conv_general_dilated(
            x,
            weight,
            window_strides=(sizes["stride"],) * 2,
            padding=[(sizes["pad"],) * 2] * 2,
            feature_group_count=groups,
            dimension_numbers=("NCHW", "OIHW", "NCHW"),
        )

    return kernel(function, x, weight)


def conv2d(inputs, sizes, threads):
    return convolution(inputs["I"], inputs["weight"], 1, sizes)


def depthwise_conv2d(inputs, sizes, threads):
    weight = inputs["weight"].reshape(-1, 1, sizes["KH"], sizes["KW"])
    return convolution(inputs["I"], weight, sizes["C"], sizes)


def softmax(inputs, sizes, threads):
    return kernel(jax.nn.softmax, inputs["I"])


def layer_norm(inputs, sizes, threads):
    def function(x, gamma, beta):
        mean = x.mean(axis=1, keepdims=True)
        variance = jnp.square(x - mean).mean(axis=1, keepdims=True)
        return gamma * (x - mean) * lax.rsqrt(variance + EPSILON) + beta

    return kernel(function, inputs["I"], inputs["gamma"], inputs["beta"])


def lookup(inputs, sizes, threads):
    def function(table, indices):
        return table.at[indices].get(mode="promise_in_bounds").sum(axis=1)

    return kernel(function, inputs["LUT"], inputs["I"])


OPERATORS = {
    "gemm": gemm,
    "conv2d": conv2d,
    "depthwise_conv2d": depthwise_conv2d,
    "softmax": softmax,
    "layer_norm": layer_norm,
    "1LUT": lookup,
}
