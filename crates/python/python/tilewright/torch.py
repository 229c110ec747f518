"""Operators of PyTorch from Tilewright's functions.

>>> import torch, tilewright as tw, tilewright.torch
>>> mm = tw.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }").mm
>>> op = tw.torch.op(mm, "mylib::mm")
>>> torch.compile(lambda A, B: op(A, B).relu())(torch.ones(2, 3), torch.ones(3, 2))

The operator is registered with `torch.library`. It computes shapes for fake tensors, so that `torch.compile` and `torch.export`
support it, and it has gradients if a backward function is given.
"""

from __future__ import annotations

import keyword
import operator
import re
from collections.abc import Callable
from typing import Any

import torch

from ._function import Function, Module, one_function, python_name, refuse_backward_arguments

__all__ = ["op"]


def op(
    function: Function | Module,
    name: str | None = None,
    backward: Function | Module | Callable[..., Any] | None = None,
) -> Any:
    """Registers a function as the operator `namespace::name`, and returns the operator.

    The operator takes the function's parameters in their order, and then the tensors that the function updates.

    `backward` is another of Tilewright's functions, or any callable. It takes the inputs, and then the gradient of each result.
    It returns the gradient of each floating-point tensor among the inputs, in order. A single gradient need not be in a tuple.
    Numbers have no gradients. Second derivatives exist if PyTorch can differentiate the backward, for example if the backward is
    an operator with its own backward.
    """
    function = one_function(function)
    name = name or f"tilewright::{python_name(function.__name__)}"
    _refuse_name(name)
    signature = _Signature(function)
    if backward is None:
        return _register(name, signature)
    if signature.mutated:
        raise ValueError("a function that updates its arguments has no gradient")
    if isinstance(backward, (Function, Module)):
        backward = one_function(backward)
        _refuse_backward(function, backward)
        # The backward becomes an operator too, so that torch.compile supports it.
        backward = _register(f"{name}_backward", _Signature(backward, first_gradient=signature.inputs))
    made = _register(name, signature)
    _register_backward(made, signature, backward)
    return made


def _register(name: str, signature: _Signature) -> Any:
    """Registers an operator without gradients."""
    # A call that waits for the GPU cannot be recorded in a CUDA graph.
    is_waited_for = signature.function._is_checked or signature.has_number_tensors
    unsafe = getattr(torch.Tag, "cudagraph_unsafe", None) if is_waited_for else None
    tags = {} if unsafe is None else {"tags": (unsafe,)}
    made = torch.library.custom_op(name, signature.run, mutates_args=signature.mutated, schema=signature.schema, **tags)
    made.register_fake(signature.fake)
    return made


def _refuse_name(name: str) -> None:
    """Checks an operator's name. Compiled Python code calls the operator by this name, so both parts must be identifiers."""
    parts = name.split("::")
    if len(parts) != 2:
        raise ValueError(f"an operator has a name such as mylib::{parts[-1]}")
    for part in parts:
        if not part.isidentifier() or keyword.iskeyword(part):
            raise ValueError(f"`{part}` cannot be part of an operator's name, because it is not a Python identifier")


def _refuse_backward(function: Function, backward: Function) -> None:
    if any(updated for _, _, _, updated in backward._results):
        raise ValueError(f"{backward.signature} updates its arguments, and cannot be a backward")
    refuse_backward_arguments(function, backward)
    gives = len(backward._results)
    if gives != len(_differentiable(function)):
        raise ValueError(f"{backward.signature} gives {_gradients_wanted(function, gives)}")


def _differentiable(function: Function) -> list[str]:
    """Returns the inputs that have a gradient, with their shapes."""
    shapes = dict(function._shapes)
    return [
        f"{name}({', '.join(shapes[name])})"
        for name, dtype, is_tensor in function._parameters
        if is_tensor and "float" in dtype
    ]


def _gradients_wanted(function: Function, given: int) -> str:
    wanted = _differentiable(function)
    of = ", ".join(wanted) or "nothing"
    gives = "1 gradient" if given == 1 else f"{given} gradients"
    return f"{gives}, and `{function.__name__}` needs {len(wanted)}: of {of}"


