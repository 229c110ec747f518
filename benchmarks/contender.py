"""Whoever takes part in a measurement: a peer's worker process, or the `tilewright` command.

A contender is prepared, then asked for one burst a round, then closed. What goes wrong is an `Unavailable` with its reason,
which the tables show; it never ends the run.
"""

import json
import os
import subprocess
from pathlib import Path
from typing import Protocol

from place import Place, Placement
from worker import Unavailable, Worker
from workload import Way, Workload

BENCHMARKS = Path(__file__).resolve().parent
ROOT = BENCHMARKS.parent
PREPARE_SECONDS = 300
BURST_SECONDS = 120

# PyTorch has an environment of its own: it brings its own OpenMP and MKL. Halide has one that is small and quickly installed.
ENVIRONMENTS = {
    "mkl": "venv",
    "mkl_packed": "venv",
    "onednn": "venv",
    "openblas": "venv",
    "pytorch": "venv-torch",
    "pytorch_compiled": "venv-torch",
    "onnxruntime": "venv",
    "openvino": "venv",
    "jax": "venv",
    "halide": "venv-halide",
    "halide_mullapudi": "venv-halide",
    "halide_adams": "venv-halide",
}


class Contender(Protocol):
    name: str
    about: dict  # what is worth keeping with the results, such as the version

    def start(self): ...

    def prepare(self): ...

    def measure(self, seconds: float) -> dict:
        """One burst: at least {"median_us": …, "p10_us": …}."""

    def close(self): ...


class Peer:
    """A library, in a worker process that lives for all rounds and is stopped while others are measured.

    Stopping lets every library keep its own spinning between parallel regions without disturbing the others.
    """

    def __init__(self, name: str, workload: Workload, placement: Placement, folder: Path):
        self.name = name
        self.about: dict = {}
        self._workload = workload
        self._placement = placement
        self._environment = folder / ENVIRONMENTS[name]
        self._worker: Worker | None = None

    def start(self):
        """Starts the worker, and does not wait for it."""
        python = self._environment / "bin" / "python"
        if not python.exists():
            raise Unavailable(f"not installed: no {python}; scripts/peers.sh installs the peers")
        settings = peer_environment(self._placement.threads) | self._libraries()
        self._worker = Worker([python, *self._arguments()], settings, self._placement.pin)

    def prepare(self):
        message = self._worker.answer(PREPARE_SECONDS)
        if "unavailable" in message:
            raise Unavailable(message["unavailable"])
        self.about = message["ready"]
        self._worker.stop()

    def measure(self, seconds: float) -> dict:
        self._worker.go_on()
        message = self._worker.ask({"seconds": seconds}, BURST_SECONDS)
        self._worker.stop()
        return message

    def close(self):
        if self._worker:
            self._worker.close()

    def _arguments(self) -> list[str | Path]:
        """The worker's script and its arguments."""
        return [BENCHMARKS / "peer_worker.py", self.name, self._workload.name, str(self._placement.threads)]

    def _libraries(self) -> dict[str, str]:
        """oneDNN looks for its libraries, which are wheels too, where the linker does."""
        return {"LD_LIBRARY_PATH": str(self._environment / "lib")} if self.name == "onednn" else {}


