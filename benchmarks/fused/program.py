"""A program of this benchmark: a function of a .tw file, the sizes to measure it at, and the same in PyTorch.

The signature in the .tw file says which tensors there are, and which shapes they have. The parameters of the PyTorch function say
which of them are inputs; a result among them is updated in place. This module imports nothing outside of the standard library,
because the harness reads it too. Read data.py next for the inputs, and rows.py for the comparison of results.
"""

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workload import Workload

FOLDER = Path(__file__).resolve().parent
EAGER, COMPILED, GRAPHS = "eager", "compiled", "compiled_graphs"
PEERS = (EAGER, COMPILED)

Draw = Callable  # of a random generator, a shape and the sizes: the elements of an input

SIGNATURE = r"def {}\((.*?)\)\s*->\s*(.*?)\s*(?:requires[^{{]*)?{{"
TENSOR = re.compile(r"(\w+)\s*\(([^()]*)\)\s+(\w+)")


def uniform(low: float, high: float) -> Draw:
    return lambda rng, shape, sizes: rng.uniform(low, high, shape)


def below(size: str) -> Draw:
    """Indices below a size."""
    return lambda rng, shape, sizes: rng.integers(0, sizes[size], shape)


def signs() -> Draw:
    return lambda rng, shape, sizes: rng.choice([-1.0, 1.0], shape)


def integers(low: int, high: int) -> Draw:
    """Both are included."""
    return lambda rng, shape, sizes: rng.integers(low, high + 1, shape)


# What an input is filled with where its program says nothing.
DRAWS = {
    "float": uniform(-1, 1),
    "int8": integers(-127, 127),
    "uint8": integers(0, 255),
    "bool": integers(0, 1),
}


@dataclass(frozen=True)
class Tensor:
    name: str
    type: str
    shape: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Program(Workload):
    function: Callable  # in PyTorch
    draws: dict[str, Draw] = field(default_factory=dict)  # of inputs, where the usual numbers will not do
    scalars: dict[str, float] = field(default_factory=dict)
    tolerance: float = 2e-5  # of a result, relative to its largest element, where PyTorch in float32 is not further off
    rounded: bool = False  # whether a number between two steps may go to either, so that a few elements may differ

    def parameters(self) -> list[str]:
        """The inputs and scalars, in the order of the PyTorch function."""
        return list(inspect.signature(self.function).parameters)

    def signature(self) -> tuple[str, str]:
        """The text of the parameters and of the results."""
        file, _, function = self.program.partition(":")
        found = re.search(SIGNATURE.format(function), (FOLDER / Path(file).name).read_text(), re.DOTALL)
        if found is None:
            raise ValueError(f"there is no function `{function}` in {file}")
        return found[1], found[2]

    def inputs(self) -> list[Tensor]:
        """The tensors that the function takes, in-out results included."""
        declared = {tensor.name: tensor for text in self.signature() for tensor in self._tensors(text)}
        return [declared[name] for name in self.parameters() if name not in self.scalars]

    def results(self) -> list[str]:
        """The names of the results, in the order in which the PyTorch function returns them."""
        names = re.sub(r"\w+\s*\([^()]*\)\s+", "", self.signature()[1])
        return re.findall(r"\w+", names)

    def draw(self, tensor: Tensor) -> Draw:
        return self.draws.get(tensor.name) or DRAWS[tensor.type]

    def _tensors(self, text: str) -> Iterator[Tensor]:
        for type_name, extents, name in TENSOR.findall(text.removeprefix("(")):
            yield Tensor(name, type_name, tuple(self._extent(word.strip()) for word in extents.split(",")))

    def _extent(self, word: str) -> int:
        return int(word) if word.isdecimal() else self.sizes[word]


class Kind:
    """The programs of one .tw file; functions join it by the decorator `program`."""

    def __init__(self, name: str, heading: str):
        self.name = name
        self.heading = heading
        self.programs: list[Program] = []

    def program(self, *sizes: dict[str, int], **about):
        """`about` has more fields of a program."""

        def join(function: Callable) -> Callable:
            self.programs += [self._made(function, each, about) for each in sizes]
            return function

        return join

    def _made(self, function: Callable, sizes: dict[str, int], about: dict) -> Program:
        operator = function.__name__
        shape = "x".join(str(size) for size in sizes.values())
        return Program(
            name=f"{operator}_{shape}",
            family=self.name,
            operator=operator,
            title=f"{operator} {shape}",
            program=f"benchmarks/fused/{self.name}.tw:{operator}",
            sizes=sizes,
            peers=PEERS,
            function=function,
            **about,
        )
