"""Tensors of other libraries, and whatever speaks DLPack or has a buffer."""

import array
import ctypes

import numpy as np
import pytest
from conftest import assert_product, numbers

import tilewright as tw

try:
    import torch
except ImportError:
    torch = None
try:
    import jax
except ImportError:
    jax = None

PRODUCT = "def product(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }"
PRODUCT_BACKWARD = """
def product_backward(float(M, K) A, float(K, N) B, float(M, N) G) -> (dA, dB) {
  dA(i, k) +=! G(i, j) * B(k, j)
  dB(k, j) +=! A(i, k) * G(i, j)
}
"""

with_torch = pytest.mark.skipif(torch is None, reason="PyTorch is not installed")
with_jax = pytest.mark.skipif(jax is None, reason="JAX is not installed")


@pytest.fixture(autouse=True)
def arrays_in_memory():
    """JAX would take a GPU if there is one; test_cuda.py is about those."""
    if jax is None:
        yield
        return
    with jax.default_device(jax.devices("cpu")[0]):
        yield


@with_torch
def test_torch_tensors_come_in_and_go_out(lib):
    A, B = torch.randn(7, 5), torch.randn(5, 3)
    C = lib.mm(A, B)
    assert isinstance(C, torch.Tensor) and C.dtype == torch.float32 and C.device == A.device
    torch.testing.assert_close(C, A @ B)
    torch.testing.assert_close(lib.mm(A.T.contiguous().T, B[:, ::2]), A @ B[:, ::2])
    torch.testing.assert_close(lib.mm.compile(A, B)(A, B), A @ B)
    # One library is enough to say whose the result is.
    assert isinstance(lib.mm(A.numpy(), B), torch.Tensor)


@with_torch
@pytest.mark.parametrize(
    "name", "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64".split()
)
def test_torch_has_every_type(name):
    copy = tw.define(f"def copy({name}(N) x) -> (y) {{ y(i) = x(i) }}")
    x = torch.arange(2).to(getattr(torch, name))
    assert copy(x).dtype == x.dtype and torch.equal(copy(x).to(torch.int64), torch.arange(2))


@with_torch
def test_torch_results_are_written_in_place(lib):
    x, out = torch.arange(6.0), torch.zeros(6, 2)
    given = out[:, 1]
    assert lib.add(x, x, out=given) is given
    assert torch.equal(out[:, 1], 2 * x) and torch.equal(out[:, 0], torch.zeros(6))
    with pytest.raises(ValueError, match="shares memory with `x`"):
        lib.add(x, x, out=x)


@with_torch
def test_torch_refuses_what_has_no_memory_or_wants_a_gradient(lib):
    x = torch.arange(6.0, requires_grad=True)
    with pytest.raises(ValueError, match="it requires a gradient"):
        lib.add(x, x)
    with torch.no_grad():
        assert torch.equal(lib.add(x, x), 2 * x)
    for tensor in [torch.empty(6, device="meta"), torch.zeros(6).to_sparse()]:
        with pytest.raises(Exception, match="`x`"):
            lib.add(tensor, tensor)


@with_torch
def test_torch_tensors_that_are_not_their_memory_are_refused(lib):
    from torch._subclasses.fake_tensor import FakeTensorMode

    negated = torch.complex(torch.zeros(3), torch.ones(3)).conj().imag
    assert negated.is_neg()
    with pytest.raises(ValueError, match="`x`: .*resolve_neg"):
        lib.add(negated, torch.zeros(3))
    assert lib.add(negated.resolve_neg(), torch.zeros(3)).tolist() == [-1, -1, -1]
    with FakeTensorMode():
        fake = torch.ones(3)
    for hollow in [fake, torch._efficientzerotensor(3)]:
        with pytest.raises(Exception, match="`x`"):
            lib.add(hollow, torch.ones(3))
    with pytest.raises(ValueError, match="`a` is a number in the program, and has no gradient"):
        lib.scale(torch.ones(3), torch.tensor(2.0, requires_grad=True))


@with_torch
def test_tangents_are_not_lost(lib):
    from torch.autograd import forward_ad

    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(3), torch.ones(3))
        with pytest.raises(ValueError, match="`x`: it carries a tangent"):
            lib.add(dual, torch.ones(3))
        primal = forward_ad.unpack_dual(dual).primal
        assert lib.add(primal, torch.ones(3)).tolist() == [2, 2, 2]


@with_torch
def test_torch_knows_what_was_written_to(lib):
    weight, saved = torch.ones(3, requires_grad=True), torch.full((3,), 5.0)
    loss = (weight * saved).sum()
    lib.add(torch.ones(3), torch.ones(3), out=saved)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