def _register_backward(made: Any, signature: _Signature, backward: Callable[..., Any]) -> None:
    """Registers the gradients of an operator. `backward` takes all inputs and the gradients of all results."""

    def keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        tensors = [value for value in inputs if isinstance(value, torch.Tensor)]
        ctx.save_for_backward(*tensors)
        ctx.numbers = [None if isinstance(value, torch.Tensor) else value for value in inputs]

    def gradients(ctx: Any, *wanted: torch.Tensor) -> tuple[Any, ...]:
        tensors = iter(ctx.saved_tensors)
        # Saved tensors keep their connection to autograd, for second derivatives.
        inputs = [next(tensors) if number is None else number for number in ctx.numbers]
        found = backward(*inputs, *(own.contiguous() for own in wanted))
        found = found if isinstance(found, (tuple, list)) else (found,)
        has_one = [is_tensor and "float" in dtype for _, dtype, is_tensor in signature.parameters]
        if len(found) != sum(has_one):
            raise ValueError(f"the backward gives {_gradients_wanted(signature.function, len(found))}")
        left = iter(found)
        return tuple(next(left) if one else None for one in has_one)

    made.register_autograd(gradients, setup_context=keep)


class _Signature:
    """The parameters and results of a function as a schema of PyTorch.

    From `first_gradient` on, parameters take gradients of results. These are tensors even where the parameter is a number.
    """

    def __init__(self, function: Function, first_gradient: int | None = None) -> None:
        self.function = function
        self.parameters = function._parameters
        self.inputs = len(self.parameters)
        self.results = function._results
        self.shapes = dict(function._shapes)
        self.updated = [name for name, _, _, updated in self.results if updated]
        first = self.inputs if first_gradient is None else first_gradient
        comes_as_tensor = [is_tensor or at >= first for at, (_, _, is_tensor) in enumerate(self.parameters)]
        self.has_number_tensors = sum(comes_as_tensor) > len(self.shapes)
        arguments = _arguments([name for name, _, _ in self.parameters] + self.updated)
        self.mutated = tuple(arguments[self.inputs :])
        self.schema = self._schema(arguments, comes_as_tensor)
        self._refuse_unknown_sizes()

    def _schema(self, arguments: list[str], comes_as_tensor: list[bool]) -> str:
        kinds = [_kind(dtype, tensor) for (_, dtype, _), tensor in zip(self.parameters, comes_as_tensor)]
        kinds += [f"Tensor(a{at}!)" for at in range(len(self.mutated))]
        takes = ", ".join(f"{kind} {name}" for kind, name in zip(kinds, arguments))
        fresh = ["Tensor"] * (len(self.results) - len(self.mutated))
        gives = fresh[0] if len(fresh) == 1 else f"({', '.join(fresh)})"
        return f"({takes}) -> {gives}"

    def _refuse_unknown_sizes(self) -> None:
        """Refuses sizes that follow from no argument, because an operator takes no sizes by name."""
        shapes = {name: shape for name, _, shape, _ in self.results}
        told = [extent for shape in self.shapes.values() for extent in shape]
        told += [extent for name in self.updated for extent in shapes[name]]
        told += [name for name, dtype, is_tensor in self.parameters if _is_integer(dtype) and not is_tensor]
        told += self.function._derived
        for name, shape in shapes.items():
            for extent in shape:
                if _is_name(extent) and extent not in told:
                    raise ValueError(f"the size `{extent}` of `{name}` does not follow from any argument of the operator")

    def run(self, *args: Any) -> Any:
        """Calls the function."""
        # Autograd works outside of the operator, so tensors are detached here.
        args = tuple(value.detach() if isinstance(value, torch.Tensor) else value for value in args)
        inputs, updated = args[: self.inputs], args[self.inputs :]
        if self.has_number_tensors:
            inputs = tuple(value if own[2] else _number(value) for own, value in zip(self.parameters, inputs))
        if self.shapes and not updated:
            return self.function(*inputs)
        return self.given_back(self.function(*inputs, out=self.out(inputs, updated)))

    def out(self, inputs: tuple[Any, ...], updated: tuple[Any, ...]) -> dict[str, torch.Tensor]:
        """Returns the tensors to write all results to: those that are updated, and new ones."""
        sizes, device = self.sizes(inputs, updated), _device((*inputs, *updated))
        given = dict(zip(self.updated, updated))
        return {
            name: given[name] if is_updated else _empty(dtype, shape, sizes, device)
            for name, dtype, shape, is_updated in self.results
        }

    def given_back(self, found: Any) -> Any:
        """Returns the results that are not updated."""
        found = found if isinstance(found, tuple) else (found,)
        fresh = [value for value, (_, _, _, updated) in zip(found, self.results) if not updated]
        return None if not fresh else fresh[0] if len(fresh) == 1 else tuple(fresh)

    def fake(self, *args: Any) -> Any:
        """Returns results for fake tensors: shapes without elements."""
        out = self.out(args[: self.inputs], args[self.inputs :])
        return self.given_back(tuple(out.values()))

    def sizes(self, inputs: tuple[Any, ...], updated: tuple[Any, ...]) -> dict[str, Any]:
        """Returns the sizes that shapes and numbers determine. Sizes of fake tensors may be symbols."""
        sizes: dict[str, Any] = {}
        # The language requires that every size is somewhere an extent by itself.
        told: list[tuple[str, Any]] = []
        for (name, dtype, is_tensor), value in zip(self.parameters, inputs):
            if is_tensor:
                told += zip(self.shapes[name], value.shape)
            elif _is_integer(dtype):
                sizes[name] = value
        shapes = {name: shape for name, _, shape, _ in self.results}
        for name, value in zip(self.updated, updated):
            told += zip(shapes[name], value.shape)
        for text, extent in told:
            if _is_name(text):
                sizes.setdefault(text, extent)
        if self.function._derived:
            sizes |= self.derived_sizes(inputs, sizes)
        return sizes

    def derived_sizes(self, inputs: tuple[Any, ...], sizes: dict[str, Any]) -> dict[str, int]:
        """Returns the sizes that numbers determine. They are not known where another size is a symbol."""
        known = {name: size for name, size in sizes.items() if type(size) is int and name not in self.function._derived}
        numbers = zip(self.parameters, inputs)
        scalars = {name: float(_number(value)) for (name, _, is_tensor), value in numbers if not is_tensor}
        found = self.function._derived_sizes(known, scalars)
        if found is None:
            raise ValueError(f"the numbers determine no sizes {', '.join(self.function._derived)}")
        return found


