"""Operators of PyTorch from Tilewright's functions.

>>> import torch, tilewright as tw, tilewright.torch
>>> mm = tw.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }").mm
>>> op = tw.torch.op(mm, "mylib::mm")
>>> torch.compile(lambda A, B: op(A, B).relu())(torch.ones(2, 3), torch.ones(3, 2))

The operator is one of `torch.library`: it has shapes for fake tensors, so that `torch.compile` and `torch.export` go through it, and
gradients where a backward is given.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable
from typing import Any

import torch

from ._function import Function, Module, one_function

__all__ = ["op"]


def op(
    function: Function | Module,
    name: str | None = None,
    backward: Function | Module | Callable[..., Any] | None = None,
) -> Any:
    """Registers a function as an operator, `namespace::name`, and gives what calls it.

    It takes the function's parameters in their order, and then the tensors that the function updates. `backward` is another of
    Tilewright's functions, or anything that can be called: it is given the inputs, and then the gradient of each result, and gives the
    gradient of each floating-point tensor among the inputs, in order; a single one need not be a tuple.
    """
    function = one_function(function)
    name = name or f"tilewright::{function.__name__}"
    _refuse_name(name)
    signature = _Signature(function)

    def run(*args: Any) -> Any:
        # What becomes of gradients is settled around the operator.
        args = tuple(value.detach() if isinstance(value, torch.Tensor) else value for value in args)
        inputs, updated = args[: signature.inputs], args[signature.inputs :]
        if not updated:
            return function(*inputs)
        return signature.given_back(function(*inputs, out=signature.out(inputs, updated)))

    # A call that is waited for cannot be recorded.
    unsafe = getattr(torch.Tag, "cudagraph_unsafe", None) if function._is_checked else None
    tags = {} if unsafe is None else {"tags": (unsafe,)}
    made = torch.library.custom_op(name, run, mutates_args=signature.mutated, schema=signature.schema, **tags)
    made.register_fake(signature.fake)
    if isinstance(backward, (Function, Module)):
        # An operator itself, so that what is compiled goes through it too.
        backward = op(backward, f"{name}_backward")
    if backward is not None:
        _register_backward(made, signature, backward)
    return made


def _refuse_name(name: str) -> None:
    """What is compiled calls the operator by its name, in Python."""
    parts = name.split("::")
    if len(parts) != 2:
        raise ValueError(f"an operator has a name such as mylib::{parts[-1]}")
    for part in parts:
        if not part.isidentifier() or keyword.iskeyword(part):
            raise ValueError(f"`{part}` cannot be part of an operator's name, since it is no name in Python")


def _register_backward(made: Any, signature: _Signature, backward: Callable[..., Any]) -> None:
    """Gradients from a function of all inputs and of the gradients of all results."""
    if signature.mutated:
        raise ValueError("a function that updates its arguments has no gradient")

    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
        ctx.save_for_backward(*tensors)
        ctx.numbers = [None if isinstance(value, torch.Tensor) else value for value in inputs]

    def gradients(ctx: Any, *wanted: torch.Tensor) -> tuple[Any, ...]:
        tensors = iter(ctx.saved_tensors)
        inputs = [next(tensors) if number is None else number for number in ctx.numbers]
        found = backward(*(value.detach() if isinstance(value, torch.Tensor) else value for value in inputs), *(own.contiguous() for own in wanted))
        found = iter(found if isinstance(found, (tuple, list)) else (found,))
        has_one = [isinstance(value, torch.Tensor) and value.is_floating_point() for value in inputs]
        return tuple(next(found) if one else None for one in has_one)

    made.register_autograd(gradients, setup_context=keep)


class _Signature:
    """What a function takes and gives, in the words of PyTorch."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.parameters = function._parameters
        self.inputs = len(self.parameters)
        self.results = function._results
        self.shapes = dict(function._shapes)
        self.mutated = tuple(name for name, _, _, updated in self.results if updated)
        self.schema = self._schema()

    def _schema(self) -> str:
        takes = [f"{_kind(dtype, is_tensor)} {name}" for name, dtype, is_tensor in self.parameters]
        takes += [f"Tensor(a{at}!) {name}" for at, name in enumerate(self.mutated)]
        fresh = ["Tensor"] * (len(self.results) - len(self.mutated))
        gives = fresh[0] if len(fresh) == 1 else f"({', '.join(fresh)})"
        return f"({', '.join(takes)}) -> {gives}"

    def out(self, inputs: tuple[Any, ...], updated: tuple[Any, ...]) -> dict[str, torch.Tensor]:
        """All results as tensors to write to: those that are updated, and new ones."""
        like = next(value for value in (*inputs, *updated) if isinstance(value, torch.Tensor))
        sizes = self.sizes(inputs, updated)
        given = dict(zip(self.mutated, updated))
        return {
            name: given[name] if is_updated else self.empty(like, dtype, shape, sizes)
            for name, dtype, shape, is_updated in self.results
        }

    def given_back(self, found: Any) -> Any:
        """The results that are not updated."""
        found = found if isinstance(found, tuple) else (found,)
        fresh = [value for value, (_, _, _, updated) in zip(found, self.results) if not updated]
        return None if not fresh else fresh[0] if len(fresh) == 1 else tuple(fresh)

    def fake(self, *args: Any) -> Any:
        """Results with shapes and without elements."""
        inputs, updated = args[: self.inputs], args[self.inputs :]
        like = next(value for value in args if isinstance(value, torch.Tensor))
        sizes = self.sizes(inputs, updated)
        fresh = [
            self.empty(like, dtype, shape, sizes) for _, dtype, shape, is_updated in self.results if not is_updated
        ]
        return None if not fresh else fresh[0] if len(fresh) == 1 else tuple(fresh)

    def empty(self, like: torch.Tensor, dtype: str, shape: list[str], sizes: dict[str, Any]) -> torch.Tensor:
        return torch.empty([_value(extent, sizes) for extent in shape], dtype=getattr(torch, dtype), device=like.device)

    def sizes(self, inputs: tuple[Any, ...], updated: tuple[Any, ...]) -> dict[str, Any]:
        """The sizes that shapes and numbers tell; those of fake tensors may be symbols."""
        sizes: dict[str, Any] = {}
        # Every size is an extent by itself somewhere, as the language asks for.
        told: list[tuple[str, Any]] = []
        for (name, dtype, is_tensor), value in zip(self.parameters, inputs):
            if is_tensor:
                told += zip(self.shapes[name], value.shape)
            elif not dtype.startswith("float"):
                sizes[name] = value
        shapes = {name: shape for name, _, shape, _ in self.results}
        for name, value in zip(self.mutated, updated):
            told += zip(shapes[name], value.shape)
        for text, extent in told:
            if text.isidentifier():
                sizes.setdefault(text, extent)
        return sizes


def _kind(dtype: str, is_tensor: bool) -> str:
    if is_tensor:
        return "Tensor"
    if dtype == "bool":
        return "bool"
    return "float" if "float" in dtype else "SymInt"


_NAME = re.compile(r"[A-Za-z_]\w*")


def _value(text: str, sizes: dict[str, Any]) -> Any:
    """An extent such as `(H + 2*pad - KH)/stride + 1`."""
    functions = {"min": torch.sym_min, "max": torch.sym_max}
    known = {f"s_{name}": value for name, value in sizes.items()} | functions
    python = _NAME.sub(lambda name: name[0] if name[0] in functions else f"s_{name[0]}", text.replace("/", "//"))
    # It is an expression that the compiler wrote.
    return eval(python, {"__builtins__": {}}, known)

