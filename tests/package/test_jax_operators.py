"""Operators of JAX, beyond what test_libraries.py has: gradients of numbers and of gradients, and what is refused."""

import numpy as np
import pytest
from conftest import BEND, CUBE, SLOPE

import tilewright as tw

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import tilewright.jax  # noqa: E402

SCALE = "def scale(float(N) x, float a) -> (y) { y(i) = a * x(i) }"
MIXED = "def mixed(float(N) x, int32 n, uint8 m, bool b, float16 h) -> (y) { y(i) = b ? x(i) * n + m : h }"


@pytest.fixture(autouse=True)
def arrays_in_memory():
    """JAX would take a GPU if there is one; test_cuda.py is about those."""
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@pytest.fixture
def x():
    return jnp.arange(1, 4, dtype=np.float32)


def op(text, backward=None):
    backward = tw.define(backward) if isinstance(backward, str) else backward
    return tilewright.jax.op(tw.define(text), backward=backward)


def lists(found):
    return [part.tolist() for part in found]


@pytest.mark.parametrize("wrap", [lambda own: own, jax.jit])
def test_second_derivatives_are_those_of_the_backward(x, wrap):
    for own in [op(CUBE, lambda x, g: 3 * x * x * g), op(CUBE, op(SLOPE, BEND))]:
        first = jax.grad(lambda x: (own(x) ** 2).sum())
        assert wrap(first)(x).tolist() == [6, 192, 1458]
        assert wrap(jax.grad(lambda x: first(x).sum()))(x).tolist() == [30, 480, 2430]
        assert wrap(jax.jacrev(first))(x).tolist() == np.diag([30, 480, 2430]).tolist()
        # That is forward mode on top.
        with pytest.raises(TypeError, match="forward-mode"):
            wrap(jax.hessian(lambda x: own(x).sum()))(x)
    first = jax.grad(lambda x: op(CUBE, SLOPE)(x).sum())
    assert wrap(jax.vmap(first))(jnp.stack([x, x])).tolist() == [[3, 12, 27]] * 2
    with pytest.raises(ValueError, match="cannot be differentiated"):
        wrap(jax.grad(lambda x: first(x).sum()))(x)


@pytest.mark.parametrize("wrap", [lambda own: own, jax.jit])
def test_numbers_have_gradients_if_the_backward_gives_them(x, wrap):
    program = "def f(float(N) x, float a, float(N) g) -> (dx, da) { dx(i) = a * g(i); da +=! x(i) * g(i) }"
    for backward in [program, lambda x, a, g: (a * g, (x * g).sum())]:
        own = op(SCALE, backward)
        both = jax.grad(lambda x, a: own(x, a).sum(), argnums=(0, 1))
        for a in [2.0, jnp.float16(2)]:
            assert lists(wrap(both)(x, a)) == [[2, 2, 2], 6]
        assert wrap(jax.grad(lambda x: own(x, 2.0).sum()))(x).tolist() == [2, 2, 2]
        assert wrap(jax.grad(lambda x, a: own(x, a).sum()))(x, 2).tolist() == [2, 2, 2]
        assert wrap(jax.vmap(lambda a: both(x, a)[1]))(x).tolist() == [6, 6, 6]


@pytest.mark.parametrize("wrap", [lambda own: own, jax.jit])
def test_the_gradient_of_a_number_is_not_lost(x, wrap):
    own = op(SCALE, lambda x, a, g: a * g)
    assert wrap(jax.grad(lambda x, a: own(x, a).sum()))(x, 2.0).tolist() == [2, 2, 2]
    with pytest.raises(ValueError, match="the gradient of the number `a` is required"):
        wrap(jax.grad(lambda a: own(x, a).sum()))(2.0)


