"""What the tests of the Python package share."""

import numpy as np
import pytest

import tilewright as tw

SOURCE = """
def add(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }
def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }
def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }
def both(float(N) x) -> (up, down) {
  up(i) = x(i) + 1
  down(i) = x(i) - 1
}
def accumulate(float(N) x) -> (float(N) total) { total(i) += x(i) }
def apply(const float(M, K) W, float(K) x) -> (y) { y(i) +=! W(i, k) * x(k) }
def gather(float(N) table, int32(M) at) -> (found) { found(i) = table(at(i)) }
"""

# A function, its derivative, and that of its derivative.
CUBE = "def cube(float(N) x) -> (y) { y(i) = x(i) * x(i) * x(i) }"
SLOPE = "def slope(float(N) x, float(N) g) -> (dx) { dx(i) = 3 * x(i) * x(i) * g(i) }"
BEND = """
def bend(float(N) x, float(N) g, float(N) h) -> (dx, dg) {
  dx(i) = 6 * x(i) * g(i) * h(i)
  dg(i) = 3 * x(i) * x(i) * h(i)
}
"""


@pytest.fixture(scope="session")
def lib():
    return tw.define(SOURCE)


@pytest.fixture(autouse=True)
def own_cache(tmp_path):
    """Tests neither read nor write what the user has tuned."""
    tw.cache.use(tmp_path / "cache.sqlite")
    yield
    tw.cache.use()


def numbers(*shape, dtype=np.float32):
    return np.random.default_rng(7).standard_normal(shape).astype(dtype)


def assert_product(actual, A, B):
    """That it is A @ B but for rounding, which is relative to the terms: sums that nearly cancel have few digits right."""
    exact = np.float64(A) @ np.float64(B)
    rounding = np.shape(A)[-1] * np.finfo(np.float32).eps * (abs(np.float64(A)) @ abs(np.float64(B)))
    assert np.shape(actual) == exact.shape
    assert (abs(actual - exact) <= rounding).all()
