"""Whoever takes part in a measurement: a peer's worker process, or the `tilewright` command.

A contender is prepared, then asked for one burst a round, then closed. What goes wrong is an `Unavailable` with its reason,
which the tables show; it never ends the run.
"""

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from workload import Workload

BENCHMARKS = Path(__file__).resolve().parent
ROOT = BENCHMARKS.parent
PREPARE_SECONDS = 300
BURST_SECONDS = 120

# PyTorch has an environment of its own: it brings its own OpenMP and MKL.
ENVIRONMENTS = {
    "mkl": "venv",
    "mkl_packed": "venv",
    "openblas": "venv",
    "pytorch": "venv-torch",
    "onnxruntime": "venv",
    "openvino": "venv",
    "jax": "venv",
}


class Unavailable(Exception):
    """Why a contender has no number."""


@dataclass(frozen=True)
class Placement:
    """The threads that a contender may use, and the processors for them; the same for all contenders of a row."""

    threads: int
    processors: tuple[int, ...]

    def pin(self):
        os.sched_setaffinity(0, self.processors)


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
        self._python = folder / ENVIRONMENTS[name] / "bin" / "python"
        self._process: subprocess.Popen | None = None
        self._unread = b""

    def start(self):
        """Starts the worker, and does not wait for it."""
        if not self._python.exists():
            raise Unavailable(f"not installed: no {self._python}; scripts/peers.sh installs the peers")
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [self._python, BENCHMARKS / "peer_worker.py", self.name, self._workload.name, str(self._placement.threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=os.environ | peer_environment(self._placement.threads),
            preexec_fn=self._placement.pin,
        )

    def prepare(self):
        message = self._answer(PREPARE_SECONDS)
        if "unavailable" in message:
            raise Unavailable(message["unavailable"])
        self.about = message["ready"]
        self._process.send_signal(signal.SIGSTOP)

    def measure(self, seconds: float) -> dict:
        self._process.send_signal(signal.SIGCONT)
        try:
            self._process.stdin.write(json.dumps({"seconds": seconds}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Unavailable(self._last_words()) from None
        message = self._answer(BURST_SECONDS)
        self._process.send_signal(signal.SIGSTOP)
        return message

    def close(self):
        if self._process is None:
            return
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def _answer(self, limit: float) -> dict:
        """The worker's next line."""
        deadline = time.monotonic() + limit
        output = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            readable, _, _ = select.select([output], [], [], max(0, deadline - time.monotonic()))
            if not readable:
                raise Unavailable(f"no answer within {limit:.0f} s")
            received = os.read(output, 1 << 16)
            if not received:
                raise Unavailable(self._last_words())
            self._unread += received
        line, self._unread = self._unread.split(b"\n", 1)
        return json.loads(line)

    def _last_words(self) -> str:
        status = self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f"the worker ended with status {status}" + (f": {said[-1]}" if said else "")


def peer_environment(threads: int) -> dict[str, str]:
    count = str(threads)
    never = str(1 << 30)
    settings = {
        "OMP_NUM_THREADS": count,
        "MKL_NUM_THREADS": count,
        "OPENBLAS_NUM_THREADS": count,
        "JAX_PLATFORMS": "cpu",
        # Freed memory stays with the process: a library that makes a new result at every call does not fault its pages in again.
        "MALLOC_MMAP_THRESHOLD_": never,
        "MALLOC_TRIM_THRESHOLD_": never,
    }
    if threads == 1:
        settings["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false"
    return settings


class Tilewright:
    """`tilewright bench`, run anew in each round: every round compiles again, and counts only what the command timed."""

    def __init__(
        self,
        name: str,
        workload: Workload,
        placement: Placement,
        command: Path,
        extra: list[str],  # arguments of `bench`
        schedule: str | None,  # None for the default schedule
    ):
        self.name = name
        self.about: dict = {"schedule": schedule or "default"}
        self._placement = placement
        self._schedule = schedule
        sizes = ",".join(f"{size}={value}" for size, value in workload.sizes.items())
        self._command = [str(command), "bench", workload.program, "--sizes", sizes, "--threads", str(placement.threads)]
        self._command += ["--schedule", schedule] if schedule else []
        self._command += ["--json", *extra]

    def start(self):
        if not Path(self._command[0]).exists():
            raise Unavailable(f"no {self._command[0]}; `make build` makes it")
        if self._schedule and not (ROOT / self._schedule).exists():
            raise Unavailable(f"no {self._schedule}")

    def prepare(self):
        pass

    def measure(self, seconds: float) -> dict:
        try:
            done = subprocess.run(
                self._command,
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=BURST_SECONDS,
                # No cache: what is not given by a file is the default schedule.
                env=os.environ | {"XDG_DATA_HOME": "/nonexistent"},
                preexec_fn=self._placement.pin,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"`tilewright bench` took over {BURST_SECONDS} s") from None
        except OSError as problem:
            raise Unavailable(f"{self._command[0]} does not start: {problem.strerror}") from None
        if done.returncode != 0:
            raise Unavailable(f"`tilewright bench` ended with status {done.returncode}: {first_line(done.stderr)}")
        return self._checked(done.stdout)

    def close(self):
        pass

    def _checked(self, text: str) -> dict:
        """The command's answer, if it measured what it was asked to."""
        try:
            answer = json.loads(text)
            threads, source = answer["threads"], answer["schedule_source"]
            answer |= {name: float(answer[name]) for name in ("median_us", "p10_us")}
        except (ValueError, KeyError, TypeError) as problem:
            raise Unavailable(f"`tilewright bench --json` printed no result: {type(problem).__name__}: {problem}") from None
        wanted = "file" if self._schedule else "default"
        if source != wanted:
            raise Unavailable(f"the schedule came from `{source}` and not from `{wanted}`")
        if threads != self._placement.threads:
            raise Unavailable(f"ran on {threads} threads and not on {self._placement.threads}")
        return answer


def first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")
