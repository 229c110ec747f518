"""The classes `Function`, `Module` and `Tuned`, and `define`: the part that is written in Python."""

from __future__ import annotations

import inspect
import keyword
import numbers
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _html, _native
from ._progress import Progress
from ._worker import worker_command


class Function(_native.Function):
    """A function. A call with tensors of new shapes compiles a kernel for them.

    The function keeps the 256 kernels that were used last. `compile` returns a kernel that you keep yourself.

    Call it with tensors and numbers, in the order of its parameters or by name. It returns tensors of the same library
    as its arguments. `out=` takes tensors to write the results to. `target=` takes "cpu", "cuda:0" or "opencl:0"; the
    default is the device of the tensors. Give a size by name if no tensor determines it.
    """

    def tune(
        self,
        *args: Any,
        seconds: float | None = None,
        trials: int | None = None,
        strategy: str | None = None,
        seed: int = 0,
        out: Any = None,
        target: str | None = None,
        progress: bool | None = None,
        **kwargs: Any,
    ) -> Tuned:
        """Searches for a faster kernel for tensors like these, and uses it from then on.

        The search takes 30 seconds, unless `seconds` or `trials` is given. Its results are kept in the cache
        (`tilewright.cache`), where later programs find them. Ctrl-C ends the search with the best kernel so far.
        `progress=False` shows no progress bar.
        """
        if seconds is None and trials is None:
            seconds = 30.0
        for name, value in (("seconds", seconds), ("trials", trials), ("seed", seed)):
            if value is not None and not isinstance(value, numbers.Real):
                raise TypeError(f"{name} must be a number, not {type(value).__name__}")
            if value is not None and not value >= 0:
                raise ValueError(f"{name} must be a number that is not negative, and is {value}")
        with Progress(self.__name__, seconds, trials, progress) as bar:
            found = _native.search(
                self, args, kwargs, out, target, seconds, trials, strategy, seed, *worker_command(), bar.report
            )
        return Tuned(self.__name__, **found)

    def _repr_html_(self) -> str:
        return _html.of_function(self)

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters, for `inspect` and for editors."""
        named = [python_name(name) for name, _, _ in self._parameters]
        own = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in named]
        more = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None) for name in ("out", "target")]
        return inspect.Signature(own + [option for option in more if option.name not in named])

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the source text. Another process compiles it again."""
        return _read_back, (self.text, self.__name__, self._contract)


def python_name(name: str) -> str:
    """Converts a name of a program, such as `in` or `2x`, to a valid Python name."""
    name = f"_{name}" if name[0].isdigit() else name
    return f"{name}_" if keyword.iskeyword(name) else name


def _read_back(text: str, name: str, contract: bool) -> Function:
    return Function(_native.Text(text, contract), name)


class Tuned:
    """The outcome of a search.

    `seconds` and `default_seconds` are the times of a call with the best and with the default schedule. The final comparison
    measures them in turn. `history` has a tuple for each candidate that ran: seconds since the start, number of trials, its
    time, and the best time so far. The times of `history` were measured one after the other, and may differ from those of the
    final comparison.
    """

    def __init__(
        self,
        name: str,
        seconds: float,
        default_seconds: float,
        schedule: str,
        trials: int,
        elapsed: float,
        history: list[tuple[float, int, float, float]],
        kept: str,
    ) -> None:
        self.name = name
        self.seconds = seconds
        self.default_seconds = default_seconds
        self.schedule = schedule
        self.trials = trials
        self.elapsed = elapsed
        self.history = history
        self.kept = kept

    @property
    def speedup(self) -> float:
        """The time with the default schedule divided by the time with the best schedule."""
        return self.default_seconds / self.seconds

    def __repr__(self) -> str:
        best = f"{self.seconds * 1e6:.4g} us, {self.speedup:.2f} times as fast as by default"
        trials = "1 trial" if self.trials == 1 else f"{self.trials} trials"
        return f"<tilewright tuning of {self.name}: {best}; {trials} in {self.elapsed:.1f} s; {self.kept}>"

    def _repr_html_(self) -> str:
        return _html.of_search(self)


