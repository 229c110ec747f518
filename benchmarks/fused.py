#!/usr/bin/env python3
"""Measures small programs of operators that people fuse beside eager PyTorch and torch.compile, with the same inputs in one run.

    python3 benchmarks/fused.py [--only softmax,losses] [--threads 1,all] [--rounds 5] [--json results.json [--resume]]
    python3 benchmarks/fused.py --target cuda:0 --python python3 [--within 550]

Our programs run by default schedules, and with --tune also by tuned ones. Results are compared before anything is timed. Prints
tables in Markdown; progress goes to standard error. Results are written after every row: --resume goes on where a run with the same
--json ended, and --within ends a run in time.

Needs only the standard library. `scripts/peers.sh --only torch` installs PyTorch. Read next: fused/ for the programs,
fused_contender.py for who is measured, rounds.py for how.
"""

import argparse
import os
import shlex
import sys
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import fused_table
import machine
from campaign import Campaign, add_options, cache_folder, kept, replace_file, say, seconds
from contender import ENVIRONMENTS, Contender, first_line
from cpu import peers_folder, placements
from fused import FUSED
from fused.program import GRAPHS, Program
from fused_contender import FusedTilewright, InputFiles, Torch, TorchPeer
from gpu import NO_DEVICE, Missing, device_name, output_of
from place import Device, Place
from progress import expected_seconds
from rounds import Plan
from row import Row
from tuning import Tuner
from workload import Way

SETTINGS = ("rounds", "seconds", "tune", "target", "graphs")  # what rows of one file have in common
COMPILE_SECONDS = 10  # a guess, of torch.compile


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure fused programs beside PyTorch, interleaved in one run.")
    add_options(parser, tune=0)
    option = parser.add_argument
    option("--target", default="cpu", metavar="NAME", help="cpu, or a device such as cuda:0 (default: %(default)s)")
    option("--threads", default="1,all", metavar="N,…", help="thread counts; `all` is one a core (default: %(default)s)")
    option("--seconds", type=seconds, default=0.3, metavar="S", help="length of a burst of PyTorch (default: %(default)s)")
    option("--python", type=Path, metavar="PATH", help="a Python with PyTorch (default: that of scripts/peers.sh, else this one)")
    option("--graphs", action="store_true", help="also measure torch.compile with CUDA graphs, which decides no ratio")
    option("--within", type=seconds, default=float("inf"), metavar="S", help="begin no row that would end later than this")
    option("--markdown", type=Path, metavar="FILE", help="write the tables here too, after every row")
    option("--bench-args", type=shlex.split, default=[], metavar="ARGS", help="more arguments for `tilewright bench`")
    options = parser.parse_args()
    options.python = options.python or default_python()
    try:
        words = options.only.split(",") if options.only else []
        options.workloads = [shown(work, options.graphs) for work in FUSED.selected(words)]
        options.places = [Device(options.target)] if options.target != "cpu" else placements(options.threads)
        options.kept = kept(options, FUSED, SETTINGS)
    except ValueError as problem:
        parser.error(str(problem))
    return options


def default_python() -> Path:
    installed = peers_folder() / ENVIRONMENTS["pytorch"] / "bin" / "python"
    return installed if installed.exists() else Path(sys.executable)


def shown(program: Program, graphs: bool) -> Program:
    return replace(program, informative=(GRAPHS,)) if graphs else program


def about_run(options: argparse.Namespace, torch: Torch) -> dict:
    found = torch.about()
    if "unavailable" in found:
        say(f"no PyTorch: {found['unavailable']}")
    on_cpu = options.target == "cpu"
    command = options.tilewright.absolute()
    return {
        **found,
        "device": machine.processor_name() if on_cpu else device_name(command, options.target),
        "tilewright": first_line(output_of([str(command), "--version"])).removeprefix("tilewright "),
        "cores": len(machine.cores()) if on_cpu else len(os.sched_getaffinity(0)),
        "load_before": machine.load(),
        "began": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(["python3", "benchmarks/fused.py", *sys.argv[1:]]),
    } | {setting: getattr(options, setting) for setting in SETTINGS}


def contenders(
    work: Program, place: Place, cache: Path | None, options: argparse.Namespace, torch: Torch, inputs: list[str], folder: Path
) -> list[Contender]:
    """PyTorch first: it knows the results that the others are compared with."""
    sources = {Way.DEFAULT: None, Way.TUNED: cache}
    ways = [way for way in sources if way is Way.DEFAULT or cache]
    command = options.tilewright.absolute()

    def ours(way: Way) -> FusedTilewright:
        fixed = (way, work, place, command, options.bench_args, sources[way])
        return FusedTilewright(*fixed, inputs=inputs, torch=torch, folder=folder / f"results-{way}")

    return [*(TorchPeer(name, work, torch) for name in work.all_peers()), *(ours(way) for way in ways)]


def guess(work: Program, options: argparse.Namespace) -> float:
    peers = len(work.all_peers())
    return expected_seconds(options.tune, options.rounds, 1, peers, options.seconds) / 2 + COMPILE_SECONDS


def in_order(rows: list[Row]) -> list[Row]:
    order = [work.name for work in FUSED.workloads]
    return sorted(rows, key=lambda row: (order.index(row.workload.name), row.threads or 0))


def title(about: dict, rounds: int) -> str:
    return (
        f"{about['device']}; {about['cores']} cores; PyTorch {about.get('torch', 'is missing')}; "
        f"Tilewright {about['tilewright']}; {about['began']}; rounds: {rounds}; "
        f"load before: {about['load_before']:.1f}.\n\n    {about['command']}\n"
    )


def measure(options: argparse.Namespace, processes: dict[Place, Torch]):
    first = next(iter(processes.values()))
    about = about_run(options, first)

    def text(rows: list[Row]) -> str:
        return f"{title(about, options.rounds)}\n{fused_table.report(in_order(rows), FUSED)}"

    def write_tables(rows: list[Row]):
        if options.markdown:
            replace_file(options.markdown, text(rows) + "\n")

    with cache_folder(options) as folder:
        files = InputFiles(first, folder / "inputs")
        command = options.tilewright.absolute()
        campaign = Campaign(
            tuner=Tuner(command, folder, options.tune, options.retune, files.arguments) if options.tune else None,
            plan=Plan(options.rounds, options.seconds, "median_us"),
            contenders=lambda work, place, cache: contenders(
                work, place, cache, options, processes[place], files.arguments(work), folder
            ),
            guess=lambda work, _: guess(work, options),
            about=about,
            file=options.json,
            within=options.within,
            finished=write_tables,
        )
        rows = campaign.run([(work, place) for work in options.workloads for place in options.places], options.kept)
    print(text(rows))


def main():
    options = arguments()
    if options.list:
        print(FUSED.listing())
        return
    processes = {place: Torch(options.python, place) for place in options.places}
    try:
        measure(options, processes)
    except Missing as problem:
        say(str(problem))
        sys.exit(NO_DEVICE)
    finally:
        for torch in processes.values():
            torch.close()


if __name__ == "__main__":
    sys.exit(main())
