#!/usr/bin/env python3
"""Measures Tilewright on the CPU against the libraries that do the same work, side by side in one run, fp32.

    python3 benchmarks/cpu.py [--only gemm,softmax] [--threads 1,all] [--tune 60] [--rounds 5] [--json results.json [--resume]]

Every workload is tuned, then measured at once beside its peers. Prints tables in Markdown; progress goes to standard error. The
peers are installed by scripts/peers.sh. What is missing, be it a peer, a schedule or the command itself, is shown as `-` with the
reason, and the rest is measured. All of it takes more than an hour: --resume goes on where a run with the same --json ended.

Needs only the standard library. Read next: families/ for what is measured, campaign.py and rounds.py for how, contender.py for by
whom.
"""

import argparse
import os
import shlex
import sys
from datetime import datetime, timezone
from pathlib import Path

import machine
import table
from campaign import Campaign, add_options, cache_folder, kept, say
from contender import ENVIRONMENTS, ROOT, Contender, Peer, Tilewright
from families import CPU
from place import Placement
from progress import expected_seconds
from rounds import Plan
from tuning import Tuner
from workload import Way, Workload

SETTINGS = ("rounds", "seconds", "statistic", "tune")  # what rows of one file have in common


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Tilewright on the CPU against its peers, interleaved in one run.")
    add_options(parser, tune=60)
    option = parser.add_argument
    option("--threads", default="all", metavar="N,…", help="thread counts; `all` is one a core (default: %(default)s)")
    option("--seconds", type=float, default=0.3, metavar="S", help="length of a peer's burst (default: %(default)s)")
    option("--statistic", choices=["median", "p10"], default="median", help="what stands for a burst (default: %(default)s)")
    option("--peers", type=Path, default=peers_folder(), metavar="DIR", help="where the peers are (default: $PEERS_DIR, else .peers)")
    option("--bench-args", type=shlex.split, default=[], metavar="ARGS", help="more arguments for `tilewright bench`")
    options = parser.parse_args()
    try:
        options.workloads = CPU.selected(options.only.split(",") if options.only else [])
        options.placements = placements(options.threads)
        options.kept = kept(options, CPU, SETTINGS)
    except ValueError as problem:
        parser.error(str(problem))
    return options


def peers_folder() -> Path:
    return Path(os.environ.get("PEERS_DIR", ROOT / ".peers"))


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
    python = peers / ENVIRONMENTS["openblas"] / "bin" / "python"
    return [
        *(Tilewright(way, work, placement, command, options.bench_args, sources.get(way), python) for way in ways),
        *(Peer(name, work, placement, peers) for name in work.all_peers()),
    ]


def guess(work: Workload, options: argparse.Namespace) -> float:
    own = 3 if work.schedule else 2
    return expected_seconds(options.tune, options.rounds, own, len(work.all_peers()), options.seconds)


def campaign(options: argparse.Namespace, folder: Path, about: dict) -> Campaign:
    return Campaign(
        tuner=Tuner(options.tilewright.absolute(), folder, options.tune, options.retune) if options.tune else None,
        plan=Plan(options.rounds, options.seconds, f"{options.statistic}_us"),
        contenders=lambda work, placement, cache: contenders(work, placement, options, cache),
        guess=lambda work, _: guess(work, options),
        about=about,
        file=options.json,
    )


def main():
    options = arguments()
    if options.list:
        print(CPU.listing())
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
    asked = [(work, placement) for work in options.workloads for placement in options.placements]
    with cache_folder(options) as folder:
        rows = campaign(options, folder, about).run(asked, options.kept)
    order = [work.name for work in CPU.workloads]
    rows.sort(key=lambda row: (order.index(row.workload.name), row.threads))
    print(f"{about['processor']}; {about['cores']} cores; rounds: {options.rounds}; load before: {about['load_before']:.1f}\n")
    print(table.report(rows, f"{options.statistic}_us", CPU))


if __name__ == "__main__":
    sys.exit(main())
