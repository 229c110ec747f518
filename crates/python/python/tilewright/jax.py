"""Operators of JAX from Tilewright's functions.

>>> import jax, tilewright as tw, tilewright.jax
>>> mm = tw.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }").mm
>>> op = tw.jax.op(mm)
>>> jax.jit(lambda A, B: op(A, B).sum())(jax.numpy.ones((2, 3)), jax.numpy.ones((3, 2)))

The operator is a foreign function of XLA: what `jax.jit` compiles calls the kernel on its own memory, without Python. It has gradients where a
backward is given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from . import _native
from ._function import Function, Module, one_function

__all__ = ["op"]

_TARGET = "tilewright"

# The number of a function at given sizes, a digest of its program, and the types and shapes of its results.
_Operation = tuple[int, int, list[tuple[str, list[int]]]]


def op(function: Function | Module, backward: Function | Module | Callable[..., Any] | None = None) -> Callable[..., Any]:
    """What calls a function from JAX, also inside of `jax.jit`, `jax.vmap` and, where a backward is given, `jax.grad`.

    It takes the function's parameters in their order. A number on which shapes or subscripts depend must be one when JAX traces the call, as
    `static_argnums` of `jax.jit` has it. `backward` is another of Tilewright's functions, or anything that can be called: it is given the
    inputs, and then the gradient of each result, and gives the gradient of each floating-point array among the inputs, in order; a single one
    need not be a tuple.
    """
    function = one_function(function)
    if any(updated for _, _, _, updated in function._results):
        raise ValueError(f"`{function.__name__}` updates a tensor, and arrays of JAX never change")
    _register()
    operator = _Operator(function)
    if backward is None:
        return operator
    if isinstance(backward, (Function, Module)):
        backward = op(backward)
    return _with_gradient(operator, backward)


@functools.cache
def _register() -> None:
    for platform, handler in _native.xla_handlers().items():
        jax.ffi.register_ffi_target(_TARGET, handler, platform=platform)


def _is_traced(value: Any) -> bool:
    return isinstance(value, jax.core.Tracer)


class _Operator:
    """A function, as JAX calls it."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.__name__ = function.__name__
        self.__doc__ = function.signature
        # What was made for arguments of the same kind: they would be kept anyway.
        self.operations: dict[Any, _Operation] = {}

    def __call__(self, *args: Any) -> Any:
        if not any(map(_is_traced, args)):
            return self.function(*args)
        parameters = self.function._parameters
        if len(args) != len(parameters):
            raise TypeError(f"{self.function.signature} takes {len(parameters)} arguments, and {len(args)} were given")
        tensors, numbers, passed = [], [], []
        examples: list[Any] = []
        for value, (name, dtype, is_tensor), is_fixed in zip(args, parameters, self.function._specialised):
            passed.append(not is_tensor and _is_traced(value))
            if is_tensor:
                tensors.append(value)
                examples.append(_Kind(value))
            elif not passed[-1]:
                examples.append(value.item() if hasattr(value, "item") else value)
            elif is_fixed:
                raise TypeError(
                    f"shapes or subscripts depend on `{name}`, so it must be a number while JAX traces: use static_argnums"
                )
            else:
                numbers.append(jnp.asarray(value).astype(dtype))
                examples.append(True)
        operation, digest, results = self._operation(tuple(examples), tuple(passed))
        described: Any = jax.ShapeDtypeStruct
        made = [described(shape, jnp.dtype(dtype)) for dtype, shape in results]
        call = jax.ffi.ffi_call(_TARGET, made, vmap_method="sequential")
        found = call(*tensors, *numbers, operation=np.int64(operation), program=np.int64(digest))
        return found[0] if len(found) == 1 else tuple(found)

    def __repr__(self) -> str:
        return f"<tilewright operator of JAX: {self.function.signature}>"

    def _operation(self, examples: tuple[Any, ...], passed: tuple[bool, ...]) -> _Operation:
        key = examples, passed
        if key not in self.operations:
            given = tuple(value.example() if isinstance(value, _Kind) else value for value in examples)
            self.operations[key] = _native.xla_operation(self.function, given, passed)
        return self.operations[key]


class _Kind:
    """The type and shape of an array."""

    def __init__(self, value: Any) -> None:
        if not hasattr(value, "dtype") or not hasattr(value, "shape"):
            value = np.asarray(value)
        self.dtype = np.dtype(value.dtype)
        self.shape = tuple(value.shape)

    def example(self) -> np.ndarray[Any, Any]:
        """An array like it, which takes no memory."""
        return np.broadcast_to(np.zeros((), self.dtype), self.shape)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Kind) and (self.dtype, self.shape) == (other.dtype, other.shape)

    def __hash__(self) -> int:
        return hash((self.dtype, self.shape))


def _with_gradient(operator: _Operator, backward: Callable[..., Any]) -> Callable[..., Any]:
    """The operator with gradients from a function of all inputs and of the gradients of all results."""
    parameters = operator.function._parameters
    fixed = [at for at, is_fixed in enumerate(operator.function._specialised) if is_fixed]
    free = [at for at in range(len(parameters)) if at not in fixed]

    def forward(*args: Any) -> tuple[Any, tuple[Any, ...]]:
        return operator(*args), tuple(args[at] for at in free)

    def gradients(*given: Any) -> tuple[Any, ...]:
        *known, kept, wanted = given
        args = dict(zip(fixed, known)) | dict(zip(free, kept))
        wanted = wanted if isinstance(wanted, (tuple, list)) else (wanted,)
        found = backward(*(args[at] for at in range(len(parameters))), *wanted)
        found = iter(found if isinstance(found, (tuple, list)) else (found,))
        has_one = [parameters[at][2] and "float" in parameters[at][1] for at in free]
        return tuple(next(found) if one else None for one in has_one)

    made = jax.custom_vjp(operator, nondiff_argnums=tuple(fixed))
    made.defvjp(forward, gradients)
    return made
