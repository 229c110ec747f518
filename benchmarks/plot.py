"""The curves of several strategies as a picture, with matplotlib: the mean as a line, lowest to highest as a band."""

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402  # after the choice of how to draw

from curves import Band  # noqa: E402


def draw(path: Path, title: str, bands: dict[str, Band]):
    figure, axes = plt.subplots(figsize=(7, 4.2), layout="constrained")
    for name, band in bands.items():
        trials = range(len(band.mean))
        (line,) = axes.plot(trials, band.mean, label=name)
        axes.fill_between(trials, band.low, band.high, alpha=0.15, color=line.get_color(), linewidth=0)
    axes.set(title=title, xlabel="trials", ylabel="best so far, relative to the best known")
    axes.set_ylim(top=1.02)
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
    figure.savefig(path)
    plt.close(figure)
