"""The peers on a GPU, all in one process: `gpu_worker.py DEVICE`, run by a Python that has PyTorch with CUDA.

One process serves all rows, for loading PyTorch and CUDA takes longer than measuring. Speaks JSON, one object a line; gpu_peer.py
has the other end.

    → {"ready": {"device": "NVIDIA H200", "torch": "2.11.0", …}}    or {"unavailable": "No module named 'torch'"}
    ← {"prepare": "cudnn", "operator": "conv2d", "sizes": {"N": 1, …}, "compared": {"N": 1, …}}
    → {"ready": {"version": "cuDNN 9.15.1", "error": 3e-07}}    or {"unavailable": "has no gemm"}
    ← {"measure": "cudnn", "seconds": 0.1}
    → {"median_us": 14.2, "p10_us": 13.9, "p90_us": 15.0, "calls": 300}
    ← {"forget": "all"}    before the next row
    → {"forgotten": 2}

`compared` are the sizes at which the result is compared with the reference; where they are those of the row, so is the kernel.
"""

import json
import statistics
import sys
import time

from peer_worker import die_with_parent, private_stdout

WARM_UP_SECONDS = 0.1  # a GPU that was idle takes a while to reach its clock frequency
WARM_UP_CALLS = 3
FEWEST_CALLS = 30
FLUSHED_BYTES = 256 << 20  # more than any cache has, and long enough to queue what comes next


class Row:
    """The peers of one row, with inputs that they share."""

    def __init__(self, device):
        self._device = device
        self._inputs: dict[str, dict] = {}  # by operator and sizes
        self._kernels: dict = {}

    def prepare(self, peer: str, operator: str, sizes: dict, compared: dict) -> dict:
        from peers import on_gpu
        from references import comparison

        builds = on_gpu.PEERS[peer]
        if operator not in builds:
            raise NotImplementedError(f"has no {operator}")
        with on_gpu.settings(peer):
            given, tensors = self._given(operator, compared)
            kernel = builds[operator](tensors, compared)
            kernel.run()
            error = comparison.error(operator, compared, given, kernel.output())
            if not error < comparison.TOLERANCE:
                raise ArithmeticError(f"wrong result: off by {error:.1e} of the largest element")
            if sizes != compared:
                kernel = builds[operator](self._given(operator, sizes)[1], sizes)
        self._kernels[peer] = kernel
        return {"version": version(peer), "error": error}

    def measure(self, peer: str, seconds: float) -> dict:
        from peers import on_gpu

        if peer not in self._kernels:
            raise RuntimeError("what was prepared is gone: the worker had to be started again")
        with on_gpu.settings(peer):
            return burst(self._kernels[peer].run, seconds, self._device)

    def _given(self, operator: str, sizes: dict) -> tuple[dict, dict]:
        """The inputs as arrays and as tensors of the device."""
        import torch

        from references import comparison

        key = json.dumps([operator, sizes])
        if key not in self._inputs:
            given = comparison.inputs(operator, sizes)
            self._inputs[key] = given, {name: torch.from_numpy(array).to(self._device) for name, array in given.items()}
        return self._inputs[key]


def version(peer: str) -> str:
    import torch

    if peer == "cudnn":
        return f"cuDNN {torch.backends.cudnn.version()}"
    if peer == "cublas":
        return f"cuBLAS of CUDA {torch.version.cuda}"
    return f"torch {torch.__version__}"


def burst(run, seconds: float, device) -> dict:
    """Times of single calls by the device's own clock, each with an empty cache; as `tilewright bench` takes them."""
    import torch

    flushed = torch.empty(FLUSHED_BYTES, dtype=torch.uint8, device=device)

    def sample() -> float:
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        flushed.zero_()
        start.record()
        run()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e3

    return spread(samples(sample, seconds))


def samples(sample, seconds: float) -> list[float]:
    """For about `seconds`, after warming up."""
    clock = time.monotonic
    begin, calls = clock(), 0
    while clock() - begin < WARM_UP_SECONDS or calls < WARM_UP_CALLS:
        sample()
        calls += 1
    times, begin = [], clock()
    while clock() - begin < seconds or len(times) < FEWEST_CALLS:
        times.append(sample())
    return times


def spread(times: list[float]) -> dict:
    ordered = sorted(times)
    return {
        "median_us": statistics.median(ordered),
        "p10_us": ordered[len(ordered) // 10],
        "p90_us": ordered[len(ordered) * 9 // 10],
        "calls": len(ordered),
    }


def open_device(number: int):
    """The device, and what to know about it beside a measurement."""
    import torch

    from peers import on_gpu

    if not torch.cuda.is_available():
        raise RuntimeError(f"torch {torch.__version__} sees no CUDA device")
    device = torch.device("cuda", number)
    torch.cuda.set_device(device)
    on_gpu.single_precision()
    about = {
        "device": torch.cuda.get_device_name(device),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version(),
    }
    return device, about


class Server:
    def __init__(self, device):
        self._device = device
        self._row = Row(device)

    def answer(self, question: dict) -> dict:
        try:
            match question:
                case {"prepare": peer, "operator": operator, "sizes": sizes, "compared": compared}:
                    return {"ready": self._row.prepare(peer, operator, sizes, compared)}
                case {"measure": peer, "seconds": seconds}:
                    return self._row.measure(peer, seconds)
                case _:
                    return self._forget()
        except Exception as problem:  # whatever a library may raise is a reason to show
            return {"unavailable": first_line(problem)}

    def is_lost(self) -> bool:
        """Whether an error of the device has made this process useless, as that of a kernel does."""
        import torch

        try:
            torch.cuda.synchronize(self._device)
        except RuntimeError:
            return True
        return False

    def _forget(self) -> dict:
        import gc

        import torch

        self._row = Row(self._device)
        if "torch._dynamo" in sys.modules:
            torch._dynamo.reset()
        gc.collect()
        torch.cuda.empty_cache()
        return {"forgotten": torch.cuda.memory_allocated(self._device)}


def first_line(problem: Exception) -> str:
    return (str(problem).strip() or type(problem).__name__).splitlines()[0]


def serve(opened):
    """Speaks the protocol for the server that `opened` returns together with what to say when ready."""
    die_with_parent()
    answers = private_stdout()

    def answer(message: dict):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    try:
        server, about = opened()
    except Exception as problem:
        answer({"unavailable": first_line(problem)})
        return
    answer({"ready": about})
    for line in sys.stdin:
        answer(server.answer(json.loads(line)))
        if server.is_lost():
            sys.exit("the device does not go on after an error; it has to be opened again")


def main():
    def opened():
        device, about = open_device(int(sys.argv[1]))
        return Server(device), about

    serve(opened)


if __name__ == "__main__":
    main()
