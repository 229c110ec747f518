"""What a pipeline of Halide gets: its inputs as parameters of the pipeline, not as constants, as Halide's applications do."""

import warnings
from dataclasses import dataclass, field

import halide as hl
import numpy as np

# Literals become float32 beside float32, which is what is meant.
warnings.filterwarnings("ignore", message=".*interpreted as a float32")

TARGET = hl.get_host_target()
MARGIN = 128  # pixels on each side


@dataclass
class Given:
    arrays: dict[str, np.ndarray]
    sizes: dict[str, int]
    scalars: dict[str, float]
    expert: bool  # whether to apply the expert schedule
    held: list = field(default_factory=list)  # an ImageParam does not keep its memory alive

    def image(self, name: str, borders: bool = False) -> hl.ImageParam:
        """The last axis of the array becomes the first, x.

        With `borders`, autoschedulers get pixels beyond the edges, where the algorithm has no boundary condition: they compute
        more than the result needs.
        """
        array = self.arrays[name]
        margin = MARGIN if borders and not self.expert else 0
        shape, ends = array.shape, [(0, 0)] * (array.ndim - 2) + [(margin, margin)] * 2
        array = np.pad(array, ends, mode="edge") if margin else array
        buffer = hl.Buffer(array)
        if margin:
            buffer.set_min([-margin, -margin] + [0] * (array.ndim - 2))
        param = hl.ImageParam(buffer.type(), array.ndim, name)
        param.set(buffer)
        param.set_estimates([hl.Range(0, extent) for extent in reversed(shape)])
        self.held += [array, buffer, param]
        return param

    def number(self, name: str) -> hl.Param:
        """An integer among the sizes or a scalar of the program."""
        value = self.sizes[name] if name in self.sizes else self.scalars[name]
        kind = hl.Int(32) if isinstance(value, int) else hl.Float(32)
        param = hl.Param(kind, name, value)
        param.set_estimate(value)
        self.held.append(param)
        return param


def vector(kind: hl.Type) -> int:
    """How many elements the widest vectors of this machine have."""
    return TARGET.natural_vector_size(kind)
