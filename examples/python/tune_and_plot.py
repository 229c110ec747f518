"""Tunes a matrix product, says what was found, and plots how the search went.

Each candidate that ran is a dot; the line is the best so far, and the dashed line the schedule that every program gets
without a search. The cache is a temporary one, so that every run starts afresh; with --keep it is the user's own, and
what is found stays in use.

    python tune_and_plot.py
    python tune_and_plot.py --seconds 20 --keep

The plot needs matplotlib.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

import tilewright as tw

try:
    import matplotlib
except ImportError:
    matplotlib = None

mm = tw.define("def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }")


def arguments():
    parser = argparse.ArgumentParser(description="Tunes a matrix product and plots the search.")
    parser.add_argument("--seconds", type=float, default=10, help="how long to search (default: 10)")
    parser.add_argument("--keep", action="store_true", help="use your own cache, and keep what is found")
    parser.add_argument("--png", type=Path, default="search.png", help="where the plot goes (default: search.png)")
    return parser.parse_args()


def report(found, operations):
    def line(name, seconds):
        print(f"{name:<8} {seconds * 1e3:8.3f} ms {operations / seconds / 1e9:8.1f} GFLOP/s")

    line("default", found.default_seconds)
    line("best", found.seconds)
    print(f"{found.speedup:.2f} times as fast, after {found.trials} trials in {found.elapsed:.1f} s")
    print(f"\nthe best schedule:\n\n{found.schedule}")


def plot(found, axes):
    """Draws the curve of a search."""
    elapsed, _, candidates, best = zip(*found.history)
    # The two are compared in turn when the search is over. The machine may be slower or faster by then, so only their
    # ratio is taken from there.
    axes.axhline(best[-1] * found.speedup * 1e3, color="gray", linestyle="--", label="default schedule")
    axes.scatter(elapsed, np.multiply(candidates, 1e3), s=8, alpha=0.5, label="candidate")
    axes.step(elapsed, np.multiply(best, 1e3), where="post", color="C1", label="best so far")
    axes.set(xlabel="seconds since the start", ylabel="milliseconds per call", yscale="log", title=found.name)
    # Plain numbers instead of powers of ten.
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.legend()


def save_plot(found, path):
    matplotlib.use("Agg")  # A file is all that is wanted; no window.
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4), layout="constrained")
    plot(found, axes)
    figure.savefig(path, dpi=150)
    print(f"the curve of the search is in {path}")


def tune(seconds):
    random = np.random.default_rng(0)
    A = random.standard_normal((512, 512), dtype=np.float32)
    B = random.standard_normal((512, 512), dtype=np.float32)
    found = mm.tune(A, B, seconds=seconds)
    # A call now uses what was found, so this checks the tuned kernel.
    if not np.allclose(mm(A, B), A @ B, rtol=1e-4, atol=1e-3):
        sys.exit("the tuned kernel is wrong")
    report(found, operations=2 * A.shape[0] * A.shape[1] * B.shape[1])
    return found


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        if not options.keep:
            tw.cache.use(Path(folder) / "cache.sqlite")
        found = tune(options.seconds)
    if matplotlib is None:
        print("there is no plot, because matplotlib is not installed: pip install matplotlib")
    elif not found.history:
        print("there is no plot, because no candidate ran: give the search more --seconds")
    else:
        save_plot(found, options.png)


if __name__ == "__main__":
    main()
