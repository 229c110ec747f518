"""NVIDIA's compute-sanitizer on tuned kernels: accesses out of bounds (memcheck) and races in shared memory (racecheck).

Both make a kernel many times slower, so batches and reductions are shortened; blocks, threads, tiles and what is shared stay
those of the schedule. Where the schedule is refused at such sizes, the kernel runs at its own.
"""

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from contender import ROOT, first_line, program_arguments
from place import Place
from row import Row
from workload import Workload

TOOLS = ("memcheck", "racecheck")
SECONDS = 120  # for one kernel under one tool
FOUND = 99  # the status by which the tool says that it found something
REFUSED = 1  # the status by which `tilewright` refuses a schedule

# Sizes over which an operator repeats what it does.
SHORTER: dict[str, dict[str, int]] = {
    "gemm": {"K": 256},
    "bmm": {"B": 60},
    "conv1d": {"C": 32},
    "conv2d": {"C": 32},
    "conv3d": {"C": 8},
    "dilated_conv2d": {"C": 32},
    "group_conv2d": {"N": 4},
    "conv_transpose2d": {"C": 32},
    "1LUT": {"E": 10_000},
    "2LUT": {"E1": 10_000, "E2": 10_000},
}


@dataclass(frozen=True)
class Finding:
    """What a tool said about a kernel."""

    workload: str
    tool: str
    verdict: str  # "clean", "12 errors", or why nothing can be said
    shortened: bool

    def is_clean(self) -> bool:
        return self.verdict == "clean"


def find_tool() -> Path | None:
    """On the path, or in a toolkit."""
    if found := shutil.which("compute-sanitizer"):
        return Path(found)
    return next(iter(sorted(Path("/usr/local").glob("cuda*/bin/compute-sanitizer"))), None)


def shortened(work: Workload) -> dict[str, int]:
    limits = SHORTER.get(work.operator, {})
    return {size: min(value, limits.get(size, value)) for size, value in work.sizes.items()}


@dataclass(frozen=True)
class Sanitizer:
    tool: Path
    command: Path  # tilewright
    place: Place

    def check(self, row: Row) -> list[Finding]:
        with tempfile.TemporaryDirectory() as scratch:
            schedule = Path(scratch) / "tuned.sched"
            schedule.write_text(row.tuning.schedule)
            return [self.under(name, row.workload, schedule) for name in TOOLS]

    def under(self, name: str, work: Workload, schedule: Path) -> Finding:
        short = shortened(work)
        status, said = self.run(name, work, short, schedule)
        if status == REFUSED and short != work.sizes:
            short = work.sizes
            status, said = self.run(name, work, short, schedule)
        return Finding(work.name, name, verdict(status, said), short != work.sizes)

    def run(self, name: str, work: Workload, sizes: dict[str, int], schedule: Path) -> tuple[int | None, str]:
        kernel = [str(self.command), "run", *program_arguments(work, sizes), *self.place.arguments(), "--schedule", str(schedule)]
        watched = [str(self.tool), "--tool", name, "--error-exitcode", str(FOUND), *kernel]
        try:
            done = subprocess.run(watched, cwd=ROOT, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return None, f"took over {SECONDS} s"
        return done.returncode, done.stdout + done.stderr


def verdict(status: int | None, said: str) -> str:
    if status is None:
        return said
    summary = re.search(r"(\d+) (?:errors?|hazards? displayed)", said[max(said.find("SUMMARY"), 0) :])
    if status == 0 and summary and int(summary[1]) == 0:
        return "clean"
    if summary and int(summary[1]):
        return summary[0]
    own = "\n".join(line for line in said.splitlines() if not line.startswith("="))
    return f"ended with status {status}: {first_line(own)}"


def check_all(
    rows: Sequence[Row], sanitizer: Sanitizer, may_go_on: Callable[[], bool], say: Callable[[str], None]
) -> list[Finding]:
    findings: list[Finding] = []
    for row in rows:
        if not row.tuning or not row.tuning.schedule:
            say(f"{row.workload.title}: was not tuned")
            continue
        if not may_go_on():
            say(f"{row.workload.title}: there is no time left")
            continue
        for finding in sanitizer.check(row):
            findings.append(finding)
            say(f"{row.workload.title}: {finding.tool}: {finding.verdict}")
    return findings
