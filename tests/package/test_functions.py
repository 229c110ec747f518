"""Functions, kernels and their errors, on NumPy arrays."""

import copy
import gc
import inspect
import pickle
import warnings
import weakref
from pathlib import Path

import numpy as np
import pytest
from conftest import assert_product, numbers

import tilewright as tw

TYPES = {
    "bool": np.bool_,
    "int8": np.int8,
    "int16": np.int16,
    "int32": np.int32,
    "int64": np.int64,
    "uint8": np.uint8,
    "uint16": np.uint16,
    "uint32": np.uint32,
    "uint64": np.uint64,
    "float16": np.float16,
    "float32": np.float32,
    "float64": np.float64,
}


def test_a_function_is_called_on_arrays(lib):
    A, B = numbers(17, 5), numbers(5, 9)
    assert_product(lib.mm(A, B), A, B)
    assert_product(lib.mm(B=B, A=A), A, B)
    assert_product(lib.mm(A, B=B), A, B)


def test_a_module_gives_its_functions():
    module = tw.define("def f(float(N) x) -> (y) { y(i) = x(i) }  def g(float(N) x) -> (y) { y(i) = 2 * x(i) }")
    f, g = module
    assert [f.__name__, g.__name__] == ["f", "g"] and module["g"] is g and "f" in dir(module) and len(module) == 2
    with pytest.raises(AttributeError, match="there is no function `h`; the source has: f, g"):
        module.h
    with pytest.raises(TypeError, match="name the one to call"):
        module(numbers(3))
    only = tw.define("def only(float(N) x) -> (y) { y(i) = 2 * x(i) }")
    np.testing.assert_array_equal(only(numbers(3)), 2 * numbers(3))
    assert only.compile(numbers(3)).sizes == {"N": 3}


def test_products_are_rounded_by_themselves_where_that_is_asked_for():
    text = "def f(float(N) x, float(N) z) -> (y) { y(i) = x(i) * x(i) - z(i) }"
    x = np.full(40, 1 + 2**-12, dtype=np.float32)
    rounded = x * x
    plain, exact = tw.define(text), tw.define(text, contract=False)
    np.testing.assert_array_equal(exact(x, rounded), 0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(exact))(x, rounded), 0)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(exact.f))(x, rounded), 0)
    # With a fused multiply-add the product is exact, and what rounding took off is left.
    assert set(np.unique(plain(x, rounded))) <= {np.float32(0), np.float32(2**-24)}


def test_a_file_is_read_by_its_path(tmp_path):
    path = tmp_path / "twice.tw"
    path.write_text("def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }")
    np.testing.assert_array_equal(tw.define(path)(numbers(3)), 2 * numbers(3))
    with pytest.raises(TypeError, match="a program is a text, or the path of a file, not int"):
        tw.define(3)


def test_parameters_are_shown_in_their_order():
    axpy = tw.define("def axpy(float a, float(N) x, int8 b, float(N) y) -> (z) { z(i) = a * x(i) + b * y(i) }").axpy
    assert axpy.signature == "axpy(float32 a, float32(N) x, int8 b, float32(N) y) -> (float32(N) z)"
    np.testing.assert_array_equal(axpy(2, numbers(3), 3, numbers(3)), 2 * numbers(3) + 3 * numbers(3))


def test_the_decorator_takes_its_documentation_for_the_program():
    @tw.function
    def softplus(x):
        """def softplus(float(N) x) -> (y) { y(i) = log(1 + exp(x(i))) }"""

    np.testing.assert_allclose(softplus(numbers(5)), np.log1p(np.exp(numbers(5))), rtol=1e-5)
    with pytest.raises(TypeError, match=r"takes \(x\) in the program, and \(y\) in Python"):

        @tw.function
        def other(y):
            """def other(float(N) x) -> (y) { y(i) = x(i) }"""

    with pytest.raises(TypeError, match="has no program text"):
        tw.function(lambda x: x)


@pytest.mark.parametrize("name", TYPES)
def test_every_type_comes_in_and_goes_out(name):
    copy = tw.define(f"def copy({name}(M, N) x) -> (y) {{ y(i, j) = x(i, j) }}")
    x = (np.arange(12).reshape(3, 4) % 2).astype(TYPES[name])
    y = copy(x)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y, x)


