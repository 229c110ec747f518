"""A library on a GPU as a contender: asked of the one process that serves all of them, gpu_worker.py."""

from collections.abc import Sequence
from pathlib import Path

from contender import BENCHMARKS, BURST_SECONDS, PREPARE_SECONDS
from worker import Unavailable, Worker
from workload import Workload

OPEN_SECONDS = 120
FORGET_SECONDS = 60


class Libraries:
    """The process; it is started when it is first needed, and again after it died."""

    def __init__(self, python: Path, device: int):
        self._command = [python, BENCHMARKS / "gpu_worker.py", str(device)]
        self._worker: Worker | None = None
        self._about: dict = {}
        self._missing: str | None = None  # why it cannot be opened at all

    def about(self) -> dict:
        """The device and the versions, or why there are no libraries."""
        try:
            self.open()
        except Unavailable as problem:
            return {"unavailable": str(problem)}
        return self._about

    def open(self):
        if self._missing:
            raise Unavailable(self._missing)
        if self._worker and self._worker.is_alive():
            return
        self.close()
        try:
            self._about = self._opened()
        except Unavailable as problem:
            self._missing = str(problem)
            raise

    def _opened(self) -> dict:
        try:
            self._worker = Worker(self._command, {}, lambda: None)
        except OSError as problem:
            raise Unavailable(f"{self._command[0]} does not start: {problem.strerror}") from None
        return usable(self._worker.answer(OPEN_SECONDS))["ready"]

    def ask(self, question: dict, limit: float) -> dict:
        self.open()
        return usable(self._worker.ask(question, limit))

    def forget(self):
        """Frees what a row took, where there is anything."""
        if self._worker and self._worker.is_alive():
            try:
                self.ask({"forget": "all"}, FORGET_SECONDS)
            except Unavailable:
                self.close()

    def close(self):
        if self._worker:
            self._worker.close()
            self._worker = None


def usable(message: dict) -> dict:
    if "unavailable" in message:
        raise Unavailable(message["unavailable"])
    return message


class GpuPeer:
    def __init__(self, name: str, workload: Workload, libraries: Libraries, left_out: Sequence[str] = ()):
        self.name = name
        self.about: dict = {}
        self._workload = workload
        self._libraries = libraries
        self._left_out = name in left_out

    def start(self):
        if self._left_out:
            raise Unavailable("left out on request")

    def prepare(self):
        work = self._workload
        question = {"prepare": self.name, "operator": work.operator, "sizes": work.sizes, "compared": work.compared_sizes()}
        self.about = self._libraries.ask(question, PREPARE_SECONDS)["ready"]

    def measure(self, seconds: float) -> dict:
        return self._libraries.ask({"measure": self.name, "seconds": seconds}, BURST_SECONDS)

    def close(self):
        self._libraries.forget()
