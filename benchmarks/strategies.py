#!/usr/bin/env python3
"""Compares the strategies of `tilewright tune`: how good is the best schedule after so many trials, over several seeds.

    python3 benchmarks/strategies.py --out strategies [--strategies opevo,random,genetic] [--seeds 5] [--trials 200]
    python3 benchmarks/strategies.py --out strategies --from strategies/curves.json      # tables and pictures again

Every search has a fresh cache, so that none starts from what another one found. Strategies take turns within a seed, so that a
stretch of noise meets all of them. Writes curves.json, one picture a workload and one of their mean into --out, and prints
the trials to 80, 90 and 95 % of the best known. Searches that curves.json has already are not repeated.

The pictures need matplotlib; without it the rest is still done. Its environment:

    python3 -m venv .peers/venv-plot && .peers/venv-plot/bin/pip install -r benchmarks/requirements-plot.txt

Read next: curves.py.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

import table
from contender import ROOT, first_line, program_arguments
from curves import Band, Search, bands, best_known, best_so_far, mean_bands, reached
from families import CPU, batch
from workload import Workload

SMALL_BATCH = batch.bmm(b=60, n=128, k=128, m=64)
DEFAULT_WORKLOADS = f"gemm_512,conv2d_yolo_c13,{SMALL_BATCH.name}"
SHARES = (0.8, 0.9, 0.95)
SECONDS_A_TRIAL = 10  # at most, on average


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare the strategies of `tilewright tune` trial by trial.")
    option = parser.add_argument
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    option("--strategies", default="opevo,random,genetic", metavar="NAMES", help="default: %(default)s")
    option("--workloads", default=DEFAULT_WORKLOADS, metavar="NAMES", help="default: %(default)s; cpu.py --list shows more")
    option("--seeds", type=int, default=5, metavar="N", help="seeds 1 to N (default: %(default)s)")
    option("--trials", type=int, default=200, metavar="N", help="candidates of a search (default: %(default)s)")
    option("--starts", type=int, metavar="N", help="points of the cost model to start from; 0 for a blind start (default: the command's)")
    option("--threads", type=int, metavar="N", help="threads of the kernels (default: as many as there are cores)")
    option("--out", type=Path, required=True, metavar="DIR", help="where the curves and the pictures go")
    option("--from", type=Path, dest="source", metavar="FILE", help="measure nothing: take the curves of this file")
    option("--format", choices=["svg", "png"], default="svg", help="of the pictures (default: %(default)s)")
    option("--tilewright", type=Path, default=target / "release/tilewright", metavar="PATH", help="the command to measure")
    options = parser.parse_args()
    try:
        options.work = [work for name in options.workloads.split(",") for work in workloads(name)]
    except ValueError as problem:
        parser.error(str(problem))
    return options


def workloads(name: str) -> Sequence[Workload]:
    return [SMALL_BATCH] if name == SMALL_BATCH.name else CPU.selected([name])


def search(work: Workload, strategy: str, seed: int, options: argparse.Namespace) -> Search:
    with tempfile.TemporaryDirectory() as scratch:
        command = [str(options.tilewright.absolute()), "tune", *program_arguments(work), "--strategy", strategy]
        command += ["--seed", str(seed), "--trials", str(options.trials), "--cache", f"{scratch}/cache.sqlite", "--json"]
        command += ["--threads", str(options.threads)] if options.threads else []
        command += ["--starts", str(options.starts)] if options.starts is not None else []
        limit = 60 + options.trials * SECONDS_A_TRIAL
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\nended with status {done.returncode}: {first_line(done.stderr)}")
    curve = best_so_far([json.loads(line) for line in done.stdout.splitlines()])
    if not curve:
        sys.exit(f"{' '.join(command)}\nmeasured nothing")
    return Search(work.name, strategy, seed, curve)


def measure(options: argparse.Namespace, known: list[Search], keep: Callable[[list[Search]], None]) -> list[Search]:
    """All searches that are asked for, with those that are known; each is kept as soon as it is there."""
    have = {(one.workload, one.strategy, one.seed) for one in known}
    names = options.strategies.split(",")
    asked = [(work, name, seed) for work in options.work for seed in range(1, options.seeds + 1) for name in names]
    missing = [(work, name, seed) for work, name, seed in asked if (work.name, name, seed) not in have]
    searches = list(known)
    for number, (work, name, seed) in enumerate(missing, start=1):
        found = search(work, name, seed, options)
        searches.append(found)
        keep(searches)
        print(f"{number} of {len(missing)}: {work.name}, {name}, seed {seed}: {1 / found.best[-1]:.2f} times as fast as the default", file=sys.stderr)
    return searches


def read(path: Path, trials: int | None) -> list[Search]:
    file = json.loads(path.read_text())
    if trials is not None and file["trials"] != trials:
        sys.exit(f"{path} has searches of {file['trials']} trials; go on with the same, or take another --out")
    return [Search(**fields) for fields in file["searches"]]


def by_workload(searches: list[Search]) -> dict[str, list[Search]]:
    names = dict.fromkeys(one.workload for one in searches)
    return {name: [one for one in searches if one.workload == name] for name in names}


def report(groups: dict[str, list[Search]]) -> str:
    """Trials to reach each share of the best known: mean ± standard deviation over the seeds."""
    heading = ["work", "strategy", "best, times the default", *(f"trials to {share:.0%}" for share in SHARES)]
    lines = []
    for work, searches in groups.items():
        best = best_known(searches)
        for strategy in dict.fromkeys(one.strategy for one in searches):
            those = [one for one in searches if one.strategy == strategy]
            cells = [trials_cell(those, best, share) for share in SHARES]
            lines.append([work, strategy, f"{1 / best_known(those):.2f}", *cells])
    return table.markdown(heading, lines)


def trials_cell(searches: list[Search], best: float, share: float) -> str:
    found = reached(searches, best, share)
    if found.mean is None:
        return f"- (0 of {found.searches})"
    deviation = f" ± {found.deviation:.0f}" if found.deviation is not None else ""
    return f"{found.mean:.0f}{deviation}" + (f" ({found.reached} of {found.searches})" if found.reached < found.searches else "")


def draw(groups: dict[str, list[Search]], folder: Path, ending: str):
    try:
        import plot
    except ImportError as problem:
        print(f"no pictures: {problem}; benchmarks/requirements-plot.txt says what they need", file=sys.stderr)
        return
    each: dict[str, dict[str, Band]] = {work: bands(searches) for work, searches in groups.items()}
    for work, found in each.items():
        plot.draw(folder / f"{work}.{ending}", work, found)
    plot.draw(folder / f"mean.{ending}", f"mean over {len(each)} workloads", mean_bands(list(each.values())))


def main():
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    file = options.out / "curves.json"

    def keep(searches: list[Search]):
        content = {"trials": options.trials, "searches": [asdict(one) for one in searches]}
        file.write_text(json.dumps(content) + "\n")

    if options.source:
        searches = read(options.source, trials=None)
    else:
        searches = measure(options, read(file, options.trials) if file.exists() else [], keep)
    groups = by_workload(searches)
    draw(groups, options.out, options.format)
    print(report(groups))


if __name__ == "__main__":
    sys.exit(main())