def test_numbers_are_told_apart_exactly():
    own = op(SCALE)
    over = [jax.jit(lambda x: 1 / own(x, a))(jnp.ones(1)).item() for a in (0.0, -0.0, 0.0)]
    assert over == [np.inf, -np.inf, np.inf] and len(own.operations) == 2
    for a in [np.nan, float("nan"), np.float32("nan")]:
        assert np.isnan(jax.jit(lambda x: own(x, a))(jnp.ones(1)).item())
    assert len(own.operations) == 3
    flag = op("def f(float(N) x, bool b) -> (y) { y(i) = b ? x(i) : 0 }")
    assert [jax.jit(lambda x: flag(x, b))(jnp.ones(1)).item() for b in (True, False)] == [1, 0]
    with pytest.raises(TypeError, match="`b` is bool and takes True or False, not int"):
        jax.jit(lambda x: flag(x, 1))(jnp.ones(1))


@pytest.mark.parametrize("backward", [None, lambda x, n, m, b, h, g: jnp.where(b, g * n, 0)])
@pytest.mark.parametrize("wrap", [lambda own: own, jax.jit])
def test_numbers_are_of_the_kind_that_the_program_says(x, wrap, backward):
    own = wrap(op(MIXED, backward))
    for two in [2, np.int64(2), np.array(2), jnp.int32(2)]:
        assert own(x, two, 1, True, 0.5).tolist() == [3, 5, 7]
        assert own(x, 1, 1, False, two).tolist() == [2, 2, 2]
    assert own(x, True, 1, np.True_, 3).tolist() == own(x, 1, 1, jnp.bool_(True), 0.5).tolist() == [2, 3, 4]
    for args, said in [
        ((2.9, 1, True, 0.5), "`n` is int32 and takes a whole number"),
        ((2, jnp.float32(1), True, 0.5), "`m` is uint8 and takes a whole number"),
        ((2, 1, 1, 0.5), "`b` is bool and takes True or False"),
        ((2, 1, 0.0, 0.5), "`b` is bool and takes True or False"),
        ((2, 1, True, 0.5j), "`h` is float16 and takes a number"),
        ((2, 1, True, x), "`h` is float16 and takes a number"),
    ]:
        with pytest.raises(TypeError, match=said):
            own(x, *args)


def test_integers_that_jax_computes_wrap(x):
    own = op(MIXED)
    with pytest.raises(OverflowError, match="`m`: -1 is not between 0 and 255"):
        own(x, 0, -1, True, 0.0)
    with pytest.raises(OverflowError, match="`m`: -1 is not between 0 and 255"):
        jax.jit(lambda x: own(x, 0, -1, True, 0.0))(x)
    assert jax.jit(own)(x, 0, -1, True, 0.0).tolist() == [255, 255, 255]
    # All of a wide one is there, also where JAX has 32 bits only.
    wide = op("def f(double(N) x, int64 n) -> (int64(N) y) { y(i) = n * 2 where i in 0:N }")
    with jax.enable_x64(True):
        assert jax.jit(wide)(jnp.ones(1), 3000000000).tolist() == [6000000000]
    wide = op("def f(float(N) x, int64 n) -> (int64(N) y) { y(i) = n * 2 where i in 0:N }")
    assert jax.jit(wide)(x[:1], jnp.uint32(3000000000)).tolist() == [6000000000]


@pytest.mark.parametrize("wrap", [lambda own: own, jax.jit])
def test_results_that_nothing_depends_on_have_zeros_for_gradients(x, wrap):
    both = op(
        "def both(float(N) x) -> (y, int32(N) n, z) { y(i) = 2 * x(i); n(i) = int32(x(i)); z(i) = 3 * x(i) }",
        "def f(float(N) x, float(N) g, int32(N) h, float(N) k) -> (dx) { dx(i) = 2 * g(i) + h(i) + 3 * k(i) }",
    )
    assert wrap(jax.grad(lambda x: both(x)[0].sum()))(x).tolist() == [2, 2, 2]
    assert wrap(jax.grad(lambda x: both(x)[2].sum()))(x).tolist() == [3, 3, 3]
    assert wrap(jax.grad(lambda x: (both(x)[1] * x).sum()))(x).tolist() == [1, 2, 3]
    total = op("def total(float(N) x) -> (y) { y +=! x(i) }", "def f(float(N) x, float g) -> (dx) { dx(i) = g where i in 0:N }")
    assert wrap(jax.grad(lambda x: 3 * total(x)))(x).tolist() == [3, 3, 3]


