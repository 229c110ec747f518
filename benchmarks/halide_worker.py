"""Halide's side of a pipeline, run in Halide's environment, with NumPy.

    halide_worker.py inputs  NAME SIZES FOLDER              writes the inputs, and prints {"input": "FOLDER/input.npy", …}
    halide_worker.py serve   NAME SIZES FOLDER PEER THREADS computes, writes FOLDER/PEER.npy, and times calls when asked
    halide_worker.py compare NAME FILE FILE                 prints {"error": …, "differing": …} or {"unavailable": "…"}

SIZES are JSON. The module halide_pipelines.NAME has the pipeline; `serve` speaks the protocol of peer_worker.py.
"""

import importlib
import importlib.metadata
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import halide as hl
import numpy as np

from families.pipelines import PIPELINES
from halide_pipelines.given import TARGET, Given
from peer_worker import serve

AUTOSCHEDULERS = {"halide_mullapudi": "Mullapudi2016", "halide_adams": "Adams2019"}
LAST_LEVEL_CACHE = 2 << 20  # bytes, for Mullapudi2016: the second-level cache of a core today


def module_of(name: str):
    return importlib.import_module(f"halide_pipelines.{name}")


def write_inputs(name: str, sizes: dict[str, int], folder: Path) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    for tensor, array in module_of(name).inputs(np.random.default_rng(0), sizes).items():
        files[tensor] = str(folder / f"{tensor}.npy")
        np.save(files[tensor], array)
    return files


@dataclass
class Kernel:
    compiled: hl.Pipeline
    output: hl.Buffer

    def run(self):
        self.compiled.realize(self.output)


def prepare(name: str, sizes: dict[str, int], folder: Path, peer: str, threads: int):
    module = module_of(name)
    arrays = module.inputs(np.random.default_rng(0), sizes)
    given = Given(arrays, sizes, PIPELINES.named(name).scalars, expert=peer not in AUTOSCHEDULERS)
    array = module.result(sizes)
    output = hl.Buffer(array)
    origin = getattr(module, "ORIGIN", (0,) * array.ndim)
    output.set_min(list(origin))
    func = module.pipeline(given)
    compiled = hl.Pipeline(func)
    begin = time.perf_counter()
    if not given.expert:
        extents = reversed(array.shape)
        func.set_estimates([hl.Range(low, extent) for low, extent in zip(origin, extents, strict=True)])
        autoschedule(compiled, AUTOSCHEDULERS[peer], threads)
    seconds = time.perf_counter() - begin
    compiled.compile_jit(TARGET)
    kernel = Kernel(compiled, output)
    kernel.run()
    np.save(folder / f"{peer}.npy", array)
    about = {"version": f"halide {importlib.metadata.version('halide')}", "scheduling_seconds": seconds}
    return kernel, (array, given), about


def autoschedule(compiled: hl.Pipeline, scheduler: str, threads: int):
    # The plugins are not on the path of the loader.
    hl.load_plugin(str(Path(hl.__file__).parent / "lib64" / f"libautoschedule_{scheduler.lower()}.so"))
    options = {"parallelism": str(threads)}
    if scheduler == "Mullapudi2016":
        options["last_level_cache_size"] = str(LAST_LEVEL_CACHE)
    compiled.apply_autoscheduler(TARGET, hl.AutoschedulerParams(scheduler, options))


def compare(name: str, first: Path, second: Path) -> dict:
    """How far two results are apart: the largest relative difference, and the share of elements beyond the tolerance."""
    one, other = np.load(first), np.load(second)
    if one.shape != other.shape or one.dtype != other.dtype:
        return {"unavailable": f"{first.stem} is {one.dtype}{one.shape}, {second.stem} is {other.dtype}{other.shape}"}
    module = module_of(name)
    floating = np.issubdtype(one.dtype, np.floating)
    tolerance = getattr(module, "TOLERANCE", 1e-5 if floating else 0.0)
    difference = np.abs(one.astype(float) - other.astype(float)) / max(float(np.abs(other).max()), 1e-30)
    error = float(difference.max())
    differing = float(np.mean(~(difference <= tolerance)))  # NaN differs
    if differing > getattr(module, "SHARE", 0.0):
        return {"unavailable": f"wrong result: {differing:.1%} of the elements differ, by up to {error:.1e} of the largest"}
    return {"error": error, "differing": differing}


def main():
    match sys.argv[1:]:
        case ["inputs", name, sizes, folder]:
            print(json.dumps(write_inputs(name, json.loads(sizes), Path(folder))))
        case ["serve", name, sizes, folder, peer, threads]:
            serve(lambda: prepare(name, json.loads(sizes), Path(folder), peer, int(threads)))
        case ["compare", name, first, second]:
            print(json.dumps(compare(name, Path(first), Path(second))))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
