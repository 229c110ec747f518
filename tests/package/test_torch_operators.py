"""Operators of PyTorch, beyond what test_libraries.py has: gradients of gradients, odd names, and what is refused."""

import pytest
from conftest import BEND, CUBE, SLOPE

import tilewright as tw

torch = pytest.importorskip("torch")
import tilewright.torch  # noqa: E402


@pytest.fixture
def op(request):
    """Makes operators of texts, with names of their own."""
    made = []

    def make(text, backward=None):
        made.append(f"tilewright_tests::{request.node.originalname}_{len(made)}")
        backward = tw.define(backward) if isinstance(backward, str) else backward
        return tilewright.torch.op(tw.define(text), made[-1], backward=backward)

    return make


def compiled(function):
    # Without a code generator of its own, for that needs a C++ compiler.
    return torch.compile(function, backend="aot_eager", dynamic=True)


def assert_checked(op, *args):
    assert set(torch.library.opcheck(op, args).values()) == {"SUCCESS"}


def gradient(function, *values):
    """The gradient of the sum of what it gives."""
    x = torch.tensor(values, requires_grad=True)
    function(x).sum().backward()
    return x.grad.tolist()


def second_derivative(op):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    (first,) = torch.autograd.grad(op(x).pow(2).sum(), x, create_graph=True)
    assert first.tolist() == [6, 192, 1458]
    (second,) = torch.autograd.grad(first.sum(), x)
    return second.tolist()


def test_second_derivatives_are_those_of_the_backward(op):
    by_hand = op(CUBE, lambda x, g: 3 * x * x * g)
    by_program = op(CUBE, op(SLOPE, BEND))
    for own in [by_hand, by_program]:
        assert second_derivative(own) == [30, 480, 2430]
        assert_checked(own, torch.ones(3, requires_grad=True))
        assert gradient(compiled(own), 1.0, 2.0) == [3, 12]


def test_a_backward_without_gradients_has_no_second_derivatives(op):
    with pytest.raises(RuntimeError, match="no autograd formula was registered"):
        second_derivative(op(CUBE, SLOPE))
    slope = tw.define(SLOPE)
    own = op(CUBE, lambda x, g: slope(x, g))
    assert gradient(own, 1.0, 2.0) == [3, 12]
    with pytest.raises(ValueError, match="`x`: it requires a gradient"):
        second_derivative(own)


def test_any_name_of_a_size_will_do(op):
    text = """
    def f(float(2N) x, float(min) z, int n) -> (y) {
      y(i, j, k) = x(i) + z(j) where i in 0:min(2N, min), j in 0:max(min - 5, 1), k in 0:(2N - n) % 3 + 2N / 2
    }
    """
    own, args = op(text), (torch.ones(4), torch.ones(7), 3)
    shape = (4, 2, 3)
    assert own(*args).shape == own(*(value.to("meta") for value in args[:2]), 3).shape == shape
    assert compiled(own)(*args).shape == shape
    assert_checked(own, *args)


def test_extents_are_read_as_they_are_written():
    sizes = {"N": 7, "2N": 5, "min": 3, "n": -4}
    for text, value in {
        "12": 12,
        "N - 2N - min": -1,
        "(-n) % 3 + 1": 2,
        "-2*n/3": 2,
        "(N - 2N)/2*min": 3,
        "n/3": -2,
        "max(1, min(N, 2*min) - 2*(N/2))": 1,
        "(min)": 3,
    }.items():
        assert tilewright.torch._Extent(text, sizes).value() == value, text


def test_any_name_of_an_argument_will_do(op):
    own = op("def f(float(N) in, float(N) 2x, float(N) _2x, float(N) self, int is) -> (y) { y(i) = in(i) + 2*2x(i) + 4*_2x(i) + 8*self(i) + 16*is }")
    x = torch.ones(2)
    assert own(x, x, x, x, 1).tolist() == own(in_=x, _2x_=x, _2x=x, self_=x, is_=1).tolist() == [31, 31]
    assert compiled(own)(x, x, x, x, 1).tolist() == [31, 31]
    update = op("def f(float(N) x) -> (float(N) in) { in(i) += x(i) }")
    total = torch.ones(2)
    update(x, in_=total)
    assert total.tolist() == [2, 2]


def test_a_function_without_tensors_gives_one_in_memory(op):
    iota = op("def iota(int n) -> (y) { y(i) = 2.0f * i where i in 0:n }")
    for own in [iota, compiled(iota)]:
        found = own(5)
        assert isinstance(found, torch.Tensor) and found.device.type == "cpu" and found.tolist() == [0, 2, 4, 6, 8]
    assert_checked(iota, 5)
    half = op("def f() -> (bfloat16(2) y, int64(2) z) { y(i) = i; z(i) = i }")
    assert [part.dtype for part in half()] == [torch.bfloat16, torch.int64]
    with pytest.raises(ValueError, match="the size `N` of `y` does not follow from any argument"):
        op("def f() -> (float(N) y) { y(i) = i }")


def test_a_backward_gives_as_many_gradients_as_there_are(op):
    product = "def product(float(M, K) A, float(K, N) B, int(N) at, float s) -> (C) { C(i, j) +=! A(i, k) * B(k, j) * s }"
    takes = "float(M, K) A, float(K, N) B, int(N) at, float s"
    with pytest.raises(ValueError, match=r"gives 1 gradient, and `product` needs 2: of A\(M, K\), B\(K, N\)"):
        op(product, f"def f({takes}, float(M, N) G) -> (dA) {{ dA(i, k) +=! G(i, j) * B(k, j) }}")
    with pytest.raises(ValueError, match="must take 5 arguments to be a backward"):
        op(product, f"def f({takes}) -> (dA) {{ dA(i, k) = A(i, k) }}")
    with pytest.raises(ValueError, match="updates its arguments"):
        op(CUBE, "def f(float(N) x, float(N) g) -> (float(N) dx) { dx(i) += x(i) * g(i) }")
    A, at = torch.ones(2, 2, requires_grad=True), torch.zeros(2, dtype=torch.int32)
    for given in [1, 3]:
        few = op(product, lambda A, B, at, s, G: (G @ B.T,) * given)
        with pytest.raises(ValueError, match=f"the backward gives {given} gradient.*needs 2"):
            few(A, A, at, 1.0).sum().backward()
    op(product, lambda A, B, at, s, G: [G @ B.T * s, None])(A, A.detach(), at, 2.0).sum().backward()
    assert A.grad.tolist() == [[4, 4], [4, 4]]


def test_gradients_of_integers_and_of_single_elements_come_in(op):
    both = op(
        "def both(float(N) x) -> (y, int32(N) n) { y(i) = 2 * x(i); n(i) = int32(x(i)) }",
        "def f(float(N) x, float(N) g, int32(N) h) -> (dx) { dx(i) = 2 * g(i) + h(i) }",
    )
    total = op(
        "def total(float(N) x) -> (y) { y +=! x(i) }",
        "def f(float(N) x, float g) -> (dx) { dx(i) = g where i in 0:N }",
    )
    for wrap in [lambda own: own, compiled]:
        assert gradient(wrap(lambda x: both(x)[0]), 1.0, 2.0) == [2, 2]
        assert gradient(wrap(lambda x: 3 * total(x)), 1.0, 2.0) == [3, 3]
    assert_checked(total, torch.ones(3, requires_grad=True))
