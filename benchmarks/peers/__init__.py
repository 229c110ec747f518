"""The libraries that Tilewright is measured against, one module each.

A peer's module has `version()` and `OPERATORS`, which maps the operators that the library has to functions

    build(inputs, sizes, threads) -> Kernel

The modules run in the peers' environments and import their library when they are imported themselves. Whatever a library can do
before the first call (compiling, packing constant weights) belongs into `build`; `Kernel.run` is what is timed. `inputs` stay alive
as long as the kernel; an array that `build` makes itself must be held by the kernel.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Kernel:
    run: Callable[[], Any]
    output: Callable[[], Any]  # the result of the latest run, as a NumPy array