@with_torch
def test_an_operator_has_shapes_gradients_and_is_compiled():
    import tilewright.torch

    forward, backward = tw.define(PRODUCT), tw.define(PRODUCT_BACKWARD)
    op = tilewright.torch.op(forward, "tilewright_tests::product", backward=backward)
    A, B = torch.randn(5, 3, requires_grad=True), torch.randn(3, 4, requires_grad=True)
    torch.testing.assert_close(op(A, B), A @ B)
    outcome = torch.library.opcheck(op, (A, B))
    assert set(outcome.values()) == {"SUCCESS"}
    op(A, B).square().sum().backward()
    own = [A.grad.clone(), B.grad.clone()]
    A.grad = B.grad = None
    (A @ B).square().sum().backward()
    torch.testing.assert_close(own, [A.grad, B.grad])
    # Without a code generator of its own, for that needs a C++ compiler.
    compiled = torch.compile(lambda A, B: op(A, B).relu() + 1, backend="aot_eager", dynamic=True)
    for rows in (5, 6, 9):
        A = torch.randn(rows, 3)
        torch.testing.assert_close(compiled(A, B.detach()), (A @ B.detach()).relu() + 1)


@with_torch
def test_an_operator_may_update_and_take_numbers():
    import tilewright.torch

    add = tw.define("def add_to(float(N) x, float a) -> (float(N) total) { total(i) += a * x(i) }")
    op = tilewright.torch.op(add, "tilewright_tests::add_to")
    total = torch.ones(3)
    op(torch.arange(3.0), 2.0, total)
    assert total.tolist() == [1, 3, 5]
    head = tw.define("def every(float(N) x, uint32 step) -> (y) { y(i) = x(i * step) where i in 0:(N - 1) / step + 1 }")
    op = tilewright.torch.op(head, "tilewright_tests::every")
    fake = torch.empty(10, device="meta")
    assert op(torch.arange(10.0), 3).tolist() == [0, 3, 6, 9] and op(fake, 3).shape == (4,)
    with pytest.raises(TypeError, match="a function of tilewright.define is needed, not int"):
        tilewright.torch.op(3)
    for name, said in {"add": "such as mylib::add", "a::b::c": "such as mylib::c", "try::add": "`try`", "a::b c": "`b c`"}.items():
        with pytest.raises(ValueError, match=said):
            tilewright.torch.op(add, name)


@with_jax
def test_jax_arrays_come_in_and_go_out(lib):
    import jax.numpy as jnp

    A, B = jnp.asarray(numbers(7, 5)), jnp.asarray(numbers(5, 3))
    C = lib.mm(A, B)
    assert isinstance(C, jax.Array) and C.dtype == jnp.float32
    assert_product(np.asarray(C), numbers(7, 5), numbers(5, 3))
    with pytest.raises(ValueError, match="arrays of JAX cannot be written to"):
        lib.mm(A, B, out=jnp.zeros((7, 3)))
    out = np.empty((7, 3), np.float32)
    assert lib.mm(A, B, out=out) is out
    half = tw.define("def half_of(bfloat16(N) x) -> (y) { y(i) = x(i) / 2 }")
    assert half(jnp.arange(4, dtype=jnp.bfloat16)).tolist() == [0, 0.5, 1, 1.5]


@with_jax
def test_jax_does_not_cut_numbers():
    wide = tw.define("def wide(float(N) x) -> (int64(N) z) { z(i) = 5000000000 * i }")
    assert wide(jax.numpy.ones(3)).tolist() == [0, 5000000000, 10000000000]


@with_jax
def test_jax_cannot_trace_a_function(lib):
    x = jax.numpy.ones(3)
    with pytest.raises(TypeError, match="`x`: JAX only traces this call.*tilewright.jax.op"):
        jax.jit(lib.add)(x, x)


@with_jax
def test_an_operator_of_jax_is_compiled_mapped_and_differentiated():
    import tilewright.jax

    forward, backward = tw.define(PRODUCT), tw.define(PRODUCT_BACKWARD)
    op = tilewright.jax.op(forward, backward=backward)
    a, b = numbers(7, 5), numbers(5, 3)
    A, B = jax.numpy.asarray(a), jax.numpy.asarray(b)
    assert_product(np.asarray(op(A, B)), a, b)
    assert_product(np.asarray(jax.jit(op)(A, B)), a, b)
    twice = jax.jit(lambda A, B: 2 * op(A, B))
    for _ in range(3):
        assert_product(np.asarray(twice(A, B)), 2 * a, b)
    batch = numbers(4, 7, 5)
    for own, result in zip(batch, jax.vmap(op, in_axes=(0, None))(batch, B)):
        assert_product(np.asarray(result), own, b)
    for compiled in [lambda f: f, jax.jit]:
        dA, dB = compiled(jax.grad(lambda A, B: op(A, B).sum(), argnums=(0, 1)))(A, B)
        assert_product(np.asarray(dA), np.ones((7, 3), np.float32), b.T)
        assert_product(np.asarray(dB), a.T, np.ones((7, 3), np.float32))
    with pytest.raises(ValueError, match="updates a tensor"):
        tilewright.jax.op(tw.define("def f(float(N) x) -> (float(N) t) { t(i) += x(i) }"))


