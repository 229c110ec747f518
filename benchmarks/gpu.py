#!/usr/bin/env python3
"""Measures Tilewright on an NVIDIA GPU against cuBLAS, cuDNN and PyTorch, side by side in one run, fp32 without tensor cores.

    python3 benchmarks/gpu.py [--only gemm,yolo] [--tune 120] [--rounds 5] [--json results.json [--resume]] [--within 550]
    python3 benchmarks/gpu.py --json results.json --sanitize

Every workload is tuned, then measured at once beside its peers. Prints tables in Markdown; progress goes to standard error. What is
missing, be it a peer or a kernel that cannot be tuned, is shown as `-` with the reason, and the rest is measured. Results are
written after every row: --resume goes on where a run with the same --json ended, and --within ends a run in time.

--sanitize measures nothing: it runs the kernels that --json says were found under compute-sanitizer.

Needs a `tilewright`, this folder and examples/, and for the peers a Python with PyTorch for CUDA (--python); itself it needs only
the standard library. Read next: families/gpu.py for what is measured, campaign.py and rounds.py for how, peers/on_gpu.py for
beside whom.
"""

import argparse
import json
import os
import shlex
import shutil
import subprocess
import sys
import time
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path

import gpu_table
import sanitizer
import table
from campaign import Campaign, add_options, cache_folder, kept, replace_file, say, seconds
from contender import BENCHMARKS, ROOT, Contender, first_line
from families.gpu import GPU
from gpu_peer import GpuPeer, Libraries
from gpu_tilewright import GpuTilewright
from place import Device
from rounds import Plan
from row import Row
from tuning import Tuner
from workload import Way, Workload

SETTINGS = ("rounds", "tune")  # what rows of one file have in common
BURST_SECONDS = 0.1
COMPILED = ("compiled", "compiled_graphs")
NO_DEVICE = 3  # the status for a machine that lacks what was asked for

# Guesses: libraries and inputs are loaded, results compared; a burst of ours, starting and compiling included.
PREPARATION_SECONDS = 12
OWN_BURST_SECONDS = 2.5
COMPILE_SECONDS = 30  # of torch.compile
LARGE_SECONDS = 60  # to write, read and compare inputs of gigabytes

INPUT_SECONDS = 300  # for writing inputs, at most


class Missing(Exception):
    """What this machine lacks."""


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Tilewright on a GPU against its peers, interleaved in one run.")
    add_options(parser, tune=120)
    option = parser.add_argument
    option("--device", type=int, default=0, metavar="N", help="the GPU, by its number (default: %(default)s)")
    option("--target", metavar="NAME", help="what Tilewright runs on (default: cuda:N)")
    option("--python", type=Path, default=Path(sys.executable), metavar="PATH", help="a Python with PyTorch (default: this one)")
    option("--skip-torch-compile", action="store_true", help="leave out what is compiled by torch.compile")
    option("--within", type=seconds, default=float("inf"), metavar="S", help="begin no row that would end later than this")
    option("--markdown", type=Path, metavar="FILE", help="write the tables here too, after every row")
    option("--sanitize", action="store_true", help="run the kernels of --json under compute-sanitizer")
    options = parser.parse_args()
    options.target = options.target or f"cuda:{options.device}"
    options.resume = options.resume or options.sanitize
    try:
        options.workloads = GPU.selected(options.only.split(",") if options.only else [])
        options.kept = kept(options, GPU, [] if options.sanitize else SETTINGS)
    except ValueError as problem:
        parser.error(str(problem))
    return options


def output_of(command: list[str], limit: float = 60) -> str:
    """What a command prints; nothing if it fails."""
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=limit)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def device_name(command: Path, target: str) -> str:
    """The name of the device that Tilewright sees, by the name that it has there."""
    if not command.exists():
        raise Missing(f"there is no {command}; `make build` makes it, and --tilewright says where it is")
    listed = [json.loads(line) for line in output_of([str(command), "devices", "--json"]).splitlines()]
    for device in listed:
        if device["target"] == target:
            return device.get("device", target)
    known = ", ".join(device["target"] for device in listed) or "none"
    raise Missing(f"there is no {target} on this machine; `tilewright devices` lists: {known}")


def about_run(options: argparse.Namespace, libraries: Libraries) -> dict:
    command = options.tilewright.absolute()
    name = device_name(command, options.target)
    found = {} if options.sanitize else libraries.about()
    if "unavailable" in found:
        say(f"no peers: {found['unavailable']}")
    driver = output_of(["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", f"--id={options.device}"])
    version = first_line(output_of([str(command), "--version"])).removeprefix("tilewright ")
    return {
        **found,
        "device": name,
        "target": options.target,
        "driver": driver.strip(),
        "tilewright": version,
        "cores": len(os.sched_getaffinity(0)),
        "began": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(["python3", "benchmarks/gpu.py", *sys.argv[1:]]),
    } | {setting: getattr(options, setting) for setting in SETTINGS}


