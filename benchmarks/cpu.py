#!/usr/bin/env python3
"""Measures Tilewright on the CPU against the libraries that do the same work, side by side in one run, fp32.

    python3 benchmarks/cpu.py [--only gemm,softmax] [--threads 1,all] [--tune 60] [--rounds 5] [--json results.json [--resume]]

Every workload is tuned, then measured at once beside its peers. Prints tables in Markdown; progress goes to standard error. The
peers are installed by scripts/peers.sh. What is missing, be it a peer, a schedule or the command itself, is shown as `-` with the
reason, and the rest is measured. All of it takes more than an hour: --resume goes on where a run with the same --json ended.

Needs only the standard library. Read next: families/ for what is measured, rounds.py for how, contender.py for by whom.
"""

import argparse
import json
import os
import shlex
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

import machine
import table
from contender import ROOT, Contender, Peer, Placement, Tilewright, Unavailable, own_name
from families import WORKLOADS, selected
from progress import Progress, expected_seconds
from rounds import Plan, Record, interleave
from row import Row, from_json, to_json
from tuning import Tuner, Tuning
from workload import Way, Workload

SETTINGS = ("rounds", "seconds", "statistic", "tune")  # what rows of one file have in common


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Tilewright on the CPU against its peers, interleaved in one run.")
    option = parser.add_argument
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    peers = Path(os.environ.get("PEERS_DIR", ROOT / ".peers"))
    option("--list", action="store_true", help="list the workloads and stop")
    option("--only", metavar="NAMES", help="families, operators or workloads, with commas between; --list shows them")
    option("--threads", default="all", metavar="N,…", help="thread counts; `all` is one a core (default: %(default)s)")
    option("--tune", type=seconds, default=60, metavar="S", help="seconds of tuning a row; 0 for none (default: %(default)s)")
    option("--tune-cache", type=Path, metavar="DIR", help="keep what tuning finds here, and use what is there")
    option("--retune", action="store_true", help="tune again where --tune-cache has a result")
    option("--rounds", type=positive, default=5, metavar="N", help="bursts of each contender (default: %(default)s)")
    option("--seconds", type=float, default=0.3, metavar="S", help="length of a peer's burst (default: %(default)s)")
    option("--statistic", choices=["median", "p10"], default="median", help="what stands for a burst (default: %(default)s)")
    option("--json", type=Path, metavar="FILE", help="write all raw results here")
    option("--resume", action="store_true", help="keep the rows that --json has already, and measure the others")
    option("--peers", type=Path, default=peers, metavar="DIR", help="where the peers are (default: $PEERS_DIR, else .peers)")
    option("--tilewright", type=Path, default=target / "release/tilewright", metavar="PATH", help="the command to measure")
    option("--bench-args", type=shlex.split, default=[], metavar="ARGS", help="more arguments for `tilewright bench`")
    options = parser.parse_args()
    try:
        options.workloads = selected(options.only.split(",") if options.only else [])
        options.placements = placements(options.threads)
        options.kept = kept(options)
    except ValueError as problem:
        parser.error(str(problem))
    return options


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


def kept(options: argparse.Namespace) -> list[Row]:
    """The rows of an earlier run that this one goes on from."""
    if not options.resume:
        return []
    if options.json is None:
        raise ValueError("--resume needs --json FILE, the file to go on from")
    if not options.json.exists():
        return []
    file = json.loads(options.json.read_text())
    for setting in SETTINGS:
        if file[setting] != getattr(options, setting):
            raise ValueError(f"{options.json} was measured with --{setting} {file[setting]}; go on with the same")
    rows = [(from_json(fields), fields["sizes"]) for fields in file["results"]]
    return [row for row, sizes in rows if row.workload.sizes == sizes]


def placements(text: str) -> list[Placement]:
    """Thread counts, each with as many processors, all on different cores."""
    cores = machine.cores()
    counts = []
    for word in text.split(","):
        count = len(cores) if word == "all" else int(word) if word.isdecimal() else 0
        if not 1 <= count <= len(cores):
            raise ValueError(f"`{word}` is not a number of threads from 1 to {len(cores)}, the cores here, nor `all`")
        counts.append(count)
    return [Placement(count, tuple(cores[:count])) for count in dict.fromkeys(counts)]


