#!/usr/bin/env python3
"""Measures image pipelines beside Halide on the CPU, in one run and with the same inputs: ours by hand, by default and tuned.

    python3 benchmarks/pipelines.py [--only harris,hist] [--threads 1,all] [--tune 60] [--autoschedulers] [--json results.json]

Halide runs the expert schedule of its own application of the same name. Results are compared before anything is timed. Prints
tables in Markdown; progress goes to standard error. `scripts/peers.sh --only halide` installs Halide.

Needs only the standard library. Read next: families/pipelines.py for the sizes, halide_pipelines/ for what Halide runs,
pipeline_contender.py for who is measured, rounds.py for how.
"""

import argparse
import shlex
import sys
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import machine
import pipelines_table
from campaign import Campaign, add_options, cache_folder, kept, say
from contender import ENVIRONMENTS, ROOT, Contender
from cpu import peers_folder, placements
from families.pipelines import AUTOSCHEDULERS, EXPERT, PIPELINES, Pipeline
from pipeline_contender import Exchange, Halide, PipelineTilewright
from place import Placement
from progress import expected_seconds
from rounds import Plan
from tuning import Tuner
from workload import Way

SETTINGS = ("rounds", "seconds", "statistic", "tune", "autoschedulers", "tiny")  # what rows of one file have in common
SCHEDULING_SECONDS = 90  # a guess, of all autoschedulers


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure image pipelines beside Halide, interleaved in one run.")
    add_options(parser, tune=0)
    option = parser.add_argument
    option("--threads", default="all", metavar="N,…", help="thread counts; `all` is one a core (default: %(default)s)")
    option("--seconds", type=float, default=0.5, metavar="S", help="length of a burst of Halide (default: %(default)s)")
    option("--statistic", choices=["median", "p10"], default="median", help="what stands for a burst (default: %(default)s)")
    option("--peers", type=Path, default=peers_folder(), metavar="DIR", help="where Halide is (default: $PEERS_DIR, else .peers)")
    option("--autoschedulers", action="store_true", help="also measure Halide's autoschedulers Mullapudi2016 and Adams2019")
    option("--schedules", type=Path, metavar="DIR", help="take schedules by hand from here, not from schedules/pipelines")
    option("--tiny", action="store_true", help="small images, as the tests have them: their times say little")
    option("--bench-args", type=shlex.split, default=[], metavar="ARGS", help="more arguments for `tilewright bench`")
    options = parser.parse_args()
    try:
        words = options.only.split(",") if options.only else []
        options.workloads = [sized(work, options.tiny) for work in PIPELINES.selected(words)]
        options.placements = placements(options.threads)
        options.kept = kept(options, PIPELINES, SETTINGS)
    except ValueError as problem:
        parser.error(str(problem))
    return options


def sized(work: Pipeline, tiny: bool) -> Pipeline:
    return replace(work, sizes=work.tiny_sizes()) if tiny else work


def by_hand(work: Pipeline, options: argparse.Namespace) -> Path | None:
    """The schedule that somebody wrote for this pipeline, if there is one."""
    file = ROOT / work.schedule
    if options.schedules:
        file = options.schedules.absolute() / file.name
    return file if file.exists() else None


def contenders(
    work: Pipeline, placement: Placement, cache: Path | None, options: argparse.Namespace, exchange: Exchange
) -> list[Contender]:
    """Halide's expert first, whose result the others are compared with."""
    sources = {Way.HAND: by_hand(work, options), Way.DEFAULT: None, Way.TUNED: cache}
    ways = [way for way, source in sources.items() if way is Way.DEFAULT or source]
    peers = [EXPERT, *(AUTOSCHEDULERS if options.autoschedulers else ())]
    inputs = exchange.write_inputs(work)
    command = options.tilewright.absolute()

    def ours(way: Way) -> PipelineTilewright:
        fixed = (way, work, placement, command, options.bench_args, sources[way])
        return PipelineTilewright(*fixed, inputs=inputs, exchange=exchange)

    theirs = [Halide(name, work, placement, options.peers.absolute(), exchange) for name in peers]
    return [*theirs, *(ours(way) for way in ways)]


def guess(options: argparse.Namespace) -> float:
    searching = SCHEDULING_SECONDS if options.autoschedulers else 0
    return searching + expected_seconds(options.tune, options.rounds, 2, 3 if options.autoschedulers else 1, options.seconds)


def campaign(options: argparse.Namespace, folder: Path, about: dict) -> Campaign:
    python = options.peers.absolute() / ENVIRONMENTS[EXPERT] / "bin" / "python"

    def exchange(work: Pipeline) -> Exchange:
        return Exchange(python, folder / "exchange" / work.name)

    def inputs(work: Pipeline) -> list[str]:
        return exchange(work).write_inputs(work)

    return Campaign(
        tuner=Tuner(options.tilewright.absolute(), folder, options.tune, options.retune, inputs) if options.tune else None,
        plan=Plan(options.rounds, options.seconds, f"{options.statistic}_us"),
        contenders=lambda work, place, cache: contenders(work, place, cache, options, exchange(work)),
        guess=lambda work, _: guess(options),
        about=about,
        file=options.json,
    )


def main():
    options = arguments()
    if options.list:
        print(PIPELINES.listing())
        return
    about = {
        "processor": machine.processor_name(),
        "cores": len(machine.cores()),
        "load_before": machine.load(),
        "began": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    } | {setting: getattr(options, setting) for setting in SETTINGS}
    if about["load_before"] > 0.5:
        say(f"other work is running here (load {about['load_before']:.1f}): ratios will be uneven")
    asked = [(work, placement) for work in options.workloads for placement in options.placements]
    with cache_folder(options) as folder:
        rows = campaign(options, folder, about).run(asked, options.kept)
    order = [work.name for work in PIPELINES.workloads]
    rows.sort(key=lambda row: (order.index(row.workload.name), row.threads))
    print(f"{about['processor']}; {about['cores']} cores; rounds: {options.rounds}; load before: {about['load_before']:.1f}\n")
    print(pipelines_table.report(rows))


if __name__ == "__main__":
    sys.exit(main())