def _arguments(names: list[str]) -> list[str]:
    """Converts names of a program, such as `in` or `2x`, to distinct Python names for arguments."""
    made: list[str] = []
    for name in names:
        own = python_name(name)
        while own == "self" or own != name and own in (*names, *made):
            own += "_"
        made.append(own)
    return made


def _kind(dtype: str, is_tensor: bool) -> str:
    if is_tensor:
        return "Tensor"
    if dtype == "bool":
        return "bool"
    return "SymInt" if _is_integer(dtype) else "float"


def _is_integer(dtype: str) -> bool:
    return "int" in dtype


def _number(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value


def _device(args: tuple[Any, ...]) -> torch.device:
    """Returns the device of the first tensor, or the CPU if there are no tensors."""
    return next((value.device for value in args if isinstance(value, torch.Tensor)), torch.device("cpu"))


def _empty(dtype: str, shape: list[str], sizes: dict[str, Any], device: torch.device) -> torch.Tensor:
    extents = [_Extent(extent, sizes).value() for extent in shape]
    return torch.empty(extents, dtype=getattr(torch, dtype), device=device)


def _is_name(extent: str) -> bool:
    """Checks whether an extent is a size by itself. Names may begin with digits."""
    return re.fullmatch(r"\w+", extent) is not None and not extent.isdecimal()


# Infix operators by precedence, lowest first.
_INFIX: list[dict[str, Callable[[Any, Any], Any]]] = [
    {"+": operator.add, "-": operator.sub},
    {"*": operator.mul, "/": operator.floordiv, "%": operator.mod},
]
_FUNCTIONS = {"min": torch.sym_min, "max": torch.sym_max}


class _Extent:
    """Evaluates an extent as the compiler writes it, such as `(H + 2*pad - KH)/stride + 1`, at given sizes."""

    def __init__(self, text: str, sizes: dict[str, Any]) -> None:
        self.sizes = sizes
        # The list is reversed: its last word is read next. The empty word marks the end.
        self.words = ["", *reversed(re.findall(r"\w+|\S", text))]

    def value(self, level: int = 0) -> Any:
        if level == len(_INFIX):
            return self._operand()
        value = self.value(level + 1)
        while self.words[-1] in _INFIX[level]:
            apply = _INFIX[level][self.words.pop()]
            value = apply(value, self.value(level + 1))
        return value

    def _operand(self) -> Any:
        word = self.words.pop()
        if word == "-":
            return -self._operand()
        if word == "(":
            return self._arguments()[0]
        if word.isdecimal():
            return int(word)
        # A size may have the name `min`, so a parenthesis must follow a function.
        if word in _FUNCTIONS and self.words[-1] == "(":
            self.words.pop()
            return _FUNCTIONS[word](*self._arguments())
        return self.sizes[word]

    def _arguments(self) -> list[Any]:
        """Parses the values up to the closing parenthesis. The opening one has been read."""
        values = [self.value()]
        while self.words.pop() == ",":
            values.append(self.value())
        return values