class Module:
    """The functions of a source text, as attributes, by name in brackets, or by iteration.

    A module with a single function can be used like that function.
    """

    def __init__(self, source: str | PathLike[str], contract: bool = True) -> None:
        if isinstance(source, PathLike):
            source = Path(source).read_text(encoding="utf-8")
        if not isinstance(source, str):
            raise TypeError(f"a program is a text, or the path of a file, not {type(source).__name__}")
        _refuse_path(source)
        self._text = source
        self._contract = contract
        text = _native.Text(source, contract)
        self._functions: dict[str, Function] = {name: Function(text, name) for name in text.names}

    def __getitem__(self, name: str) -> Function:
        return self._functions[name]

    def __iter__(self) -> Iterator[Function]:
        return iter(self._functions.values())

    def __len__(self) -> int:
        return len(self._functions)

    def __reduce__(self) -> tuple[Any, ...]:
        return Module, (self._text, self._contract)

    def __dir__(self) -> list[str]:
        only = [name for own in self._functions.values() for name in dir(own)] if len(self._functions) == 1 else []
        return sorted({*super().__dir__(), *self._functions, *only})

    @property
    def __signature__(self) -> inspect.Signature:
        """The parameters of the only function."""
        if len(self._functions) != 1:
            raise AttributeError("__signature__")
        return self._only().__signature__

    if TYPE_CHECKING:
        # For type checkers, an attribute is a function, and a module also has the members of its only function. At run time
        # `__getattr__` finds both, so a function may have any of these names.
        def __getattr__(self, name: str) -> Function: ...
        def compile(
            self, *args: Any, out: Any = None, target: str | None = None, schedule: str | None = None, **kwargs: Any
        ) -> _native.Kernel: ...
        def tune(
            self,
            *args: Any,
            seconds: float | None = None,
            trials: int | None = None,
            strategy: str | None = None,
            seed: int = 0,
            out: Any = None,
            target: str | None = None,
            progress: bool | None = None,
            **kwargs: Any,
        ) -> Tuned: ...
        def source(self, stage: str = "loops") -> str: ...
        def forget(self) -> None: ...

        signature: str
        text: str
        ranges: str
        schedule: str
    else:

        def __getattr__(self, name):
            return self._member(name)

    def _member(self, name: str) -> Any:
        functions = self.__dict__.get("_functions", {})
        if name in functions:
            return functions[name]
        if len(functions) == 1 and not name.startswith("__"):
            return getattr(next(iter(functions.values())), name)
        raise AttributeError(f"there is no function `{name}`; the source has: {', '.join(functions)}")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._only()(*args, **kwargs)

    def _only(self) -> Function:
        if len(self._functions) == 1:
            return next(iter(self._functions.values()))
        raise TypeError(f"the source has several functions, so name the one to call: {', '.join(self._functions)}")

    def __repr__(self) -> str:
        return "\n".join(map(repr, self))

    def _repr_html_(self) -> str:
        return "".join(function._repr_html_() for function in self)


def _refuse_path(source: str) -> None:
    """Refuses the path of a program where its text is expected. No program fits on a line without a brace."""
    if source.endswith(".tw") and not any(mark in source for mark in "{\n"):
        raise _native.ProgramError(
            f"{source!r} is the path of a program, and not its text: write tilewright.define(pathlib.Path({source!r}))"
        )


def one_function(function: Any) -> Function:
    """Returns a function, or the only function of a module."""
    if isinstance(function, Module):
        return function._only()
    if isinstance(function, Function):
        return function
    raise TypeError(f"a function of tilewright.define is needed, not {type(function).__name__}")


def refuse_backward_arguments(function: Function, backward: Function) -> None:
    """Checks that a backward function takes the arguments of the function, and then the gradient of each result."""
    takes = len(function._parameters) + len(function._results)
    if len(backward._parameters) != takes:
        raise ValueError(
            f"{backward.signature} must take {takes} arguments to be a backward: those of {function.signature}, and the gradient of each result"
        )


def define(source: str | PathLike[str], *, contract: bool = True) -> Module:
    """Returns the functions of a program text, or of the file that a `pathlib.Path` names.

    A `ProgramError` shows all mistakes at once, each at its place in the text. With `contract=False` every float operation is
    rounded separately: no product is fused with the sum that uses it.

    >>> add, scale = tw.define('''
    ...     def add(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }
    ...     def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }
    ... ''')
    """
    return Module(source, contract)


def function(body: Callable[..., Any]) -> Function:
    """Makes a function from the program text in the docstring of a Python function.

    >>> @tw.function
    ... def softplus(x):
    ...     \"\"\"def softplus(float(N) x) -> (y) { y(i) = log(1 + exp(x(i))) }\"\"\"
    """
    if not inspect.isfunction(body):
        raise TypeError(f"@tilewright.function is for a function with a program in it, not for {type(body).__name__}")
    text = inspect.getdoc(body)
    name = getattr(body, "__name__", "")
    if not text:
        raise TypeError(f"`{name}` has no program text: write it as the documentation string of the function")
    module = Module(text)
    made = module._functions.get(name) or module._only()
    _refuse_other_parameters(body, made)
    return made


def _refuse_other_parameters(body: Callable[..., Any], made: Function) -> None:
    """Checks that the parameters of the Python function, if it has any, are those of the program."""
    said = list(inspect.signature(body).parameters.values())
    if not said or any(own.kind in (own.VAR_POSITIONAL, own.VAR_KEYWORD) for own in said):
        return
    names = [name for name, _, _ in made._parameters]
    if [own.name for own in said] != [python_name(name) for name in names]:
        takes = ", ".join(names)
        other = ", ".join(own.name for own in said)
        raise TypeError(f"`{made.__name__}` takes ({takes}) in the program, and ({other}) in Python")