def peer_environment(threads: int) -> dict[str, str]:
    count = str(threads)
    never = str(1 << 30)
    settings = {
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "HL_NUM_THREADS": count,
        "JAX_PLATFORMS": "cpu",
        # Freed memory stays with the process: a library that makes a new result at every call does not fault its pages in again.
        "MALLOC_MMAP_THRESHOLD_": never,
        "MALLOC_TRIM_THRESHOLD_": never,
    }
    if threads == 1:
        settings["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return settings


def own_name(way: Way) -> str:
    return f"ours, {way}"


def program_arguments(workload: Workload, sizes: dict[str, int] | None = None) -> list[str]:
    """The program and its sizes, or others, for any of the commands."""
    pairs = (workload.sizes if sizes is None else sizes).items()
    return [workload.program, "--sizes", ",".join(f"{size}={value}" for size, value in pairs)]


def schedule_file(cache: Path) -> Path:
    """Where tuning leaves the schedule that it found, beside its cache."""
    return cache.with_suffix(".sched")


# Where the command says that the schedule came from.
SOURCES = {Way.TUNED: "cache", Way.HAND: "file", Way.DEFAULT: "default"}


class Tilewright:
    """`tilewright bench`, run anew in each round: every round compiles again, and counts only what the command timed."""

    def __init__(
        self,
        way: Way,
        workload: Workload,
        place: Place,
        command: Path,
        extra: list[str],  # arguments of `bench`
        source: Path | None,  # the cache for tuned, the file for hand
        python: Path,  # whose NumPy checks the results
    ):
        self.name = own_name(way)
        self.about: dict = {"schedule": workload.schedule if way is Way.HAND else str(way)}
        self._way = way
        self._workload = workload
        self._place = place
        self._command = command
        self._extra = extra
        self._source = source
        self._python = python

    def start(self):
        if not self._command.exists():
            raise Unavailable(f"no {self._command}; `make build` makes it")
        if self._source and not self._source.exists():
            raise Unavailable(f"no {self._source}")

    def prepare(self):
        """Compares what `tilewright run` computes with the reference, where there is NumPy to do it with."""
        if not self._python.exists():
            return
        sizes = self._workload.compared_sizes()
        checker = [str(self._python), str(BENCHMARKS / "result_check.py"), self._workload.operator, json.dumps(sizes)]
        answer = self._answer([*checker, *self._arguments("run", sizes)], PREPARE_SECONDS, "the check of the result")
        if "unavailable" in answer:
            raise Unavailable(answer["unavailable"])
        self.about |= answer

    def measure(self, seconds: float) -> dict:
        arguments = [*self._arguments("bench", self._workload.sizes), "--json", *self._extra]
        return self._checked(self._answer(arguments, BURST_SECONDS, "`tilewright bench`"))

    def close(self):
        pass

    def _arguments(self, command: str, sizes: dict[str, int]) -> list[str]:
        program = program_arguments(self._workload, sizes)
        return [str(self._command), command, *program, *self._place.arguments(), *self._schedule(sizes)]

    def _schedule(self, sizes: dict[str, int]) -> list[str]:
        match self._way:
            case Way.DEFAULT:
                return []
            case Way.HAND:
                return ["--schedule", str(self._source)]
            case Way.TUNED if sizes == self._workload.sizes:
                return ["--cache", str(self._source)]
            case Way.TUNED:  # the cache knows the schedule for its own sizes alone
                return ["--schedule", str(schedule_file(self._source))]

    def _where(self) -> dict:
        """Options of `subprocess.run`. No cache but a given one: what is not given is the default schedule."""
        return {"cwd": ROOT, "env": os.environ | {"XDG_DATA_HOME": "/nonexistent"}, "preexec_fn": self._place.pin}

    def _answer(self, arguments: list[str], limit: float, what: str) -> dict:
        """The JSON object that a command prints."""
        try:
            done = subprocess.run(arguments, capture_output=True, text=True, timeout=limit, **self._where())
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{what} took over {limit} s") from None
        except OSError as problem:
            raise Unavailable(f"{arguments[0]} does not start: {problem.strerror}") from None
        if done.returncode != 0:
            raise Unavailable(f"{what} ended with status {done.returncode}: {first_line(done.stderr)}")
        try:
            return json.loads(done.stdout)
        except ValueError as problem:
            raise Unavailable(f"{what} printed no result: {problem}") from None

    def _checked(self, answer: dict) -> dict:
        """The answer of `bench`, if it measured what it was asked to."""
        try:
            source = answer["schedule_source"]
            answer |= {name: float(answer[name]) for name in ("median_us", "p10_us")}
            self._place.expect(answer)
        except (KeyError, TypeError, ValueError) as problem:
            raise Unavailable(f"`tilewright bench --json` printed no result: {type(problem).__name__}: {problem}") from None
        if source != SOURCES[self._way]:
            raise Unavailable(f"the schedule came from `{source}` and not from `{SOURCES[self._way]}`")
        return answer


def first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")
