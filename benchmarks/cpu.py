#!/usr/bin/env python3
"""Measures Tilewright on the CPU against the libraries that do the same work, side by side in one run, fp32.

    python3 benchmarks/cpu.py [--only gemm,softmax] [--threads 1,all] [--rounds 5] [--json results.json]

Prints tables in Markdown; progress goes to standard error. The peers are installed by scripts/peers.sh. What is missing, be it a
peer, a schedule or the command itself, is shown as `-` with the reason, and the rest is measured.

Needs only the standard library. Read next: workload.py for what is measured, rounds.py for how, contender.py for by whom.
"""

import argparse
import json
import os
import shlex
import sys
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

import machine
import table
from contender import ROOT, Contender, Peer, Placement, Tilewright
from rounds import Plan, interleave
from workload import WORKLOADS, Workload


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Tilewright on the CPU against its peers, interleaved in one run.")
    option = parser.add_argument
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    peers = Path(os.environ.get("PEERS_DIR", ROOT / ".peers"))
    option("--list", action="store_true", help="list the workloads and stop")
    option("--only", metavar="NAMES", help="operators or workloads, with commas between; --list shows them")
    option("--threads", default="1,all", metavar="N,…", help="thread counts; `all` is one a core (default: %(default)s)")
    option("--rounds", type=positive, default=5, metavar="N", help="bursts of each contender (default: %(default)s)")
    option("--seconds", type=float, default=0.3, metavar="S", help="length of a peer's burst (default: %(default)s)")
    option("--statistic", choices=["median", "p10"], default="median", help="what stands for a burst (default: %(default)s)")
    option("--json", type=Path, metavar="FILE", help="write all raw results here")
    option("--peers", type=Path, default=peers, metavar="DIR", help="where the peers are (default: $PEERS_DIR, else .peers)")
    option("--tilewright", type=Path, default=target / "release/tilewright", metavar="PATH", help="the command to measure")
    option("--bench-args", type=shlex.split, default=[], metavar="ARGS", help="more arguments for `tilewright bench`")
    options = parser.parse_args()
    try:
        options.workloads = selected(options.only)
        options.placements = placements(options.threads)
    except ValueError as problem:
        parser.error(str(problem))
    return options


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def selected(only: str | None) -> list[Workload]:
    wanted = only.split(",") if only else []
    for name in wanted:
        if not any(name in (work.name, work.operator) for work in WORKLOADS):
            raise ValueError(f"there is no workload or operator `{name}`; --list shows them")
    return [work for work in WORKLOADS if not wanted or work.name in wanted or work.operator in wanted]


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


def contenders(work: Workload, placement: Placement, options: argparse.Namespace) -> list[Contender]:
    command, extra = options.tilewright.absolute(), options.bench_args
    return [
        Tilewright(table.HAND, work, placement, command, extra, schedule=work.schedule),
        Tilewright(table.DEFAULT, work, placement, command, extra, schedule=None),
        *(Peer(name, work, placement, options.peers.absolute()) for name in work.peers + work.informative),
    ]


def measure(work: Workload, placement: Placement, options: argparse.Namespace) -> table.Row:
    threads = f"{placement.threads} thread{'s' if placement.threads > 1 else ''}"
    say(f"{work.title}, {threads} (load {machine.load():.1f})")
    plan = Plan(options.rounds, options.seconds, f"{options.statistic}_us")
    records = interleave(contenders(work, placement, options), plan, say)
    return table.Row(work, placement.threads, {record.name: record for record in records})


def raw(row: table.Row) -> dict:
    peer = row.best_peer()
    ratios = {"hand": row.hand_ratio(), "default": row.default_ratio()}
    return {
        "workload": row.workload.name,
        "sizes": row.workload.sizes,
        "threads": row.threads,
        "target": asdict(row.workload.target(row.threads)),
        "best_peer": peer.name if peer else None,
        "ratio": {name: asdict(value) if value else None for name, value in ratios.items()},
        "contenders": [asdict(record) | {"time_us": record.time_us()} for record in row.records.values()],
    }


def write(path: Path, rows: list[table.Row], about: dict):
    path.write_text(json.dumps(about | {"results": [raw(row) for row in rows]}, indent=1) + "\n")


def say(text: str):
    print(text, file=sys.stderr, flush=True)


def main():
    options = arguments()
    if options.list:
        print("\n".join(f"{work.name}  (operator {work.operator})" for work in WORKLOADS))
        return
    about = {
        "processor": machine.processor_name(),
        "cores": len(machine.cores()),
        "load_before": machine.load(),
        "began": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "statistic": options.statistic,
    }
    if about["load_before"] > 0.5:
        say(
            f"other work is running here (load {about['load_before']:.1f}): ratios will be uneven, and on several threads too good, "
            "for libraries that spin while they wait suffer most; --statistic p10 helps a little"
        )
    rows: list[table.Row] = []
    try:
        for work in options.workloads:
            for placement in options.placements:
                rows.append(measure(work, placement, options))
                if options.json:
                    write(options.json, rows, about)
    except KeyboardInterrupt:
        say("interrupted; what was measured so far:")
    print(f"{about['processor']}; {about['cores']} cores; rounds: {options.rounds}; load before: {about['load_before']:.1f}\n")
    print(table.report(rows, f"{options.statistic}_us"))


if __name__ == "__main__":
    sys.exit(main())