def test_bfloat16_comes_from_the_package_that_adds_it():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    twice = tw.define("def twice(bfloat16(N) x) -> (y) { y(i) = x(i) + x(i) }")
    x = np.arange(5).astype(ml_dtypes.bfloat16)
    assert twice(x).dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(twice(x).astype(np.float32), 2 * np.arange(5))


@pytest.mark.parametrize("given", [2.5, np.float32(2.5), np.float64(2.5), np.array(2.5), 2, True])
def test_scalars(lib, given):
    np.testing.assert_allclose(lib.scale(numbers(4), given), float(given) * numbers(4), rtol=1e-6)


def test_integers_are_not_rounded_and_not_cut():
    power = tw.define("def shift(int32(N) x, int8 a) -> (y) { y(i) = x(i) + a }")
    x = np.arange(3, dtype=np.int32)
    np.testing.assert_array_equal(power(x, -128), x - 128)
    with pytest.raises(OverflowError, match="`a`: 128 is not between -128 and 127"):
        power(x, 128)
    with pytest.raises(TypeError, match="`a` is int8 and takes a whole number, not float"):
        power(x, 1.0)


def test_a_kernel_is_made_for_each_number_that_shapes_depend_on():
    head = tw.define("def head(float(N) x, uint32 n) -> (y) { y(i) = x(i) where i in 0:min(n, N) }")
    x = numbers(9)
    for n in (2, 5, 2, 7):
        np.testing.assert_array_equal(head(x, n), x[:n])
    assert "3 kernels" in repr(head.head)


STRIDED = {
    "transposed": lambda a: a.T.copy().T,
    "reversed": lambda a: a[::-1, ::-1].copy()[::-1, ::-1],
    "every second": lambda a: np.repeat(np.repeat(a, 2, 0), 3, 1)[::2, ::3],
    "unaligned": lambda a: np.frombuffer(b"x" + a.tobytes(), np.uint8)[1:].view(a.dtype).reshape(a.shape),
    "read-only": lambda a: np.frombuffer(a.tobytes(), a.dtype).reshape(a.shape),
    "subclass": lambda a: np.asmatrix(a),
    "memoryview": lambda a: memoryview(a),
}


@pytest.mark.parametrize("how", STRIDED)
def test_arrays_come_with_any_strides(lib, how):
    A, B = numbers(6, 4), numbers(4, 5)
    assert_product(lib.mm(STRIDED[how](A), STRIDED[how](B)), A, B)


def test_channels_of_one_array_do_not_overlap(lib):
    pixels = np.arange(12, dtype=np.float32).reshape(4, 3)
    lib.add(pixels[:, 0], pixels[:, 1], out=pixels[:, 2])
    np.testing.assert_array_equal(pixels[:, 2], [1, 7, 13, 19])
    with pytest.raises(ValueError, match="shares memory"):
        lib.add(pixels[:, 0], pixels[:, 1], out=pixels[:, 1])


def test_static_parameters_are_told_by_name():
    powers = tw.define("""
        def power(float(N) x, static int n = 2, float scale) -> (y) {
          p[0](i) = scale * x(i)
          for k in 1:n { p[k](i) = p[k - 1](i) * x(i) }
          y(i) = p[n - 1](i)
        }
        def raised(float(N) x, static int n = 2) -> (p[n]) {
          p[0](i) = x(i)
          for k in 1:n { p[k](i) = p[k - 1](i) * x(i) }
        }
        def same<T>(T(N) x) -> (y) { y(i) = x(i) }
    """)
    x = np.array([1, 2, 3], dtype=np.float32)
    np.testing.assert_array_equal(powers.power(x, 10), 10 * x**2)
    np.testing.assert_array_equal(powers.power(x, 10, n=4), 10 * x**4)
    np.testing.assert_array_equal(powers.power(x, 10), 10 * x**2)
    for n in [2, 3]:
        for k, power in enumerate(powers.raised(x, n=n)):
            np.testing.assert_array_equal(power, x ** (k + 1))


