"""A run over many workloads, on the CPU or on a GPU: every one is tuned, then measured beside its peers, and written down at once.

What differs between the two, who takes part and what the tables look like, is in cpu.py and gpu.py.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from contender import ROOT, Contender, own_name
from place import Place
from progress import Progress
from rounds import Plan, Record, interleave
from row import Row, from_json, to_json
from suite import Suite
from tuning import Tuner, Tuning
from worker import Unavailable
from workload import Way, Workload


def say(text: str):
    print(text, file=sys.stderr, flush=True)


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def seconds(text: str) -> float:
    value = float(text)
    if value < 0:
        raise argparse.ArgumentTypeError("must not be negative")
    return value


def add_options(parser: argparse.ArgumentParser, tune: int):
    """Those that both runs have; `tune` is how long a search takes where nothing is said."""
    option = parser.add_argument
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    option("--list", action="store_true", help="list the workloads and stop")
    option("--only", metavar="NAMES", help="families, operators or workloads, with commas between; --list shows them")
    option("--tune", type=seconds, default=tune, metavar="S", help="seconds of tuning a row; 0 for none (default: %(default)s)")
    option("--tune-cache", type=Path, metavar="DIR", help="keep what tuning finds here, and use what is there")
    option("--retune", action="store_true", help="tune again where --tune-cache has a result")
    option("--rounds", type=positive, default=5, metavar="N", help="bursts of each contender (default: %(default)s)")
    option("--json", type=Path, metavar="FILE", help="write all raw results here")
    option("--resume", action="store_true", help="keep the rows that --json has already, and measure the others")
    option("--tilewright", type=Path, default=target / "release/tilewright", metavar="PATH", help="the command to measure")


def kept(options: argparse.Namespace, suite: Suite, settings: Sequence[str]) -> list[Row]:
    """The rows of an earlier run that this one goes on from; what is named in `settings` must be the same."""
    if not options.resume:
        return []
    if options.json is None:
        raise ValueError("--resume needs --json FILE, the file to go on from")
    if not options.json.exists():
        return []
    file = json.loads(options.json.read_text())
    for setting in settings:
        if file[setting] != getattr(options, setting):
            raise ValueError(f"{options.json} was measured with --{setting} {file[setting]}; go on with the same")
    return stored_rows(file, suite)


def stored_rows(file: dict, suite: Suite) -> list[Row]:
    """The rows of a file whose workloads are still the same."""
    known = {work.name: work for work in suite.workloads}
    fine = [fields for fields in file["results"] if fields["workload"] in known]
    return [from_json(fields, suite) for fields in fine if known[fields["workload"]].sizes == fields["sizes"]]


def replace_file(path: Path, text: str):
    """In one step, so that an interrupted run leaves a whole file."""
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text)
    unfinished.replace(path)


@contextmanager
def cache_folder(options: argparse.Namespace) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.tune_cache.absolute() if options.tune_cache else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        yield folder


def tune(work: Workload, place: Place, tuner: Tuner) -> Tuning:
    found = tuner.known(work, place)
    when = "tuned before" if found else "tuned"
    if found is None:
        say(f"  tuning for {tuner.seconds:g} s")
        found = tuner.tune(work, place)
    best = f"best {found.improvements[-1][1]:.0f} µs, " if found.improvements else ""
    say(f"  {when}: {best}{found.trials} trials in {found.seconds:.0f} s, {found.rate():.1f}/s")
    return found


@dataclass
class Campaign:
    """What to measure with, and how far it has come."""

    tuner: Tuner | None
    plan: Plan
    contenders: Callable[[Workload, Place, Path | None], Sequence[Contender]]  # the path is the cache, where tuning found something
    guess: Callable[[Workload, Place], float]  # the seconds of a row
    about: dict  # what is written before the results
    file: Path | None
    within: float = float("inf")  # seconds after which no row begins
    finished: Callable[[Sequence[Row]], None] = lambda rows: None  # called with all rows whenever there is another
    began: float = field(default_factory=time.monotonic)

    def run(self, asked: Sequence[tuple[Workload, Place]], before: Sequence[Row]) -> list[Row]:
        """All rows, those from before first; interrupted, those so far."""
        rows = list(before)
        have = {(row.workload.name, row.threads) for row in rows}
        missing = [(work, place) for work, place in asked if (work.name, place.threads) not in have]
        progress = Progress([self.guess(work, place) for work, place in missing])
        try:
            for number, (work, place) in enumerate(missing):
                if self.spent() + self.guess(work, place) > self.within:
                    say(f"{len(missing) - number} rows are left out: there is no time for {work.title} within {self.within:g} s")
                    break
                on = f", {place.threads} threads" if place.threads else ""
                say(f"{progress}: {work.title}{on} (load {os.getloadavg()[0]:.1f})")
                rows.append(self.measure(work, place))
                progress.step()
                self.write(rows)
        except KeyboardInterrupt:
            say("interrupted; what was measured so far:")
        return rows

    def measure(self, work: Workload, place: Place) -> Row:
        found, failed = None, None
        if self.tuner:
            try:
                found = tune(work, place, self.tuner)
            except Unavailable as problem:
                failed = Record(own_name(Way.TUNED), self.plan.statistic, unavailable=str(problem))
                say(f"  {failed.name}: {problem}")
        cache = self.tuner.cache(work, place) if found else None
        records = interleave(self.contenders(work, place, cache), self.plan, say)
        own = [failed] if failed else []
        return Row(work, place.threads, {record.name: record for record in [*own, *records]}, found)

    def spent(self) -> float:
        return time.monotonic() - self.began

    def write(self, rows: Sequence[Row]):
        if self.file:
            replace_file(self.file, json.dumps(self.about | {"results": [to_json(row) for row in rows]}, indent=1) + "\n")
        self.finished(rows)
