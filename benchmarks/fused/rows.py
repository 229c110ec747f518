"""One program on a device: its inputs, its results in float64, and how far a result is from those. Needs PyTorch."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from fused import data
from fused.program import Program

GROWTH = 10  # times the error of eager PyTorch in float32: other orders of the same operations


class Row:
    def __init__(self, program: Program, device: torch.device):
        self._program = program
        self._arrays = data.drawn(program)
        self._device = device
        self.tensors = [self._argument(name) for name in program.parameters()]
        self._expected = self._results(program.function, torch.float64)
        in_single = self._results(program.function, torch.float32)
        self._tolerances = [self._tolerance(*pair) for pair in zip(in_single, self._expected, strict=True)]

    def write(self, folder: Path) -> dict[str, str]:
        """The inputs as files, by name."""
        folder.mkdir(parents=True, exist_ok=True)
        files = {name: str(folder / f"{name}.npy") for name in self._arrays}
        for name, path in files.items():
            np.save(path, self._arrays[name])
        return files

    def error_of(self, function: Callable) -> float:
        """The error of what a function computes from these inputs; it gets copies, for it may overwrite them."""
        return self._error(self._results(function, torch.float32))

    def error_in(self, folder: Path) -> float:
        """The error of results in files, by their names in the program."""
        return self._error([np.load(folder / f"{name}.npy") for name in self._program.results()])

    def _argument(self, name: str):
        if name in self._program.scalars:
            return self._program.scalars[name]
        return torch.from_numpy(self._arrays[name]).to(self._device)

    def _results(self, function: Callable, floats: torch.dtype) -> list[np.ndarray]:
        found = function(*(copied(argument, floats) for argument in self.tensors))
        return [result.cpu().numpy() for result in ([found] if isinstance(found, torch.Tensor) else found)]

    def _tolerance(self, in_single: np.ndarray, expected: np.ndarray) -> float:
        """What rounding explains: eager PyTorch in float32 shows how errors grow in this program."""
        if data.whole(expected):
            return 0.0
        if self._program.rounded:
            return self._program.tolerance
        return max(self._program.tolerance, GROWTH * float(data.apart(in_single, expected).max()))

    def _error(self, found: Sequence[np.ndarray]) -> float:
        """The largest of all results."""
        triples = zip(found, self._expected, self._tolerances, strict=True)
        return max(data.error(*triple, self._program.rounded) for triple in triples)


def copied(argument, floats: torch.dtype):
    """A tensor of its own, its floats in the type given; scalars as they are."""
    if not isinstance(argument, torch.Tensor):
        return argument
    return argument.to(floats, copy=True) if argument.is_floating_point() else argument.clone()
