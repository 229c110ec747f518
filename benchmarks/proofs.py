#!/usr/bin/env python3
"""Proves the schedules by hand of all image pipelines, at the sizes of the benchmarks, for the CPU and for an NVIDIA GPU.

    python3 benchmarks/proofs.py [--only harris,bgu] [--target cpu,cuda]

Prints a table in Markdown: the verdict of each proof, with its seconds. Ends with status 1 unless all are proved. No GPU is
needed. Needs only the standard library. Read next: families/pipelines.py for the sizes.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from campaign import say
from contender import ROOT
from families.pipelines import PIPELINES, Pipeline

TARGETS = ("cpu", "cuda")


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Prove the schedules by hand of all image pipelines.")
    parser.add_argument("--tilewright", type=Path, default=ROOT / "target/release/tilewright", help="the command")
    parser.add_argument("--only", default="", metavar="NAME,…", help="only these pipelines")
    parser.add_argument("--target", default=",".join(TARGETS), metavar="TARGET,…", help="default: %(default)s")
    options = parser.parse_args()
    options.targets = options.target.split(",")
    if unknown := set(options.targets) - set(TARGETS):
        parser.error(f"there are no schedules for {', '.join(sorted(unknown))}; the targets are {', '.join(TARGETS)}")
    try:
        options.pipelines = PIPELINES.selected(options.only.split(",") if options.only else [])
    except ValueError as problem:
        parser.error(str(problem))
    return options


def command(tilewright: Path, work: Pipeline, target: str) -> list[str]:
    sizes = ",".join(f"{name}={value}" for name, value in work.sizes.items())
    scalars = [word for name, value in work.scalars.items() for word in ("--in", f"{name}={value}")]
    schedule = f"schedules/pipelines/{work.name}.{target}.sched"
    chosen = ["--sizes", sizes, *scalars, "--schedule", schedule, "--target", target, "--json"]
    return [str(tilewright.absolute()), "prove", work.program, *chosen]


def proof(tilewright: Path, work: Pipeline, target: str) -> str:
    """What the table says of one proof."""
    say(f"{work.name}, {target}")
    done = subprocess.run(command(tilewright, work, target), capture_output=True, text=True, cwd=ROOT)
    try:
        found = json.loads(done.stdout)
    except json.JSONDecodeError:
        return f"failed: {done.stderr.strip()}"
    return f"{found['verdict']}, {found['seconds']:.1f} s" + (f": {found['reason']}" if found["reason"] else "")


def main() -> int:
    options = arguments()
    rows = {work.name: [proof(options.tilewright, work, target) for target in options.targets] for work in options.pipelines}
    print("| pipeline |", " | ".join(options.targets), "|")
    print("| --- |", " | ".join("--:" for _ in options.targets), "|")
    for name, verdicts in rows.items():
        print(f"| {name} |", " | ".join(verdicts), "|")
    return 0 if all(verdict.startswith("proved") for row in rows.values() for verdict in row) else 1


if __name__ == "__main__":
    sys.exit(main())