def test_a_list_of_tensors_is_an_argument():
    lists = tw.define("""
        def total(float(N[n]) g[n], float scale, static int n = 3) -> (y) {
          s[0] +=! g[0](i)
          for k in 1:n {
            t +=! g[k](i)
            s[k] = s[k - 1] + t
          }
          y = scale * s[n - 1]
        }
    """)
    tensors = [np.full(size, size, dtype=np.float32) for size in [2, 3, 4]]
    for arguments, named in [((tensors, 2), {}), ((tuple(tensors), 2), {}), ((), {"g": tensors, "scale": 2})]:
        assert lists.total(*arguments, **named) == 2 * (4 + 9 + 16)
    with pytest.raises(TypeError):
        lists.total(tensors[:2], 2)


def test_sizes_are_told_by_name_in_any_order():
    table = tw.define("def table(int s) -> (int(A, B) y) { y(i, j) = s * (i + j) }")
    assert table(1, A=2, B=3).shape == (2, 3) and table(1, B=2, A=3).shape == (3, 2)
    with pytest.raises(TypeError, match=r"has no parameter `C`.* It has: s, A, B"):
        table(1, C=2)
    with pytest.raises(TypeError, match="`A`"):
        table(1, A=2.5, B=3)


def test_masks_and_other_byte_orders_are_refused(lib):
    with pytest.raises(TypeError, match="`x` is a masked array"):
        lib.add(np.ma.masked_array(numbers(3), mask=[0, 1, 0]), numbers(3))


def test_a_number_that_changes_the_arrays_is_read_first(lib):
    victim = numbers(100_000)

    class Sly:
        def __float__(self):
            victim.resize(1, refcheck=False)
            return 2.0

    kernel = lib.scale.compile(victim, 1.0)
    with pytest.raises(ValueError):
        kernel(victim, Sly())


def test_few_kernels_are_kept():
    add = tw.define("def add(float(N) x, float(N) y) -> (z) { z(i) = x(i) + y(i) }").add
    for elements in range(1, 300):
        add(numbers(elements), numbers(elements))
    assert "256 kernels" in repr(add)


def test_broadcast_inputs(lib):
    A = np.broadcast_to(np.float32(2), (3, 4))
    assert_product(lib.mm(A, numbers(4, 5)), A, numbers(4, 5))


def test_one_kernel_serves_all_values_of_a_number():
    source = """
    def f(int32(N) x, int32 a, int64 b, uint64 c) -> (y, int64(N) z, uint64(N) w) {
      y(i) = x(i) * a + a
      z(i) = b * i - a
      w(i) = c
    }"""
    f = tw.define(source).f
    x = np.arange(5, dtype=np.int32)
    for a, b, c in [(1, 2, 3), (-7, 1 << 40, (1 << 64) - 1), (2**31 - 1, -(1 << 60), 1 << 63), (0, 0, 0)]:
        y, z, w = f(x, a, b, c)
        assert y.tolist() == [((a * i + a + 2**31) % 2**32) - 2**31 for i in range(5)]
        assert z.tolist() == [b * i - a for i in range(5)]
        assert w.tolist() == [c] * 5
    assert "1 kernel>" in repr(f)
    shifted = tw.define("def shifted(float(N) x, int32 by) -> (y) { y(i) = i + by < N && i + by >= 0 ? x(i + by) : 0.0 where i in 0:N }").shifted
    x = numbers(4)
    for by in [1, 2, -1]:
        shifted(x, by)
    assert "3 kernels>" in repr(shifted)


def test_functions_go_to_other_processes(lib):
    again = pickle.loads(pickle.dumps(lib.mm))
    A, B = numbers(3, 4), numbers(4, 2)
    assert_product(again(A, B), A, B)
    assert [f.__name__ for f in copy.deepcopy(lib)] == [f.__name__ for f in lib]


def test_what_a_function_takes_is_told():
    update = tw.define("def update(float(N) x, float lambda) -> (y) { y(i) = lambda * x(i) }").update
    assert str(inspect.signature(update)) == "(x, lambda_, *, out=None, target=None)"
    only = tw.define("def only(float(2N) 2x) -> (y) { y(i) = 2x(i) }")
    assert str(inspect.signature(only)) == str(inspect.signature(only.only)) == "(_2x, *, out=None, target=None)"
    assert {"only", "tune", "compile", "schedule"} <= set(dir(only))


