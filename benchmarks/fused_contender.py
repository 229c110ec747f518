"""Who takes part in a row of fused.py: PyTorch, eager and compiled, in one process for each place, and ours with the same inputs.

Every result is compared with that of the PyTorch function in float64; fused/rows.py says how far it may be from that.
"""

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from contender import BENCHMARKS, BURST_SECONDS, PREPARE_SECONDS, first_line, peer_environment
from fused.program import Program
from gpu_peer import OPEN_SECONDS, Libraries, usable
from gpu_tilewright import GpuTilewright
from place import Device, Place
from worker import Unavailable, Worker

WORKER = BENCHMARKS / "fused_worker.py"


class Torch(Libraries):
    """The process of one place. It is stopped while others are measured, for its threads may spin while they wait."""

    def __init__(self, python: Path, place: Place):
        super().__init__(python, 0)
        target = place.target if isinstance(place, Device) else "cpu"
        self._command = [python, WORKER, target, str(place.threads or 0)]
        self._place = place

    def ask(self, question: dict, limit: float) -> dict:
        self.open()
        self._worker.go_on()
        try:
            return usable(self._worker.ask(question, limit))
        finally:
            if self._worker.is_alive():
                self._worker.stop()

    def _opened(self) -> dict:
        settings = peer_environment(self._place.threads) if self._place.threads else {}
        try:
            self._worker = Worker(self._command, settings, self._place.pin)
        except OSError as problem:
            raise Unavailable(f"{self._command[0]} does not start: {problem.strerror}") from None
        about = usable(self._worker.answer(OPEN_SECONDS))["ready"]
        self._worker.stop()
        return about


class TorchPeer:
    """PyTorch in one of its ways: eager, compiled, or compiled with CUDA graphs."""

    def __init__(self, name: str, program: Program, torch: Torch):
        self.name = name
        self.about: dict = {}
        self._program = program
        self._torch = torch

    def start(self):
        self._torch.open()

    def prepare(self):
        self.about = self._torch.ask({"prepare": self.name, "program": self._program.name}, PREPARE_SECONDS)["ready"]

    def measure(self, seconds: float) -> dict:
        return self._torch.ask({"measure": self.name, "program": self._program.name, "seconds": seconds}, BURST_SECONDS)

    def close(self):
        self._torch.forget()


@dataclass
class InputFiles:
    """The inputs of one program at a time, as arguments of our command."""

    torch: Torch
    folder: Path
    _name: str = ""
    _arguments: list[str] = field(default_factory=list)

    def arguments(self, program: Program) -> list[str]:
        """Without PyTorch a seed makes the tensors."""
        if self._name != program.name:
            self._name = program.name
            self._arguments = [word for pair in self._values(program).items() for word in ("--in", f"{pair[0]}={pair[1]}")]
        return self._arguments

    def _values(self, program: Program) -> dict[str, str | float]:
        shutil.rmtree(self.folder, ignore_errors=True)
        try:
            files = self.torch.ask({"write": program.name, "folder": str(self.folder)}, PREPARE_SECONDS)["files"]
        except Unavailable:
            files = {}
        return files | program.scalars


class FusedTilewright(GpuTilewright):
    """Ours, with the inputs that PyTorch gets, and compared with what it computes in float64."""

    def __init__(self, *arguments, inputs: list[str], torch: Torch, folder: Path):
        super().__init__(*arguments, python=Path())
        self._inputs = inputs
        self._torch = torch
        self._folder = folder

    def prepare(self):
        shutil.rmtree(self._folder, ignore_errors=True)
        command = [*self._arguments("run", self._workload.sizes), "--out", str(self._folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PREPARE_SECONDS, **self._where())
        if done.returncode != 0:
            raise Unavailable(f"`tilewright run` ended with status {done.returncode}: {first_line(done.stderr)}")
        self.about |= self._compared()
        if isinstance(self._place, Device) and (count := self._kernels()):
            self.about["kernels"] = count

    def _compared(self) -> dict:
        try:
            self._torch.open()
        except Unavailable as problem:
            return {"unchecked": str(problem)}
        question = {"compare": self._workload.name, "folder": str(self._folder)}
        return self._torch.ask(question, PREPARE_SECONDS)["ready"]

    def _arguments(self, command: str, sizes: dict[str, int]) -> list[str]:
        return [*super()._arguments(command, sizes), *self._inputs]
