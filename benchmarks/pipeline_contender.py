"""Who takes part in a pipeline's row: Halide with one of its schedules, and ours with the same inputs.

All results of a row are files of one folder. Each is compared with that of Halide's expert schedule, which is prepared first.
"""

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from contender import BENCHMARKS, PREPARE_SECONDS, Peer, Tilewright, first_line
from families.pipelines import EXPERT, Pipeline
from place import Placement
from worker import Unavailable

WORKER = BENCHMARKS / "halide_worker.py"


@dataclass(frozen=True)
class Exchange:
    """A folder with the inputs and results of one pipeline, and the Python that has Halide and NumPy."""

    python: Path
    folder: Path

    def write_inputs(self, work: Pipeline) -> list[str]:
        """Arguments for our commands; without Halide's Python a seed makes the tensors."""
        files = self._ask("inputs", work.name, json.dumps(work.sizes), str(self.folder)) if self.python.exists() else {}
        return [word for name, value in (files | work.scalars).items() for word in ("--in", f"{name}={value}")]

    def compared(self, work: Pipeline, result: Path) -> dict:
        """How far a result is from the expert's."""
        expert = self.folder / f"{EXPERT}.npy"
        if not expert.exists():
            return {"unchecked": "there is no result of Halide to compare with"}
        answer = self._ask("compare", work.name, str(result), str(expert))
        if "unavailable" in answer:
            raise Unavailable(answer["unavailable"])
        return answer

    def _ask(self, *arguments: str) -> dict:
        done = subprocess.run([self.python, WORKER, *arguments], capture_output=True, text=True, timeout=PREPARE_SECONDS)
        if done.returncode != 0:
            raise Unavailable(f"{WORKER.name} {arguments[0]}: {last_line(done.stderr)}")
        return json.loads(done.stdout)


class Halide(Peer):
    """Halide's JIT compiler, by the expert schedule or by an autoscheduler; `name` says which."""

    def __init__(self, name: str, work: Pipeline, placement: Placement, folder: Path, exchange: Exchange):
        super().__init__(name, work, placement, folder)
        self._exchange = exchange

    def prepare(self):
        super().prepare()
        if self.name != EXPERT:
            self.about |= self._exchange.compared(self._workload, self._exchange.folder / f"{self.name}.npy")

    def _arguments(self) -> list[str | Path]:
        sizes = json.dumps(self._workload.sizes)
        return [WORKER, "serve", self._workload.name, sizes, self._exchange.folder, self.name, str(self._placement.threads)]


class PipelineTilewright(Tilewright):
    """Ours, with the inputs that Halide gets, and compared with Halide's result."""

    def __init__(self, *arguments, inputs: list[str], exchange: Exchange):
        super().__init__(*arguments, python=exchange.python)
        self._inputs = inputs
        self._exchange = exchange

    def prepare(self):
        folder = self._exchange.folder / self.name.replace(", ", "_")
        command = [*self._arguments("run", self._workload.sizes), "--out", str(folder)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PREPARE_SECONDS, **self._where())
        if done.returncode != 0:
            raise Unavailable(f"`tilewright run` ended with status {done.returncode}: {first_line(done.stderr)}")
        (result,) = folder.glob("*.npy")
        self.about |= self._exchange.compared(self._workload, result)

    def _arguments(self, command: str, sizes: dict[str, int]) -> list[str]:
        return [*super()._arguments(command, sizes), *self._inputs]


def last_line(text: str) -> str:
    return first_line("\n".join(reversed(text.splitlines())))