class InputFiles:
    """Inputs of rows with tables of gigabytes, as files that our command reads; those of one row at a time."""

    def __init__(self, python: Path, folder: Path):
        self._python = python
        self._folder = folder
        self._name: str | None = None
        self._arguments: list[str] = []

    def arguments(self, work: Workload) -> list[str]:
        if not work.smaller:
            return []
        if self._name != work.name:
            self._name = work.name
            self._arguments = self._written(work)
        return self._arguments

    def _written(self, work: Workload) -> list[str]:
        """Without NumPy there are none, and a seed makes the inputs."""
        shutil.rmtree(self._folder, ignore_errors=True)
        command = [str(self._python), str(BENCHMARKS / "write_inputs.py"), work.operator, json.dumps(work.sizes)]
        files = json.loads(output_of([*command, str(self._folder)], INPUT_SECONDS) or "{}")
        return [word for name, path in files.items() for word in ("--in", f"{name}={path}")]


def contenders(
    work: Workload, device: Device, cache: Path | None, options: argparse.Namespace, libraries: Libraries, inputs: list[str]
) -> list[Contender]:
    """Ours, tuned where there is a cache, and all peers."""
    ways = [Way.TUNED, Way.DEFAULT] if cache else [Way.DEFAULT]
    command = options.tilewright.absolute()
    sources = {Way.TUNED: cache}
    left_out = COMPILED if options.skip_torch_compile else ()
    return [
        *(GpuTilewright(way, work, device, command, inputs, sources.get(way), options.python) for way in ways),
        *(GpuPeer(name, work, libraries, left_out) for name in work.all_peers()),
    ]


def guess(work: Workload, options: argparse.Namespace, tuned: bool) -> float:
    peers = work.all_peers()
    compiling = 0 if options.skip_torch_compile else COMPILE_SECONDS * len(set(peers) & set(COMPILED))
    bursts = options.rounds * (2 * OWN_BURST_SECONDS + len(peers) * 3 * BURST_SECONDS)
    large = LARGE_SECONDS if work.smaller else 0
    return (0 if tuned else options.tune * 1.1) + PREPARATION_SECONDS + large + compiling + bursts


def in_order(rows: list[Row]) -> list[Row]:
    order = [work.name for work in GPU.workloads]
    return sorted(rows, key=lambda row: order.index(row.workload.name))


def measure(options: argparse.Namespace, libraries: Libraries):
    about = about_run(options, libraries)
    device = Device(options.target)

    def write_tables(rows: list[Row]):
        if options.markdown:
            replace_file(options.markdown, gpu_table.report(in_order(rows), GPU, about) + "\n")

    with cache_folder(options) as folder:
        files = InputFiles(options.python, folder / "inputs")
        command = options.tilewright.absolute()
        tuner = Tuner(command, folder, options.tune, options.retune, files.arguments) if options.tune else None
        campaign = Campaign(
            tuner=tuner,
            plan=Plan(options.rounds, BURST_SECONDS, "median_us"),
            contenders=lambda work, place, cache: contenders(work, place, cache, options, libraries, files.arguments(work)),
            guess=lambda work, place: guess(work, options, bool(tuner and tuner.known(work, place))),
            about=about,
            file=options.json,
            within=options.within,
            finished=write_tables,
        )
        rows = campaign.run([(work, device) for work in options.workloads], options.kept)
        campaign.write(rows)
        shutil.rmtree(folder / "inputs", ignore_errors=True)
    print(gpu_table.report(in_order(rows), GPU, about))


def sanitize(options: argparse.Namespace, libraries: Libraries):
    about_run(options, libraries)
    tool = sanitizer.find_tool()
    if tool is None:
        raise Missing("there is no compute-sanitizer, neither on the path nor under /usr/local/cuda*")
    began = time.monotonic()
    names = {work.name for work in options.workloads}
    rows = [row for row in in_order(options.kept) if row.workload.name in names]
    watching = sanitizer.Sanitizer(tool, options.tilewright.absolute(), Device(options.target))
    findings = sanitizer.check_all(rows, watching, lambda: time.monotonic() - began < options.within, say)
    file = json.loads(options.json.read_text())
    replace_file(options.json, json.dumps(file | {"sanitizer": [asdict(finding) for finding in findings]}, indent=1) + "\n")
    lines = [[one.workload, one.tool, one.verdict, "shortened" if one.shortened else "its own"] for one in findings]
    print(table.markdown(["work", "tool", "verdict", "sizes"], lines))
    if not all(finding.is_clean() for finding in findings):
        sys.exit(1)


def main():
    options = arguments()
    if options.list:
        print(GPU.listing())
        return
    libraries = Libraries(options.python, options.device)
    try:
        (sanitize if options.sanitize else measure)(options, libraries)
    except Missing as problem:
        say(str(problem))
        sys.exit(NO_DEVICE)
    finally:
        libraries.close()


if __name__ == "__main__":
    main()
