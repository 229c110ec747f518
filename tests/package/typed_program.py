"""What type checkers know of the package. scripts/test_package.sh runs mypy on this file; no test runs it."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np

import tilewright as tw

x = np.ones(4, np.float32)

module = tw.define("def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }")
assert_type(module, tw.Module)
assert_type(tw.define(Path("twice.tw"), contract=False), tw.Module)
assert_type(module.twice, tw.Function)
assert_type(module["twice"], tw.Function)
assert_type([function.signature for function in module], list[str])

# A module with one function is used as the function.
assert_type(module(x), Any)
assert_type(module.compile(x, schedule="default"), tw.Kernel)
assert_type(module.tune(x, trials=1), tw.Tuned)
assert_type(module.schedule, str)
assert_type(module.source("loops"), str)

twice = module.twice
assert_type(twice(x, out=x, target="cpu"), Any)
assert_type(twice.signature, str)
assert_type(twice.tune(x, seconds=1.5).history, list[tuple[float, int, float, float]])

kernel = twice.compile(x)
assert_type(kernel, tw.Kernel)
assert_type(kernel(x), Any)
assert_type(kernel.bind(x), tw.Kernel)
assert_type(kernel.sizes, dict[str, int])
assert_type(kernel.schedule, str)


@tw.function
def thrice(x: Any) -> None:
    """def thrice(float(N) x) -> (y) { y(i) = 3 * x(i) }"""


assert_type(thrice, tw.Function)
assert_type(tw.devices(), list[tw.Device])
assert_type(tw.cache.path(), str)
