"""Operators of JAX from Tilewright's functions.

>>> import jax, tilewright as tw, tilewright.jax
>>> mm = tw.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }").mm
>>> op = tw.jax.op(mm)
>>> jax.jit(lambda A, B: op(A, B).sum())(jax.numpy.ones((2, 3)), jax.numpy.ones((3, 2)))

The operator is a foreign function of XLA: a program that `jax.jit` compiles calls the kernel on XLA's memory, without Python. The
operator has gradients if a backward function is given.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from . import _native
from ._function import Function, Module, one_function, refuse_backward_arguments

__all__ = ["op"]

_TARGET = "tilewright"

# The number of an operation, the digest of its program, and the types and shapes of its results.
_Operation = tuple[int, int, list[tuple[str, list[int]]]]


def op(function: Function | Module, backward: Function | Module | Callable[..., Any] | None = None) -> Callable[..., Any]:
    """Makes an operator that JAX can call, also inside `jax.jit`, `jax.vmap` and, if a backward is given, `jax.grad`.

    The operator takes the function's parameters in their order or by name. A number that shapes or subscripts depend on must be
    known when JAX traces the call: use `static_argnums` of `jax.jit`.

    `backward` is another of Tilewright's functions, or any callable. It takes the inputs, and then the gradient of each result.
    It returns the gradient of each floating-point array among the inputs, in order. A single gradient need not be in a tuple.
    It may also return the gradients of all floating-point numbers, each at its place among the parameters. Second derivatives
    exist if JAX can differentiate the backward, for example if the backward is an operator with its own backward.
    """
    function = one_function(function)
    if any(updated for _, _, _, updated in function._results):
        raise ValueError(f"`{function.__name__}` updates a tensor, and arrays of JAX never change")
    _register()
    if isinstance(backward, (Function, Module)):
        backward = one_function(backward)
        refuse_backward_arguments(function, backward)
        _gradients_of(function, len(backward._results), backward.signature)
        backward = op(backward)
    return _Operator(function, backward)


@functools.cache
def _register() -> None:
    for platform, handler in _native.xla_handlers().items():
        jax.ffi.register_ffi_target(_TARGET, handler, platform=platform)


def _is_traced(value: Any) -> bool:
    return isinstance(value, jax.core.Tracer)


class _Operator:
    """An operator of JAX that calls a function."""

    def __init__(self, function: Function, backward: Callable[..., Any] | None) -> None:
        self.function = function
        self.backward = backward
        self.parameters = function._parameters
        self.names = [name for name, _, _ in self.parameters]
        self.__name__ = function.__name__
        self.__doc__ = function.signature
        # Operations by the types and shapes of their arguments. The native part keeps them for ever anyway.
        self.operations: dict[Any, _Operation] = {}

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        values = self._in_order(args, kwargs)
        return self.run(values) if self.backward is None else _with_gradients(self, self.backward, values)

    def __repr__(self) -> str:
        return f"<tilewright operator of JAX: {self.function.signature}>"

    def _in_order(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Returns a value for each parameter, in order."""
        given = dict(zip(self.names, args))
        for name in kwargs:
            if name not in self.names:
                raise TypeError(f"{self.__name__}() has no parameter `{name}`. It has: {', '.join(self.names)}")
            if name in given:
                raise TypeError(f"{self.__name__}() got two values for `{name}`")
        count = len(args) + len(kwargs)
        if count != len(self.names):
            raise TypeError(f"{self.function.signature} takes {len(self.names)} arguments, and was given {count}")
        given |= kwargs
        return [given[name] if is_tensor else _as_number(given[name]) for name, _, is_tensor in self.parameters]

    def run(self, values: Sequence[Any]) -> Any:
        """Calls the function without gradients."""
        if not any(map(_is_traced, values)):
            return self.function(*values)
        parameters = zip(values, self.parameters, self.function._specialised)
        given = [_traced(value, *parameter, is_fixed) for value, parameter, is_fixed in parameters]
        key = tuple(own.key for own in given)
        if key not in self.operations:
            examples, passed = tuple(own.example for own in given), tuple(own.is_passed for own in given)
            self.operations[key] = _native.xla_operation(self.function, examples, passed)
        tensors = [own.operand for own in given if own.operand is not None and not own.is_passed]
        numbers = [own.operand for own in given if own.is_passed]
        return _call(self.operations[key], tensors + numbers)