def test_results_go_where_the_caller_says(lib):
    x = numbers(8)
    out = np.full(8, np.nan, np.float32)
    assert lib.add(x, x, out=out) is out
    np.testing.assert_array_equal(out, 2 * x)
    wide = np.full((8, 3), np.nan, np.float32)
    lib.add(x, x, out=wide[::-1, 1])
    np.testing.assert_array_equal(wide[::-1, 1], 2 * x)
    assert np.isnan(wide[:, [0, 2]]).all()
    up, down = np.empty_like(x), np.empty_like(x)
    for given in [(up, down), [up, down], {"down": down, "up": up}]:
        up[:], down[:] = 0, 0
        first, second = lib.both(x, out=given)
        assert first is up and second is down
        np.testing.assert_array_equal(up, x + 1)
        np.testing.assert_array_equal(down, x - 1)


def test_what_is_updated_must_be_given(lib):
    total = np.ones(3, np.float32)
    assert lib.accumulate(np.float32([1, 2, 3]), out=total) is total
    np.testing.assert_array_equal(total, [2, 3, 4])
    with pytest.raises(TypeError, match="`total` is updated, so it needs an initial value: give out=total"):
        lib.accumulate(np.float32([1, 2, 3]))


def test_several_results_are_a_tuple(lib):
    up, down = lib.both(numbers(4))
    np.testing.assert_allclose(up, numbers(4) + 1)
    np.testing.assert_allclose(down, numbers(4) - 1)


def test_constants_are_bound_once(lib):
    W, x = numbers(6, 4), numbers(4)
    kernel = lib.apply.compile(W, x)
    assert_product(kernel(W, x), W, x)
    bound = kernel.bind(W)
    kept = W.copy()
    W[:] = 0
    assert_product(bound(x), kept, x)
    with pytest.raises(TypeError, match="nothing to bind"):
        bound.bind(W)


REFUSED = {
    "another type": (lambda x: (x.astype(np.float64), x), TypeError, r"`x` is float32 .* float64 was given.*astype\(np.float32\)"),
    "another rank": (lambda x: (x.reshape(2, 4), x), tw.ProgramError, r"`x` has 1 dimension here, but x has the shape \(2, 4\)"),
    "another size": (lambda x: (x, x[1:]), tw.ProgramError, "N is 8 from x, but 7 from y"),
    "a number": (lambda x: (x[0], x), TypeError, "`x` takes a tensor .* not float32"),
    "a list": (lambda x: (x.tolist(), x), TypeError, "`x` takes a tensor .* not list"),
    "nothing": (lambda x: (None, x), TypeError, "`x` takes a tensor .* not NoneType"),
    "complex": (lambda x: (x.astype(np.complex64), x), TypeError, "`x` is an array of complex64"),
    "objects": (lambda x: (x.astype(object), x), TypeError, "`x` is an array of object"),
    "another machine": (lambda x: (x.astype(">f4"), x), TypeError, "bytes of another machine"),
    "too many": (lambda x: (x, x, x), TypeError, r"add\(x, y\) takes 2 arguments, and was given 3"),
    "too few": (lambda x: (x,), TypeError, r"add\(\) is missing the argument `y`"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_bad_arguments_are_refused(lib, what):
    arguments, error, message = REFUSED[what]
    with pytest.raises(error, match=message):
        lib.add(*arguments(numbers(8)))
    kernel = lib.add.compile(numbers(8), numbers(8))
    with pytest.raises((TypeError, ValueError)):
        kernel(*arguments(numbers(8)))


BAD_RESULTS = {
    "read-only": (lambda x: np.frombuffer(x.tobytes(), np.float32), "read-only"),
    "another shape": (lambda x: np.empty(9, np.float32), r"has the shape \(8,\), and the tensor for it \(9,\)"),
    "an input": (lambda x: x, "the result `z` shares memory with `x`"),
    "part of an input": (lambda x: x.base[4:12], "the result `z` shares memory with `x`"),
    "broadcast": (lambda x: np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), (8,), (0,)), "several elements at one address"),
}


@pytest.mark.parametrize("what", BAD_RESULTS)
def test_bad_results_are_refused(lib, what):
    make, message = BAD_RESULTS[what]
    x = numbers(16)[:8]
    with pytest.raises(ValueError, match=message):
        lib.add(x, numbers(8), out=make(x))
    with pytest.raises(ValueError, match=message):
        lib.add.compile(x, numbers(8))(x, numbers(8), out=make(x))