def contenders(work: Workload, placement: Placement, options: argparse.Namespace, cache: Path | None) -> list[Contender]:
    """Ours, tuned where there is a cache, and all peers."""
    sources = {Way.TUNED: cache, Way.HAND: ROOT / work.schedule if work.schedule else None}
    ways = [way for way in Way if way is Way.DEFAULT or sources[way]]
    command, peers = options.tilewright.absolute(), options.peers.absolute()
    return [
        *(Tilewright(way, work, placement, command, options.bench_args, sources.get(way), peers) for way in ways),
        *(Peer(name, work, placement, peers) for name in work.all_peers()),
    ]


def tune(work: Workload, placement: Placement, tuner: Tuner) -> Tuning:
    found = tuner.known(work, placement)
    when = "tuned before" if found else "tuned"
    if found is None:
        say(f"  tuning for {tuner.seconds:g} s")
        found = tuner.tune(work, placement)
    best = f"best {found.improvements[-1][1]:.0f} µs, " if found.improvements else ""
    say(f"  {when}: {best}{found.trials} trials in {found.seconds:.0f} s, {found.rate():.1f}/s")
    return found


def measure(work: Workload, placement: Placement, options: argparse.Namespace, tuner: Tuner | None) -> Row:
    statistic = f"{options.statistic}_us"
    found, failed = None, None
    if tuner:
        try:
            found = tune(work, placement, tuner)
        except Unavailable as problem:
            failed = Record(own_name(Way.TUNED), statistic, unavailable=str(problem))
            say(f"  {failed.name}: {problem}")
    cache = tuner.cache(work, placement) if found else None
    plan = Plan(options.rounds, options.seconds, statistic)
    records = interleave(contenders(work, placement, options, cache), plan, say)
    own = [failed] if failed else []
    return Row(work, placement.threads, {record.name: record for record in [*own, *records]}, found)


def write(path: Path, rows: list[Row], about: dict):
    """In one step, so that an interrupted run leaves a whole file."""
    text = json.dumps(about | {"results": [to_json(row) for row in rows]}, indent=1) + "\n"
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(text)
    unfinished.replace(path)


def say(text: str):
    print(text, file=sys.stderr, flush=True)


def measure_all(options: argparse.Namespace, folder: Path, about: dict) -> list[Row]:
    """All rows, those kept from before first; interrupted, those so far."""
    rows = list(options.kept)
    have = {(row.workload.name, row.threads) for row in rows}
    asked = [(work, placement) for work in options.workloads for placement in options.placements]
    missing = [(work, placement) for work, placement in asked if (work.name, placement.threads) not in have]
    progress = Progress([guess(work, options) for work, _ in missing])
    tuner = Tuner(options.tilewright.absolute(), folder, options.tune, options.retune) if options.tune else None
    try:
        for work, placement in missing:
            say(f"{progress}: {work.title}, {table.threads(placement.threads)} (load {machine.load():.1f})")
            rows.append(measure(work, placement, options, tuner))
            progress.step()
            if options.json:
                write(options.json, rows, about)
    except KeyboardInterrupt:
        say("interrupted; what was measured so far:")
    return rows


def guess(work: Workload, options: argparse.Namespace) -> float:
    own = 3 if work.schedule else 2
    return expected_seconds(options.tune, options.rounds, own, len(work.all_peers()), options.seconds)


def main():
    options = arguments()
    if options.list:
        print("\n".join(f"{work.name}  (family {work.family}, operator {work.operator})" for work in WORKLOADS))
        return
    about = {
        "processor": machine.processor_name(),
        "cores": len(machine.cores()),
        "load_before": machine.load(),
        "began": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    } | {setting: getattr(options, setting) for setting in SETTINGS}
    if about["load_before"] > 0.5:
        say(
            f"other work is running here (load {about['load_before']:.1f}): ratios will be uneven, and on several threads too good, "
            "for libraries that spin while they wait suffer most; --statistic p10 helps a little"
        )
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.tune_cache.absolute() if options.tune_cache else Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        rows = measure_all(options, folder, about)
    order = [work.name for work in WORKLOADS]
    rows.sort(key=lambda row: (order.index(row.workload.name), row.threads))
    print(f"{about['processor']}; {about['cores']} cores; rounds: {options.rounds}; load before: {about['load_before']:.1f}\n")
    print(table.report(rows, f"{options.statistic}_us"))


if __name__ == "__main__":
    sys.exit(main())