def _call(operation: _Operation, operands: list[Any]) -> Any:
    """Adds the call to the program that JAX traces."""
    number, digest, results = operation
    described: Any = jax.ShapeDtypeStruct
    made = [described(shape, jnp.dtype(dtype)) for dtype, shape in results]
    call = jax.ffi.ffi_call(_TARGET, made, vmap_method="sequential")
    found = call(*operands, operation=np.int64(number), program=np.int64(digest))
    return found[0] if len(found) == 1 else tuple(found)


def _as_number(value: Any) -> Any:
    """Returns the number in an array without dimensions, if JAX does not trace it."""
    is_known = isinstance(value, (np.generic, np.ndarray, jax.Array)) and not _is_traced(value)
    return value.item() if is_known and value.ndim == 0 else value


class _Argument(NamedTuple):
    """The argument for a parameter of a call that JAX traces: an example for the compiler, and the operand of the call."""

    example: Any
    # Equal for arguments that can use the same machine code.
    key: Any
    operand: Any = None
    # Whether the argument is a number that every call passes.
    is_passed: bool = False


def _traced(value: Any, name: str, dtype: str, is_tensor: bool, is_fixed: bool) -> _Argument:
    """Reads the argument for a parameter."""
    if is_tensor:
        array = jnp.asarray(_array(name, value))
        # A broadcast scalar takes no memory.
        example = np.broadcast_to(np.zeros((), array.dtype), array.shape)
        return _Argument(example, (array.dtype, array.shape), array)
    if not _is_traced(value):
        return _Argument(value, _exact_key(dtype, value))
    if is_fixed:
        raise TypeError(
            f"shapes or subscripts depend on `{name}`, so it must be a number while JAX traces: use static_argnums"
        )
    return _Argument(True, None, _computed(name, dtype, value), is_passed=True)


def _array(name: str, value: Any) -> Any:
    """Returns an array that JAX accepts. Lists and numbers are refused, as in calls that JAX does not trace."""
    if isinstance(value, (jax.Array, np.ndarray)):
        return value
    if isinstance(value, (list, tuple, int, float, complex)):
        raise TypeError(f"`{name}` takes an array, not {type(value).__name__}")
    return np.asarray(value)


def _exact_key(dtype: str, value: Any) -> Any:
    """Returns a key that is unique to a number. In Python, 0.0 equals -0.0, 1 equals True, and NaN does not equal itself."""
    try:
        return type(value), float(value).hex() if "float" in dtype else int(value)
    except (TypeError, ValueError, OverflowError):
        # The value is not a number, and will be refused.
        return type(value)


# The values that parameters accept, by a part of the name of their type.
_TAKES = {
    "float": ("a number", (jnp.floating, jnp.integer, jnp.bool_)),
    "int": ("a whole number", (jnp.integer, jnp.bool_)),
    "bool": ("True or False", (jnp.bool_,)),
}


def _computed(name: str, dtype: str, value: Any) -> Any:
    """Converts a number that JAX computes. Only its type is known while tracing, so an integer that is too large wraps."""
    what, kinds = next(takes for part, takes in _TAKES.items() if part in dtype)
    if value.shape or not any(jnp.issubdtype(value.dtype, kind) for kind in kinds):
        raise TypeError(f"`{name}` is {dtype} and takes {what}, not {value.dtype}{list(value.shape) or ''}")
    there_is = jax.dtypes.canonicalize_dtype(dtype)
    # Without jax_enable_x64, integers of JAX are narrower than 64 bits, and fit as they are.
    return value if "int64" in dtype and there_is != dtype else value.astype(there_is)


