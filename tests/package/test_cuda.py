"""Tensors on an NVIDIA GPU. Where there is none, or no library that has tensors there, all of this is skipped."""

import numpy as np
import pytest

import tilewright as tw

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("there is no NVIDIA GPU here", allow_module_level=True)


def randn(*shape):
    return torch.randn(*shape, device="cuda")


def test_tensors_are_used_where_they_lie(lib):
    A, B = randn(70, 50), randn(50, 30)
    C = lib.mm(A, B)
    assert C.device == A.device and C.dtype == torch.float32
    torch.testing.assert_close(C, A @ B, rtol=1e-4, atol=1e-4)
    kernel = lib.mm.compile(A, B)
    assert "cuda:0" in repr(kernel)
    out = torch.empty_like(C)
    assert kernel(A, B, out=out) is out
    torch.testing.assert_close(out, A @ B, rtol=1e-4, atol=1e-4)


def test_the_current_stream_is_respected(lib):
    """A kernel waits for what its stream does before, and what the stream does afterwards waits for the kernel."""
    x = torch.zeros(1 << 20, device="cuda")
    lib.scale(x, 1.0)
    for stream in [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]:
        with torch.cuda.stream(stream):
            for round in range(20):
                torch.cuda._sleep(2_000_000)
                x.fill_(round)
                y = lib.scale(x, 2.0)
                x.fill_(-1)
                assert (y == 2 * round).all()
        stream.synchronize()


def test_calls_can_be_captured_in_a_graph(lib):
    x, y = torch.ones(64, device="cuda"), torch.empty(64, device="cuda")
    kernel = lib.scale.compile(x, 3.0)
    kernel(x, 3.0, out=y)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        kernel(x, 3.0, out=y)
    x.fill_(2)
    graph.replay()
    torch.cuda.synchronize()
    assert (y == 6).all()


def test_what_is_elsewhere_is_refused(lib):
    A = randn(8)
    with pytest.raises(ValueError, match="`y` is in the memory of the CPU, and the other tensors are on cuda:0"):
        lib.add(A, torch.ones(8))
    with pytest.raises(ValueError, match="out is in the memory of the CPU"):
        lib.add(A, A, out=torch.ones(8))
    with pytest.raises(ValueError, match="this kernel is for cpu"):
        lib.add.compile(torch.ones(8), torch.ones(8))(A, A)
    with pytest.raises(ValueError, match="shares memory"):
        lib.add(A, A, out=A)


def test_any_strides_and_addresses_will_do(lib):
    wide = randn(40, 1 << 15)
    for x in [wide[:, 1:1001], wide.T[::3], wide[3, 1:], wide[0, 5:6].expand(7)]:
        flat = tw.define(f"def f(float({', '.join('MN'[: x.dim()])}) x) -> (y) {{ y({', '.join('ij'[: x.dim()])}) = 2 * x({', '.join('ij'[: x.dim()])}) }}")
        torch.testing.assert_close(flat(x), 2 * x)
    out = torch.zeros(11, 3, device="cuda")
    assert lib.scale(wide[0, 1:12], 2.0, out=out[:, 1]).data_ptr() == out[:, 1].data_ptr()
    torch.testing.assert_close(out[:, 1], 2 * wide[0, 1:12])
    assert (out[:, [0, 2]] == 0).all()
    total = torch.ones(9, device="cuda")
    lib.accumulate(wide[0, :8], out=total[1:])
    torch.testing.assert_close(total[1:], 1 + wide[0, :8])


def test_functions_without_tensors_follow_their_results():
    ones = tw.define("def ones(float a) -> (float(3) s) { s(i) = a }")
    out = torch.zeros(3, device="cuda")
    assert ones(2.0, out=out) is out and out.tolist() == [2, 2, 2]


def test_results_are_tensors_of_the_allocator(lib):
    assert lib.scale(randn(8), 1.0).untyped_storage().resizable()


def test_failures_reach_who_has_caused_them(lib):
    from concurrent.futures import ThreadPoolExecutor

    table = randn(5)
    good = torch.tensor([0, 4], dtype=torch.int32, device="cuda")

    def run(seed):
        for round in range(200):
            if (seed + round) % 3 == 0:
                with pytest.raises(IndexError):
                    lib.gather(table, good + 1)
            else:
                assert torch.equal(lib.gather(table, good), table[good.long()])

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(4)))


def test_a_call_that_is_checked_is_refused_in_a_graph(lib):
    table, at = randn(5), torch.tensor([0, 4], dtype=torch.int32, device="cuda")
    out = torch.empty(2, device="cuda")
    kernel = lib.gather.compile(table, at)
    kernel(table, at, out=out)
    torch.cuda.synchronize()
    with pytest.raises(Exception, match="cannot be part of a CUDA graph"):
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            kernel(table, at, out=out)
    torch.cuda.synchronize()
    assert torch.equal(lib.gather(table, at), table[at.long()])


def test_calls_beside_a_capture(lib):
    import threading

    x, y = torch.ones(64, device="cuda"), torch.empty(64, device="cuda")
    kernel = lib.scale.compile(x, 3.0)
    kernel(x, 3.0, out=y)
    torch.cuda.synchronize()
    done, failed = threading.Event(), []

    def beside():
        stream = torch.cuda.Stream()
        own, result = torch.ones(64, device="cuda"), torch.empty(64, device="cuda")
        with torch.cuda.stream(stream):
            while not done.is_set():
                try:
                    kernel(own, 2.0, out=result)
                except Exception as error:
                    failed.append(error)
                    return

    other = threading.Thread(target=beside)
    other.start()
    try:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            for _ in range(200):
                kernel(x, 3.0, out=y)
    finally:
        done.set()
        other.join()
    assert not failed
    x.fill_(2)
    graph.replay()
    torch.cuda.synchronize()
    assert (y == 6).all()