def test_odd_truth_values_are_refused():
    count = tw.define("def count(bool(N) x) -> (n) { n(i) = x(i) ? 1 : 0 }")
    with pytest.raises(ValueError, match="bytes that are neither 0 nor 1"):
        count(np.array([0, 1, 2], np.uint8).view(np.bool_))


def test_mistakes_in_a_program_are_drawn_under_its_text():
    with pytest.raises(tw.ProgramError) as refused:
        tw.define("def f(float(N) x) -> (y) {\n  y(i) = z(i)\n}")
    message = str(refused.value)
    assert "error[undefined-name]" in message and "2 |   y(i) = z(i)" in message and "^" in message
    for text in ["", "no program", "def f(", "\0", "def " * 10000]:
        with pytest.raises(tw.ProgramError):
            tw.define(text)


def test_what_may_be_a_mistake_is_told_once():
    with pytest.warns(tw.ProgramWarning, match="size-mismatch"):
        add = tw.define("def add(float(N) x, float(M) y) -> (z) { z(i) = x(i) + y(i) }")
        assert add(numbers(3), numbers(2)).shape == (2,)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        add(numbers(3), numbers(2))
        add.forget()
        add(numbers(3), numbers(2))


def test_an_index_out_of_range_is_an_exception(lib):
    table, at = numbers(5), np.array([0, 4], np.int32)
    np.testing.assert_array_equal(lib.gather(table, at), table[at])
    with pytest.raises(IndexError) as refused:
        lib.gather(table, np.array([0, 5], np.int32))
    assert "found(i) = table(at(i))" in str(refused.value)


def test_schedules_are_read_and_refused(lib):
    x = numbers(64)
    kernel = lib.add.compile(x, x, schedule="split z.i -> io, iv:8\nvectorize z.iv")
    np.testing.assert_array_equal(kernel(x, x), 2 * x)
    assert "vectorize z.iv" in kernel.schedule
    with pytest.raises(tw.ProgramError, match="splat"):
        lib.add.compile(x, x, schedule="splat z.i")
    with pytest.raises(tw.ProgramError, match="the step `vectorize z.nowhere` is refused"):
        lib.add.compile(x, x, schedule="vectorize z.nowhere")
    assert lib.add.compile(x, x, schedule="default").schedule


def test_what_there_is_to_see():
    mm = tw.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }").mm
    assert repr(mm) == (
        "<tilewright function mm(float32(M, K) A, float32(K, N) B) -> (float32(M, N) C); not compiled yet>"
    )
    with pytest.raises(RuntimeError, match="was not compiled yet"):
        mm.schedule
    assert "i in 0:M" in mm.ranges and "C(i, j)" in mm.source("program")
    A, B = numbers(4, 5), numbers(5, 6)
    mm(A, B)
    assert "1 kernel" in repr(mm) and mm.schedule
    kernel = mm.compile(A, B)
    assert "float32(4, 5) A" in repr(kernel) and "default schedule" in repr(kernel)
    assert kernel.sizes == {"M": 4, "K": 5, "N": 6}
    for stage, part in [("loops", "vector"), ("llvm", "define"), ("asm", "ret"), ("schedule", ""), ("ranges", "0:M")]:
        assert part in mm.source(stage)
    with pytest.raises(ValueError, match='this kernel has no stage "fortran"; its stages are "program"'):
        mm.source("fortran")


def test_targets_are_looked_for(lib):
    x = numbers(8)
    with pytest.raises(ValueError, match='there is no target "abacus"'):
        lib.add(x, x, target="abacus")
    with pytest.raises(tw.DeviceError, match="(?i)cuda"):
        lib.add(x, x, target="cuda:97")
    np.testing.assert_array_equal(lib.add(x, x, target="cpu"), 2 * x)
    assert tw.devices()[0].target == "cpu"


def test_opencl_takes_arrays_too(lib):
    if not any(device.target == "opencl:0" for device in tw.devices()):
        pytest.skip("there is no OpenCL here")
    A, B = numbers(33, 17), numbers(17, 21)
    assert_product(lib.mm(A, B, target="opencl:0"), A, B)


