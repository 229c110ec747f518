"""`tilewright tune` for one workload: what it found, how long it took, and where it keeps the schedule.

Every workload has, for each thread count or device, a cache of its own, so that no search starts from what another one found
and its seconds mean the same in any order. Beside the cache lies what is known of the search, so that a later run need not
search again.
"""

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from contender import ROOT, first_line, program_arguments, schedule_file
from place import Place
from worker import Unavailable
from workload import Workload

GRACE_SECONDS = 300  # for compiling, the last comparison, and a machine that is busy


@dataclass(frozen=True)
class Tuning:
    seconds: float  # from the start to the answer
    trials: int
    failures: dict[str, int]  # candidates that could not be used, by how they ended
    improvements: list[tuple[float, float]]  # seconds since the start, and the best time in µs from then on
    schedule: str = ""  # what was found

    def rate(self) -> float:
        return self.trials / self.seconds

    def seconds_until(self, time_us: float) -> float | None:
        """When the search first had something that takes no longer than this."""
        return next((seconds for seconds, best in self.improvements if best <= time_us), None)


@dataclass(frozen=True)
class Tuner:
    command: Path
    folder: Path  # of the caches
    seconds: float
    again: bool  # even where a cache is there
    inputs: Callable[[Workload], list[str]] = lambda work: []  # arguments that give inputs, where a seed will not do

    def cache(self, work: Workload, place: Place) -> Path:
        return self.folder / f"{work.name}-{place.label()}.sqlite"

    def known(self, work: Workload, place: Place) -> Tuning | None:
        """What an earlier search of the same came to, if it is to be used."""
        cache = self.cache(work, place)
        notes = cache.with_suffix(".json")
        if self.again or not cache.exists() or not notes.exists():
            return None
        file = json.loads(notes.read_text())
        return recorded(file["tuning"]) if file["search"] == self.fingerprint(work) else None

    def tune(self, work: Workload, place: Place) -> Tuning:
        """A search from nothing, which replaces an earlier one."""
        cache = self.cache(work, place)
        for old in self.folder.glob(f"{cache.stem}.*"):
            old.unlink()
        found = search(self.arguments(work, place, cache), place, self.seconds + GRACE_SECONDS)
        notes = {"search": self.fingerprint(work), "tuning": asdict(found)}
        cache.with_suffix(".json").write_text(json.dumps(notes) + "\n")
        schedule_file(cache).write_text(found.schedule)
        return found

    def fingerprint(self, work: Workload) -> dict:
        """What a search is: another text, other sizes or another time make it another one."""
        file = work.program.partition(":")[0]
        return {"program": (ROOT / file).read_text(), "sizes": work.sizes, "seconds": self.seconds}

    def arguments(self, work: Workload, place: Place, cache: Path) -> list[str]:
        limits = ["--time", f"{self.seconds:g}s", *place.arguments(), *self.inputs(work)]
        return [str(self.command), "tune", *program_arguments(work), *limits, "--cache", str(cache), "--json"]


def recorded(fields: dict) -> Tuning:
    return Tuning(**fields | {"improvements": [tuple(pair) for pair in fields["improvements"]]})


def search(arguments: list[str], place: Place, limit: float) -> Tuning:
    try:
        done = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, timeout=limit, preexec_fn=place.pin)
    except subprocess.TimeoutExpired:
        raise Unavailable(f"`tilewright tune` took over {limit:.0f} s") from None
    except OSError as problem:
        raise Unavailable(f"{arguments[0]} does not start: {os.strerror(problem.errno)}") from None
    if done.returncode != 0:
        raise Unavailable(f"`tilewright tune` ended with status {done.returncode}: {first_line(done.stderr)}")
    return read([json.loads(line) for line in done.stdout.splitlines()])


def read(events: list[dict]) -> Tuning:
    """A search by its events, as `tilewright tune --json` prints them."""
    improvements: list[tuple[float, float]] = []
    for event in events:
        best = event.get("best_us")
        if event["event"] == "trial" and best is not None and (not improvements or best < improvements[-1][1]):
            improvements.append((event["seconds"], best))
    done = next((event for event in events if event["event"] == "done"), None)
    if done is None:
        raise Unavailable("`tilewright tune --json` printed no result")
    return Tuning(done["seconds"], done["trials"], done["failures"], improvements, done.get("schedule", ""))
