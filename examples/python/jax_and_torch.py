"""One operator on NumPy arrays, PyTorch tensors and JAX arrays, without copies.

The three inputs are views of one piece of memory, and the results go to the rows of one array. What is called without
`out=` gives back a tensor of the library that its inputs come from.

    python jax_and_torch.py
"""

import sys

import jax
import numpy as np
import torch

import tilewright as tw


@tw.function
def standardise(x):
    """
    def standardise(float(N) x) -> (y) {
      mean +=! x(i) / N
      spread +=! (x(i) - mean) * (x(i) - mean) / N
      y(i) = (x(i) - mean) * rsqrt(spread)
    }
    """


def library(tensor):
    return type(tensor).__module__.split(".")[0]


def main():
    # JAX would take a GPU if there is one, where NumPy cannot look.
    with jax.default_device(jax.devices("cpu")[0]):
        jax_array = jax.random.uniform(jax.random.key(0), 1_000_000, minval=1.0, maxval=3.0)
    tensor = torch.from_dlpack(jax_array)
    array = np.asarray(jax_array)
    places = {"JAX": jax_array.unsafe_buffer_pointer(), "PyTorch": tensor.data_ptr(), "NumPy": array.ctypes.data}
    print("the input:  ", *(f"{name} has it at {place:#x}" for name, place in places.items()), sep="  ")

    results = np.zeros((3, array.size), np.float32)
    standardise(array, out=results[0])
    row = standardise(tensor, out=torch.from_numpy(results)[1])
    # Arrays of JAX cannot be written to, but the result for one may go elsewhere.
    standardise(jax_array, out=results[2])
    print(f"the results:  row 1 of all is at {results[1].ctypes.data:#x}  what PyTorch has is at {row.data_ptr():#x}")

    expected = (array - array.mean()) / array.std()
    if not np.allclose(results, expected, atol=1e-3) or row.data_ptr() != results[1].ctypes.data:
        sys.exit("a result is wrong, or not where it should be")
    for given in (array, tensor, jax_array):
        print(f"without out=  the input is of {library(given)}, and the result of {library(standardise(given))}")


if __name__ == "__main__":
    main()
