"""One peer, one workload, in a process of its own: `peer_worker.py PEER WORKLOAD THREADS`, run in the peer's environment.

Speaks JSON, one object a line, on standard input and output; contender.py has the other end.

    → {"ready": {"version": "torch 2.15.0", "error": 3e-07}}    or {"unavailable": "No module named 'torch'"}
    ← {"seconds": 0.3}
    → {"median_us": 14.2, "p10_us": 13.9, "p90_us": 15.0, "calls": 2100}    and so on until the input ends

The thread count for libraries that read the environment, and the processors, are set by who starts this.
"""

import ctypes
import importlib
import json
import os
import signal
import statistics
import sys
import time

PR_SET_PDEATHSIG = 1
FEWEST_CALLS = 3


def die_with_parent():
    """The harness stops workers that wait; one that is stopped would never see the harness end."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def private_stdout():
    """The real standard output, for the protocol alone; what libraries print goes to standard error."""
    stream = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    return stream


def prepare(peer: str, workload_name: str, threads: int):
    """The kernel, its inputs, and the answer that says it is ready."""
    from families import CPU
    from references import comparison

    library = importlib.import_module(f"peers.{peer}")
    work = CPU.named(workload_name)
    if work.operator not in library.OPERATORS:
        raise NotImplementedError(f"has no {work.operator}")
    inputs = comparison.inputs(work.operator, work.sizes)
    kernel = library.OPERATORS[work.operator](inputs, work.sizes, threads)
    kernel.run()
    error = comparison.error(work.operator, work.sizes, inputs, kernel.output())
    if not error < comparison.TOLERANCE:
        raise ArithmeticError(f"wrong result: off by {error:.1e} of the largest element")
    return kernel, inputs, {"version": library.version(), "error": error}


def burst(run, seconds: float) -> dict:
    """Times of single calls for about `seconds`, after a call that warms up."""
    clock = time.perf_counter
    run()
    times = []
    begin = clock()
    while clock() - begin < seconds or len(times) < FEWEST_CALLS:
        start = clock()
        run()
        times.append((clock() - start) * 1e6)
    times.sort()
    return {
        "median_us": statistics.median(times),
        "p10_us": times[len(times) // 10],
        "p90_us": times[len(times) * 9 // 10],
        "calls": len(times),
    }


def serve(prepare):
    """Speaks the protocol; `prepare` returns the kernel, what to hold to the end, and what to say when ready."""
    die_with_parent()
    answers = private_stdout()

    def answer(message: dict):
        answers.write(json.dumps(message) + "\n")
        answers.flush()

    try:
        # Held to the end: not every library that shares an array's memory keeps the array alive.
        kernel, held, ready = prepare()
    except Exception as problem:  # whatever a library may raise is a reason to show
        answer({"unavailable": " ".join(str(problem).split()) or type(problem).__name__})
        return
    answer({"ready": ready})
    for line in sys.stdin:
        answer(burst(kernel.run, json.loads(line)["seconds"]))
    del held


def main():
    peer, workload_name, threads = sys.argv[1:]
    serve(lambda: prepare(peer, workload_name, int(threads)))


if __name__ == "__main__":
    main()
