"""What a call from Python costs, beside what others take for the same small work.

    make bench-python

All take turns, in rounds; the median of the rounds is printed, with the quartiles.
"""

import argparse
import importlib
import statistics
import timeit

import numpy as np

import tilewright as tw


def rounds(calls, number, repeat):
    """Nanoseconds of each call, a list for each, taken in turn."""
    found = {name: [] for name in calls}
    for _ in range(repeat):
        for name, call in calls.items():
            found[name].append(timeit.timeit(call, number=number) / number * 1e9)
    return found


def table(title, calls, number, repeat):
    found = rounds(calls, number, repeat)
    first = statistics.median(next(iter(found.values())))
    print(title)
    for name, times in found.items():
        low, middle, high = statistics.quantiles(times, n=4)
        print(f"  {name:32} {middle:7.0f} ns ({low:.0f} to {high:.0f})  {middle / first:5.2f}")


def numpy_calls(add, elements):
    x, y = np.ones(elements, np.float32), np.ones(elements, np.float32)
    out = np.empty_like(x)
    kernel = add.compile(x, y)
    return {
        "numpy.add": lambda: np.add(x, y),
        "kernel": lambda: kernel(x, y),
        "function": lambda: add(x, y),
        "numpy.add, out": lambda: np.add(x, y, out=out),
        "kernel, out": lambda: kernel(x, y, out=out),
    }


def torch_calls(torch, add, elements, device):
    """On a GPU, what it takes to queue a call: that is longer than such a kernel runs."""
    x, y, out = (torch.ones(elements, device=device) for _ in range(3))
    kernel = add.compile(x, y)
    return {
        "torch.add": lambda: torch.add(x, y),
        "kernel": lambda: kernel(x, y),
        "function": lambda: add(x, y),
        "torch.add, out": lambda: torch.add(x, y, out=out),
        "kernel, out": lambda: kernel(x, y, out=out),
    }


def jax_calls(jax, add, elements):
    import tilewright.jax

    x, y = jax.numpy.ones(elements), jax.numpy.ones(elements)
    kernel, op = add.compile(x, y), jax.jit(tilewright.jax.op(add))
    return {"jax.numpy.add": lambda: jax.numpy.add(x, y), "operator, jitted": lambda: op(x, y), "kernel": lambda: kernel(x, y)}


def library(name):
    """A library, or none where it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"{name} is not installed")
        return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--elements", type=int, default=16, help="elements of each array")
    parser.add_argument("--repeat", type=int, default=25, help="rounds")
    options = parser.parse_args()
    add = tw.define("def add(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }").add
    table(f"NumPy, {options.elements} elements", numpy_calls(add, options.elements), 20_000, options.repeat)
    if torch := library("torch"):
        for device in ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]:
            calls = torch_calls(torch, add, options.elements, device)
            table(f"PyTorch on {device}, {options.elements} elements", calls, 5_000, options.repeat)
    if jax := library("jax"):
        calls = jax_calls(jax, add, options.elements)
        table(f"JAX on {jax.default_backend()}, {options.elements} elements", calls, 1_000, options.repeat)


if __name__ == "__main__":
    main()