@with_jax
def test_numbers_of_an_operator_of_jax(lib):
    import tilewright.jax

    scale = jax.jit(tilewright.jax.op(lib.scale))
    x = jax.numpy.arange(4, dtype=np.float32)
    for factor in [2.0, 3, jax.numpy.float32(0.5)]:
        assert scale(x, factor).tolist() == [0, factor, 2 * factor, 3 * factor]
    fixed = tilewright.jax.op(lib.scale)
    assert jax.jit(lambda x: fixed(x, 4.0))(x).tolist() == [0, 4, 8, 12]
    both = jax.jit(tilewright.jax.op(lib.both))
    assert [part.tolist() for part in both(x)] == [[1, 2, 3, 4], [-1, 0, 1, 2]]
    head = tilewright.jax.op(tw.define("def head(float(N) x, uint32 n) -> (y) { y(i) = x(i) where i in 0:min(n, N) }"))
    assert jax.jit(head, static_argnums=1)(x, 3).tolist() == [0, 1, 2]
    with pytest.raises(TypeError, match="shapes or subscripts depend on `n`.*static_argnums"):
        jax.jit(head)(x, 3)
    with pytest.raises(tw.ProgramError, match="the range of `i` is empty"):
        jax.jit(head, static_argnums=1)(x, 0)
    constant = jax.jit(tilewright.jax.op(lib.apply))
    assert constant(jax.numpy.ones((2, 3)), jax.numpy.ones(3)).tolist() == [3, 3]


@with_jax
def test_what_goes_wrong_in_an_operator_of_jax_is_told(lib):
    import tilewright.jax

    gather = jax.jit(tilewright.jax.op(lib.gather))
    table, at = jax.numpy.ones(3), jax.numpy.asarray([0, 2], dtype=np.int32)
    assert gather(table, at).tolist() == [1, 1]
    with pytest.raises(Exception, match=r"table\(at\(i\)\)"):
        gather(table, at + 1).block_until_ready()
    with pytest.raises(TypeError, match="`at` is int32 in the program, and float32 was given"):
        gather(table, table)
    with pytest.raises(TypeError, match="takes 2 arguments, and was given 1"):
        gather(table)


def test_buffers_come_in(lib):
    x = array.array("f", [1, 2, 3])
    np.testing.assert_array_equal(lib.add(x, (ctypes.c_float * 3)(1, 1, 1)), [2, 3, 4])
    out = array.array("f", [0, 0, 0])
    assert lib.add(x, x, out=out) is out and out.tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match="read-only"):
        lib.add(x, x, out=memoryview(array.array("f", [0, 0, 0])).toreadonly())
    with pytest.raises(TypeError, match="`x` is float32 in the program, and uint8 was given"):
        lib.add(b"abc", x)


class Exporter:
    """Something that speaks DLPack and is nobody's array."""

    def __init__(self, array, device=None, capsule=None, old=False):
        self.array, self.device, self.capsule, self.old = array, device, capsule, old

    def __dlpack_device__(self):
        return self.device or self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if self.old and "max_version" in options:
            raise TypeError("unexpected keyword argument 'max_version'")
        return self.array.__dlpack__(**options) if self.capsule is None else self.capsule


@pytest.mark.parametrize("old", [False, True])
def test_dlpack_of_nobody_in_particular(lib, old):
    x = numbers(6)
    result = lib.add(Exporter(x, old=old), Exporter(x[::-1], old=old))
    assert isinstance(result, np.ndarray)
    np.testing.assert_array_equal(result, x + x[::-1])


def test_dlpack_that_lies_is_refused(lib):
    x = numbers(6)
    used = x.__dlpack__()
    np.from_dlpack(Exporter(x, capsule=used))
    for exporter in [
        Exporter(x, device=(4, 0)),
        Exporter(x, device=("cpu", 0)),
        Exporter(x, device=7),
        Exporter(x, capsule=3),
        Exporter(x, capsule=used),
    ]:
        with pytest.raises((TypeError, ValueError, BufferError, AttributeError), match="`x`"):
            lib.add(exporter, x)
