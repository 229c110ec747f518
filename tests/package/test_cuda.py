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
    with pytest.raises(ValueError, match="`y` is in the memory of the CPU, and others are on cuda:0"):
        lib.add(A, torch.ones(8))
    with pytest.raises(ValueError, match="out is in the memory of the CPU"):
        lib.add(A, A, out=torch.ones(8))
    with pytest.raises(ValueError, match="this kernel is for cpu"):
        lib.add.compile(torch.ones(8), torch.ones(8))(A, A)
    with pytest.raises(ValueError, match=r"`x` is on a GPU and has gaps .* x.contiguous\(\)"):
        lib.add(randn(16)[::2], A)
    with pytest.raises(ValueError, match="shares memory"):
        lib.add(A, A, out=A)


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
    with pytest.raises(BufferError, match="handed over before"):
        torch.from_dlpack(result)
