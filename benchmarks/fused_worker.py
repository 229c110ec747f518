"""PyTorch for all programs of fused.py, eager and compiled, in one process: `fused_worker.py TARGET THREADS`.

TARGET is cpu or a device such as cuda:0. One process serves all programs of a place, because loading PyTorch takes longer
than measuring. Speaks JSON, one object a line; fused_contender.py has the other end.

    → {"ready": {"torch": "2.15.0", …}}    or {"unavailable": "No module named 'torch'"}
    ← {"write": "softmax_4096x1024", "folder": "/tmp/inputs"}
    → {"files": {"x": "/tmp/inputs/x.npy"}}
    ← {"prepare": "compiled", "program": "softmax_4096x1024"}
    → {"ready": {"version": "torch 2.15.0", "error": 3e-07}}    or {"unavailable": "wrong result: …"}
    ← {"compare": "softmax_4096x1024", "folder": "/tmp/results"}
    → {"ready": {"error": 3e-07}}
    ← {"measure": "compiled", "program": "softmax_4096x1024", "seconds": 0.1}
    → {"median_us": 14.2, "p10_us": 13.9, "p90_us": 15.0, "calls": 300}
    ← {"forget": "all"}    before the next program
    → {"forgotten": 1}
"""

import gc
import sys
from collections.abc import Callable
from pathlib import Path

import gpu_worker
import peer_worker
from gpu_worker import first_line

COMPILE_OPTIONS = {"compiled": {}, "compiled_graphs": {"mode": "reduce-overhead"}}


def open_place(target: str, threads: int):
    """The device, and what to know about it beside a measurement."""
    import torch

    if target != "cpu":
        return gpu_worker.open_device(int(target.partition(":")[2] or 0))
    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    return torch.device("cpu"), {"torch": torch.__version__}


class Server:
    def __init__(self, device):
        self._device = device
        self._forget()

    def answer(self, question: dict) -> dict:
        try:
            match question:
                case {"write": name, "folder": folder}:
                    return {"files": self._row(name).write(Path(folder))}
                case {"prepare": peer, "program": name}:
                    return {"ready": self._prepare(peer, name)}
                case {"compare": name, "folder": folder}:
                    return {"ready": {"error": self._row(name).error_in(Path(folder))}}
                case {"measure": peer, "program": name, "seconds": seconds}:
                    return self._burst(self._call(peer, name), seconds)
                case _:
                    return self._forget()
        except Exception as problem:  # whatever a library may raise is a reason to show
            return {"unavailable": first_line(problem)}

    def _row(self, name: str):
        from fused import FUSED
        from fused.rows import Row

        if name not in self._rows:
            self._rows[name] = Row(FUSED.named(name), self._device)
        return self._rows[name]

    def _prepare(self, peer: str, name: str) -> dict:
        import torch

        from fused import FUSED

        function = FUSED.named(name).function
        if peer in COMPILE_OPTIONS:
            function = torch.compile(function, dynamic=False, **COMPILE_OPTIONS[peer])
        self._functions[peer, name] = function
        return {"version": f"torch {torch.__version__}", "error": self._row(name).error_of(function)}

    def _call(self, peer: str, name: str) -> Callable:
        if (peer, name) not in self._functions:
            raise RuntimeError("what was prepared is gone: the worker had to be started again")
        function, tensors = self._functions[peer, name], self._row(name).tensors
        return lambda: function(*tensors)

    def _burst(self, call: Callable, seconds: float) -> dict:
        if self._device.type == "cpu":
            return peer_worker.burst(call, seconds)
        return gpu_worker.burst(call, seconds, self._device)

    def _forget(self) -> dict:
        import torch

        self._rows: dict = {}
        self._functions: dict = {}
        if "torch._dynamo" in sys.modules:
            torch._dynamo.reset()
        gc.collect()
        if self._device.type == "cuda":
            torch.cuda.empty_cache()
        return {"forgotten": 1}

    def is_lost(self) -> bool:
        """Whether an error of the device has made this process useless, as that of a kernel does."""
        import torch

        try:
            if self._device.type == "cuda":
                torch.cuda.synchronize(self._device)
        except RuntimeError:
            return True
        return False


def main():
    def opened():
        target, threads = sys.argv[1:]
        device, about = open_place(target, int(threads))
        return Server(device), about

    gpu_worker.serve(opened)


if __name__ == "__main__":
    main()