def test_threads_are_asked_for(lib):
    had = tw.get_threads()
    try:
        tw.set_threads(1)
        assert "cpu, 1 thread;" in repr(lib.mm.compile(numbers(4, 5), numbers(5, 6)))
        with pytest.raises(ValueError, match="must be at least 1"):
            tw.set_threads(0)
        with pytest.raises(ValueError, match="more than"):
            tw.set_threads(2**40)
    finally:
        tw.set_threads()
    assert tw.get_threads() == had


def test_nothing_is_kept_alive(lib):
    class Array(np.ndarray):
        pass

    x = numbers(8).view(Array)
    watched = weakref.ref(x)
    lib.add(x, x)
    with pytest.raises(tw.ProgramError):
        lib.add(x, numbers(7))
    del x
    gc.collect()
    assert watched() is None


def test_a_text_may_begin_with_a_mark_of_its_encoding(tmp_path: Path) -> None:
    file = tmp_path / "same.tw"
    file.write_text("def same(float(N) x) -> (y) { y(i) = x(i) }", encoding="utf-8-sig")
    assert tw.define(file)(np.ones(3, np.float32)).tolist() == [1, 1, 1]


def test_truth_may_come_from_an_array_without_dimensions() -> None:
    pick = tw.define("def pick(float(N) x, bool b) -> (y) { y(i) = b ? x(i) : 0 }")
    x = np.ones(2, np.float32)
    for yes in (True, np.True_, np.array(True)):
        assert pick(x, yes).tolist() == [1, 1]
    for wrong in (1, np.int64(1), "yes", None, np.array([True, False])):
        with pytest.raises((TypeError, ValueError), match="b"):
            pick(x, wrong)


def test_promises_are_kept() -> None:
    """Ranges that are declared are checked in kernels too, and nobody sees what was in memory before."""
    gather = tw.define("def gather(float(N) x, int(M) index) -> (y) { y(i) = x(j) where j = index(i), j in 0:2 }")
    x = np.arange(6, dtype=np.float32)
    assert gather(x, np.array([1, 0], np.int32)).tolist() == [1, 0]
    with pytest.raises(IndexError, match="outside the range of its `where` clause"):
        gather(x, np.array([3], np.int32))
    with pytest.warns(tw.ProgramWarning, match="kernels read 0 from"):
        partial = tw.define("def partial(float(N) x) -> (y) { float(N) t\n t(0) = 1\n y(i) = x(i) > 0 ? t(i) : 0 }")
    assert partial(np.ones(17, np.float32)).sum() == 1


def test_numbers_too_large_are_an_error() -> None:
    shift = tw.define("def shift(float(N) x, int64 k) -> (y) { y(i) = x(clamp(i + 2*k, 0, N - 1)) where i in 0:N }")
    x = np.arange(6, dtype=np.float32)
    assert shift(x, 1).tolist() == [2, 3, 4, 5, 5, 5]
    for k in (2**62, -(2**63), 2**63 - 1):
        with pytest.raises(tw.ProgramError, match="too large"):
            shift(x, k)


def test_a_size_of_0_gives_empty_results(lib):
    nothing = np.zeros(0, np.float32)
    assert lib.add(nothing, nothing).shape == (0,)
    assert lib.mm(numbers(3, 4), np.zeros((4, 0), np.float32)).shape == (3, 0)
    up, down = lib.both(nothing)
    assert up.shape == down.shape == (0,)
    out = np.zeros(0, np.float32)
    assert lib.add(nothing, nothing, out=out) is out
    # The same function works with other sizes before and after.
    assert lib.add(numbers(2), numbers(2)).shape == (2,)


def test_a_reduction_over_nothing_gives_its_neutral_element(lib):
    product = lib.mm(np.zeros((3, 0), np.float32), np.zeros((0, 2), np.float32))
    np.testing.assert_array_equal(product, np.zeros((3, 2), np.float32))
    every = tw.define("""
        def every(float(N) x, int(N) n) -> (sum, product, least, most, first) {
          sum +=! x(i)
          product *=! x(i)
          least min=! x(i)
          most max=! x(i)
          first min=! n(i)
        }
    """)
    found = every(np.zeros(0, np.float32), np.zeros(0, np.int32))
    assert [own.item() for own in found] == [0, 1, np.inf, -np.inf, 2**31 - 1]
    total = np.ones(0, np.float32)
    assert lib.accumulate(np.zeros(0, np.float32), out=total) is total
    rows = tw.define("def rows(float(M, N) x) -> (float(M) total) { total(i) += x(i, j) }")
    total = np.ones(3, np.float32)
    assert rows(np.zeros((3, 0), np.float32), out=total).tolist() == [1, 1, 1]