def test_arrays_go_to_the_device_and_back(lib):
    A, B = np.ones((20, 30), np.float32), np.ones((30, 10), np.float32)
    result = lib.mm(A, B, target="cuda:0")
    assert isinstance(result, np.ndarray) and (result == 30).all()


def test_indices_are_checked_there_too(lib):
    table = randn(5)
    at = torch.tensor([0, 4], dtype=torch.int32, device="cuda")
    assert torch.equal(lib.gather(table, at), table[at.long()])
    with pytest.raises(IndexError, match="gather|table"):
        lib.gather(table, at + 1)


def test_constants_are_bound_from_either_side(lib):
    W, x = randn(6, 4), randn(4)
    kernel = lib.apply.compile(W, x)
    with pytest.raises(TypeError, match="constants are given once"):
        kernel(W, x)
    torch.testing.assert_close(kernel.bind(W)(x), W @ x, rtol=1e-4, atol=1e-4)


def test_an_operator_runs_and_is_compiled_there():
    import tilewright.torch

    relu = tw.define("def shifted(float(N) x, float a) -> (y) { y(i) = max(x(i) + a, 0.0) }")
    op = tilewright.torch.op(relu, "tilewright_tests::shifted_relu")
    x = randn(1000)
    expected = (x + 0.5).relu() * 2
    torch.testing.assert_close(torch.compile(lambda x: op(x, 0.5) * 2)(x), expected)


def test_a_search_on_the_device():
    mm = tw.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }").mm
    A, B = randn(256, 256), randn(256, 256)
    found = mm.tune(A, B, trials=8, progress=False)
    assert found.trials == 8 and found.speedup >= 1
    torch.testing.assert_close(mm(A, B), A @ B, rtol=1e-3, atol=1e-3)
    assert tw.cache.list()[0]["target"] != "cpu"


def test_many_threads_with_streams_of_their_own(lib):
    from concurrent.futures import ThreadPoolExecutor

    def run(seed):
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            for round in range(100):
                x = torch.full((1000,), float(seed + round), device="cuda")
                assert (lib.scale(x, 2.0) == 2 * (seed + round)).all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(run, range(8)))


def test_jax_arrays_on_the_device(lib):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    A = jax.numpy.ones((20, 30))
    result = lib.mm(A, A.T)
    assert isinstance(result, jax.Array) and "cuda" in str(result.device).lower()
    assert (np.asarray(result) == 30).all()
    wide = tw.define("def wide(float(N) x) -> (int64(N) z) { z(i) = 5000000000 * i }")
    assert torch.from_dlpack(wide(jax.numpy.ones(3))).tolist() == [0, 5000000000, 10000000000]


def test_torch_and_jax_together(lib):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    with torch.cuda.stream(torch.cuda.Stream()):
        for round in range(20):
            theirs = torch.zeros(1 << 20, device="cuda")
            torch.cuda._sleep(1_000_000)
            theirs.fill_(round)
            for pair in [(jax.numpy.full(1 << 20, 2.0), theirs), (theirs, jax.numpy.full(1 << 20, 2.0))]:
                assert (torch.from_dlpack(lib.add(*pair)) == round + 2).all()


def test_an_operator_of_jax_on_the_device(lib):
    jax = pytest.importorskip("jax")
    if jax.default_backend() != "gpu":
        pytest.skip("JAX has no GPU here")
    import tilewright.jax

    mm = tilewright.jax.op(lib.mm)
    A, B = jax.numpy.ones((20, 30)), jax.numpy.ones((30, 10))
    step = jax.jit(lambda A, B: 2 * mm(A + 1, B))
    for _ in range(10):
        assert (np.asarray(step(A, B)) == 120).all()
    scale = tilewright.jax.op(lib.scale)
    assert (np.asarray(jax.jit(lambda x: scale(x, 3.0))(jax.numpy.ones(5))) == 3).all()
    with pytest.raises(Exception, match="static_argnums"):
        jax.jit(scale)(jax.numpy.ones(5), 3.0).block_until_ready()
    gather = jax.jit(tilewright.jax.op(lib.gather))
    with pytest.raises(Exception, match=r"table\(at\(i\)\)"):
        gather(jax.numpy.ones(3), jax.numpy.asarray([3], dtype="int32")).block_until_ready()


def test_results_for_others_speak_dlpack(lib):
    class Foreign:
        """A tensor of nobody in particular."""

        def __init__(self, tensor):
            self.tensor = tensor

        def __dlpack__(self, **options):
            return self.tensor.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.tensor.__dlpack_device__()

    x = Foreign(torch.ones(10, device="cuda"))
    result = lib.add(x, x)
    assert repr(result) == "<tilewright tensor float32(10,) on cuda:0>"
    assert (torch.from_dlpack(result) == 2).all()
    with pytest.raises((BufferError, RuntimeError, TypeError)):
        np.from_dlpack(result)
    assert (torch.from_dlpack(result) == 2).all()