def _gradients_of(function: Function, given: int, backward: str) -> list[str]:
    """Returns the inputs that `given` gradients belong to: all floating-point arrays, or the floating-point numbers too."""
    shapes = dict(function._shapes)
    floats = [(name, is_tensor) for name, dtype, is_tensor in function._parameters if "float" in dtype]
    arrays = [name for name, is_tensor in floats if is_tensor]
    for names in (arrays, [name for name, _ in floats]):
        if len(names) == given:
            return names
    of = ", ".join(f"{name}({', '.join(shapes[name])})" if is_tensor else f"the number {name}" for name, is_tensor in floats)
    counts = " or ".join(str(count) for count in sorted({len(arrays), len(floats)}))
    gives = "1 gradient" if given == 1 else f"{given} gradients"
    raise ValueError(f"{backward} gives {gives}, and `{function.__name__}` needs {counts}: of {of or 'nothing'}")


def _with_gradients(operator: _Operator, backward: Callable[..., Any], values: list[Any]) -> Any:
    """Calls the operator with gradients. `backward` takes all inputs and the gradients of all results."""
    # Numbers that JAX does not trace stay numbers: shapes may depend on them, and kernels on GPUs take no traced numbers.
    known: dict[str, Any] = {}
    free: dict[str, Any] = {}
    for value, (name, _, is_tensor) in zip(values, operator.parameters):
        if is_tensor:
            free[name] = _array(name, value)
        else:
            (free if _is_traced(value) else known)[name] = value

    def in_order(free: dict[str, Any]) -> list[Any]:
        return [(known | free)[name] for name in operator.names]

    def forward(free: dict[str, Any]) -> tuple[Any, Any]:
        kept = {name: own.value for name, own in free.items()}
        # The names are dict keys, because JAX would trace the values.
        asked = {name: None for name, own in free.items() if own.perturbed}
        # The gradients of this call are second derivatives.
        return differentiable(kept), (kept, asked)

    def gradients(residuals: Any, wanted: Any) -> tuple[dict[str, Any]]:
        kept, asked = residuals
        found = backward(*in_order(kept), *_result_gradients(operator.function, wanted))
        return (_input_gradients(operator.function, found, kept, asked),)

    differentiable = jax.custom_vjp(lambda free: operator.run(in_order(free)))
    differentiable.defvjp(forward, gradients, symbolic_zeros=True)
    return differentiable(free)


def _result_gradients(function: Function, given: Any) -> list[Any]:
    """Returns the gradients of all results as arrays. JAX has none for integers and for unused results: those become zeros."""
    given = given if isinstance(given, (tuple, list)) else (given,)

    def is_none(own: Any) -> bool:
        return isinstance(own, jax.custom_derivatives.SymbolicZero) or own.dtype == jax.dtypes.float0

    dtypes = [jnp.dtype(dtype) for _, dtype, _, _ in function._results]
    return [jnp.zeros(own.shape, dtype) if is_none(own) else own for own, dtype in zip(given, dtypes)]


def _input_gradients(function: Function, found: Any, inputs: dict[str, Any], asked: dict[str, None]) -> dict[str, Any]:
    """Returns the gradient of each input in `asked`, and None for the other inputs."""
    found = found if isinstance(found, (tuple, list)) else (found,)
    names = _gradients_of(function, len(found), "the backward")
    for name, dtype, _ in function._parameters:
        if name in asked and "float" in dtype and name not in names:
            raise ValueError(f"the gradient of the number `{name}` is required, and the backward gives only those of arrays")

    def like(value: Any, gradient: Any) -> Any:
        # The argument for a number may have another type than the parameter.
        return None if gradient is None else jnp.asarray(gradient, value.dtype)

    gradients = {name: own for name, own in zip(names, found) if name in asked}
    return {name: like(value, gradients.get(name)) for name, value in inputs.items()}