def test_what_does_not_exist_at_a_size_of_0_says_so(lib):
    nothing = np.zeros(0, np.float32)
    with pytest.raises(IndexError, match="a size is 0"):
        tw.define("def first(float(N) x, float(M) y) -> (z) { z(i) = y(i) + x(0) }")(nothing, numbers(3))
    with pytest.raises(tw.ProgramError):
        tw.define("def conv(float(N) x, float(K) w) -> (y) { y(i) +=! x(i + k) * w(k) }")(nothing, numbers(3))
    for refused in (lib.add.compile, lib.add.tune):
        with pytest.raises(tw.ProgramError, match="must be at least 1, and is 0"):
            refused(nothing, nothing)


def test_a_path_in_place_of_a_text_says_how_to_read_it():
    with pytest.raises(tw.ProgramError, match=r"tilewright.define\(pathlib.Path\('programs/mm.tw'\)\)"):
        tw.define("programs/mm.tw")


def test_infinity_and_nan_are_literals():
    f = tw.define("""
        def f(float(N) x) -> (low, high, none) {
          low(i) = x(i) > 9 ? 0 : -inf
          high(i) = x(i) > 0 ? inf : x(i)
          none(i) = nan where i in 0:N
        }
    """)
    low, high, none = f(np.float32([1, -1]))
    assert low.tolist() == [-np.inf] * 2 and high.tolist() == [np.inf, -1] and np.isnan(none).all()


HISTOGRAM = """def histogram(float(N) x, float width) -> (y) {
  int bins = int(1 / width) + 1
  y(b) +=! 1.0 where b = int(clamp(x(i), 0, 1) / width), b in 0:bins
}"""


def test_each_call_computes_the_sizes_that_its_scalars_determine():
    histogram = tw.define(HISTOGRAM).histogram
    x = np.array([0, 0.1, 0.3, 0.6, 0.65, 1], dtype=np.float32)
    for width in [0.5, 0.25, 0.5, 0.1, 0.25]:
        counts = np.bincount((x / np.float32(width)).astype(int), minlength=int(np.float32(1) / np.float32(width)) + 1)
        np.testing.assert_array_equal(histogram(x, width), counts)
    assert histogram._kernel_count == 3
    # Another width with as many bins takes the same kernel.
    assert histogram(x, 0.45).tolist() == [3, 2, 1] and histogram._kernel_count == 3
    assert histogram(x[:0], 0.5).tolist() == [0, 0, 0]


def test_sizes_that_scalars_and_shapes_determine_together():
    part = tw.define("def part(float(N) x, float a) -> (y) { int m = int(N * a)\n y(i) = x(0) where i in 0:m }")
    for length, a in [(10, 0.5), (20, 0.5), (10, 0.25), (20, 0.25), (10, 0.5)]:
        assert part(np.ones(length, np.float32), a).shape == (int(length * a),)
    assert part._kernel_count == 4


def test_scalars_that_determine_no_size_are_refused():
    histogram = tw.define(HISTOGRAM).histogram
    x = np.ones(4, np.float32)
    kernel = histogram.compile(x, 0.5)
    assert kernel.sizes == {"N": 4, "bins": 3}
    assert kernel(x, 0.5).tolist() == [0, 0, 4]
    with pytest.raises(ValueError, match="specialised for `bins` = 3, but with width = 0.25 .* is 5"):
        kernel(x, 0.25)
    for width, why in [(0.0, "it converts inf"), (float("nan"), "it converts NaN"), (-0.1, "must be at least 0")]:
        with pytest.raises(tw.ProgramError, match=why):
            histogram(x, width)
    with pytest.raises(tw.ProgramError, match="`bins` is 3 with width = 0.5, but 4 is given for it"):
        histogram(x, 0.5, bins=4)
    assert histogram(x, 0.5, bins=3).tolist() == [0, 0, 4]