def test_a_backward_gives_as_many_gradients_as_there_are(x):
    product = "def product(float(M, K) A, float(K, N) B, int(N) at, float s) -> (C) { C(i, j) +=! A(i, k) * B(k, j) * s }"
    takes = "float(M, K) A, float(K, N) B, int(N) at, float s"
    with pytest.raises(ValueError, match=r"gives 1 gradient, and `product` needs 2 or 3: of A\(M, K\), B\(K, N\), the number s"):
        op(product, f"def f({takes}, float(M, N) G) -> (dA) {{ dA(i, k) +=! G(i, j) * B(k, j) }}")
    with pytest.raises(ValueError, match="must take 5 arguments to be a backward"):
        op(product, f"def f({takes}) -> (dA) {{ dA(i, k) = A(i, k) }}")
    for given in [0, 2]:
        with pytest.raises(ValueError, match=f"the backward gives {given} gradients, and `cube` needs 1: of x"):
            jax.grad(lambda x: op(CUBE, lambda x, g: (g,) * given)(x).sum())(x)


@pytest.mark.parametrize("backward", [None, lambda x, a, g: a * g])
@pytest.mark.parametrize("wrap", [lambda own: own, jax.jit])
def test_arguments_may_be_given_by_name(x, wrap, backward):
    own = wrap(op(SCALE, backward))
    assert own(a=2.0, x=x).tolist() == own(x, a=2.0).tolist() == [2, 4, 6]
    for args, named, said in [
        ((x,), {"b": 2.0}, r"scale\(\) has no parameter `b`. It has: x, a"),
        ((x,), {"x": x}, r"scale\(\) got two values for `x`"),
        ((x,), {}, "takes 2 arguments, and was given 1"),
        ((x, 2.0, 3.0), {}, "takes 2 arguments, and was given 3"),
    ]:
        with pytest.raises(TypeError, match=said):
            own(*args, **named)
    head = op("def head(float(N) x, uint32 n) -> (y) { y(i) = x(i) where i in 0:min(n, N) }")
    assert jax.jit(head, static_argnames="n")(x, n=2).tolist() == [1, 2]
    odd = op("def f(float(2N) 2x, float(2N) self) -> (y) { y(i) = 2x(i) + self(i) }")
    assert wrap(odd)(self=x, **{"2x": x}).tolist() == [2, 4, 6]


def test_shapes_may_depend_on_numbers_of_what_has_gradients(x):
    head = "def head(float(N) x, uint32 n) -> (y) { y(i) = x(i) where i in 0:min(n, N) }"
    own = op(head, lambda x, n, g: jnp.zeros_like(x).at[:n].set(g))
    assert jax.jit(jax.grad(lambda x: own(x, 2).sum()))(x).tolist() == [1, 1, 0]
    with pytest.raises(TypeError, match="shapes or subscripts depend on `n`.*static_argnums"):
        jax.jit(own)(x, 2)


@pytest.mark.parametrize("backward", [None, lambda x, y, g: (g, g)])
def test_what_is_no_array_is_refused_while_jax_traces(x, backward):
    add = op("def add(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }", backward)
    assert jax.jit(lambda x: add(x, np.ones(3, np.float32)))(x).tolist() == [2, 3, 4]
    for other in [[1.0, 2.0, 3.0], 1.0]:
        with pytest.raises(TypeError, match=f"`y` takes an array, not {type(other).__name__}"):
            jax.jit(lambda x: add(x, other))(x)
