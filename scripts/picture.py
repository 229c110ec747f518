#!/usr/bin/env python3
"""Writes docs/images/overview.svg, the picture of the README: a program, its schedule, its speed.

    python3 scripts/picture.py [FILE]

The texts come from PROGRAM and SCHEDULE, and all numbers from the tables of docs/benchmarks.md: when
a table is measured again, run this script again. The same files always give the same bytes;
benchmarks/test_picture.py checks that the committed picture is up to date. FILE is another place to
write to. Nothing but Python's standard library is needed.
"""

import re
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/images/overview.svg"
PROGRAM = ROOT / "examples/flextensor/gemm.tw"
SCHEDULE = ROOT / "schedules/gemm_1024_tuned.sched"
MEASURED = ROOT / "docs/benchmarks.md"

# The rows of the chart: the label, and how the name of the row in the tables begins.
ROWS = {
    "GEMM 1024³": "GEMM 1024x1024x1024",
    "GEMM 2048³": "GEMM 2048x2048x2048",
    "batched GEMM": "batch matmul 960x128x128x64",
    "YOLO C6, 3x3": "C6:",
    "YOLO C13, 3x3": "C13:",
    "depthwise 3x3": "depthwise conv2d C32 M1 112x112",
    "transposed 2x2": "conv transpose2d C1024 K512 28x28",
    "softmax 1024²": "softmax 1024x1024",
}
LIBRARIES = {
    "mkl": "MKL",
    "onednn": "oneDNN",
    "pytorch": "PyTorch",
    "native": "PyTorch",
    "eager": "PyTorch",
    "openvino": "OpenVINO",
    "cublas": "cuBLAS",
    "cudnn": "cuDNN",
}

WIDTH, HEIGHT = 1000, 440
PANEL_TOP, PANEL_BOTTOM = 76, 402
INK, GREY, FAINT, RULE, PAPER = "#1f2328", "#59636e", "#f6f8fa", "#d1d9e0", "#ffffff"
CPU_COLOUR, GPU_COLOUR = "#0969da", "#2da44e"
MONOSPACE = ' font-family="monospace" xml:space="preserve"'


# --- Reading what was measured.


@dataclass(frozen=True)
class Measured:
    """One row of a table: the speed of the tuned kernel relative to the best library."""

    ratio: float
    library: str


@dataclass(frozen=True)
class Series:
    """All rows that were measured on one machine, by their names in the tables."""

    title: str
    colour: str
    rows: dict[str, Measured]

    def find(self, beginning: str) -> Measured | None:
        """Returns the row whose name begins in this way, if there is one."""
        found = [row for name, row in self.rows.items() if name.startswith(beginning)]
        if len(found) > 1:
            raise ValueError(f"{MEASURED.name}: {len(found)} rows of {self.title!r} begin with {beginning!r}")
        return found[0] if found else None


def section(text: str, heading: str) -> str:
    """Returns the text from a heading of the second level to the next one."""
    found = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", text, re.M | re.S)
    if found is None:
        raise ValueError(f"{MEASURED.name} has no heading {heading!r}")
    return found[1]


def tables(text: str) -> list[list[dict[str, str]]]:
    """Returns the tables of a Markdown text: lists of rows, which are dictionaries by column."""
    found = []
    for block in re.findall(r"(?:^\|.*\|$\n?)+", text, re.M):
        head, _, *body = ([cell.strip() for cell in row.strip("|").split("|")] for row in block.splitlines())
        found.append([dict(zip(head, cells, strict=True)) for cells in body])
    return found


def tuned_rows(text: str) -> tuple[dict[str, Measured], set[str]]:
    """Returns the rows of all tables of tuned kernels in a text, and their numbers of threads."""
    rows, threads = {}, set()
    for row in (row for table in tables(text) for row in table if "tuned µs" in row):
        peer = next(cell for column, cell in row.items() if column.startswith("best peer"))
        name = peer.split()[0]
        rows[row["work"]] = Measured(float(row["ratio"].split()[0]), LIBRARIES.get(name, name))
        threads.add(row.get("threads", ""))
    return rows, threads


def measured(text: str) -> list[Series]:
    """Returns the CPU's and the GPU's rows of docs/benchmarks.md."""
    cpu, threads = tuned_rows(section(text, "Kernels on the CPU, beside other libraries"))
    gpu_text = section(text, "Kernels on NVIDIA GPUs, beside other libraries")
    gpu, _ = tuned_rows(gpu_text)
    device = re.search(r"^(NVIDIA \w+), driver", gpu_text, re.M)
    if device is None or len(threads) != 1:
        raise ValueError(f"{MEASURED.name} does not say which GPU, or has several numbers of threads")
    title = f"CPU, {threads.pop()} threads"
    return [Series(title, CPU_COLOUR, cpu), Series(device[1], GPU_COLOUR, gpu)]


def steps(text: str) -> list[str]:
    """Returns the lines of a program or schedule that are no comments and not empty."""
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


# --- Drawing.


def label(x: float, y: float, text: str, size: float = 12, fill: str = INK, more: str = "") -> str:
    """Draws one line of text whose left end, if `more` says nothing else, is at x."""
    return f'<text x="{x:g}" y="{y:g}" font-size="{size:g}" fill="{fill}"{more}>{escape(text)}</text>'


def rectangle(x: float, y: float, width: float, height: float, fill: str, more: str = "") -> str:
    return f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" fill="{fill}"{more}/>'


def line(x1: float, y1: float, x2: float, y2: float, stroke: str, more: str = "") -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{stroke}"{more}/>'


def code(x: float, y: float, lines: list[str], columns: int, size: float, pitch: float) -> list[str]:
    """Draws lines of code, and goes on with an indented line where one has too many columns."""
    wrapped = [
        piece
        for whole in lines
        for piece in textwrap.wrap(whole, columns, subsequent_indent="    ", drop_whitespace=True)
    ]
    return [label(x, y + pitch * at, piece, size, more=MONOSPACE) for at, piece in enumerate(wrapped)]


def panel(x: float, width: float, number: int, title: str, subtitle: str) -> list[str]:
    """Draws the frame of one of the three parts, with its headings above."""
    height = PANEL_BOTTOM - PANEL_TOP
    return [
        f'<circle cx="{x + 11:g}" cy="35" r="11" fill="{INK}"/>',
        label(x + 11, 39.5, str(number), 13, PAPER, ' text-anchor="middle" font-weight="600"'),
        label(x + 30, 40, title, 15, more=' font-weight="600"'),
        label(x, 64, subtitle, 12, GREY),
        rectangle(x, PANEL_TOP, width, height, FAINT, f' rx="8" stroke="{RULE}"'),
    ]


def arrow(x: float) -> str:
    y = (PANEL_TOP + PANEL_BOTTOM) / 2
    return f'<path d="M {x:g} {y - 9:g} l 11 9 l -11 9 z" fill="{GREY}"/>'


def program_part(x: float, width: float) -> list[str]:
    """Draws the program and the command that tunes it."""
    drawn = panel(x, width, 1, "Write what to compute", "index variables, but no loops")
    drawn += code(x + 12, 104, steps(PROGRAM.read_text(encoding="utf-8")), 31, 12, 19)
    facts = [
        "Ranges and shapes are inferred.",
        "Accesses are proved in bounds,",
        "or checked as they happen.",
        "Mistakes are shown in your text.",
    ]
    drawn += [label(x + 12, 206 + 18 * at, fact, 12, GREY) for at, fact in enumerate(facts)]
    drawn.append(rectangle(x + 12, 310, width - 24, 76, INK, ' rx="6"'))
    command = ["$ tilewright tune gemm.tw \\", "  --sizes M=1024,N=1024,K=1024 \\", "  --time 45s"]
    drawn += [label(x + 22, 333 + 19 * at, text, 10.5, PAPER, MONOSPACE) for at, text in enumerate(command)]
    return drawn


def schedule_part(x: float, width: float) -> list[str]:
    """Draws the schedule that was found."""
    drawn = panel(x, width, 2, "Find how, by search", "every candidate is checked, and timed on your machine")
    drawn += code(x + 12, 98, steps(SCHEDULE.read_text(encoding="utf-8")), 52, 10.5, 14.4)
    drawn.append(label(x + 12, 389, "Proved to compute what the program says.", 12, GREY))
    return drawn


def bars(x: float, y: float, unit: float, series: list[Series], beginning: str) -> list[str]:
    """Draws the bars of one row of the chart, one for each machine that has it."""
    found = [(each.colour, row) for each in series if (row := each.find(beginning))]
    if not found:
        raise ValueError(f"{MEASURED.name} has no row that begins with {beginning!r}")
    drawn = []
    for at, (colour, row) in enumerate(found):
        top = y + 12 * at + (6 if len(found) == 1 else 0)
        end = x + unit * row.ratio
        drawn.append(rectangle(x, top, round(end - x, 1), 9, colour, ' rx="1.5"'))
        after = round(max(end, x + unit) + 6, 1)
        drawn.append(label(after, top + 8.5, f"{row.ratio:.2f}  {row.library}", 10.5, INK))
    return drawn


def chart_part(x: float, width: float, series: list[Series]) -> list[str]:
    """Draws the measured speeds, with a line where the library is."""
    drawn = panel(x, width, 3, "Measure the speed", "relative to the best library, float32")
    left, right, top = x + 100, x + width - 86, 118
    shown = [row for each in series for name in ROWS.values() if (row := each.find(name))]
    unit = (right - left) / max(row.ratio for row in shown)
    for at, each in enumerate(series):
        drawn.append(rectangle(x + 12 + 122 * at, 88, 10, 10, each.colour, ' rx="1.5"'))
        drawn.append(label(x + 27 + 122 * at, 97, each.title, 11))
    for at, (title, beginning) in enumerate(ROWS.items()):
        y = top + 31.5 * at
        drawn.append(label(left - 6, y + 14, title, 11, more=' text-anchor="end"'))
        drawn += bars(left, y, unit, series, beginning)
    bottom = top + 31.5 * len(ROWS) - 6
    one = round(left + unit, 1)
    drawn.append(line(left, top - 4, left, bottom, RULE))
    drawn.append(line(one, top - 4, one, bottom + 2, INK, ' stroke-width="1.2" stroke-dasharray="3 2"'))
    drawn.append(label(one, bottom + 14, "1.0: as fast as the library", 10.5, GREY, ' text-anchor="start"'))
    return drawn


def picture(text: str) -> str:
    """Returns the whole picture as SVG, from the text of docs/benchmarks.md."""
    title = "A program of one statement, the schedule that a search found, and measured speeds"
    card = f' rx="14" stroke="{RULE}"'
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"'
        f' width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" role="img">',
        f"<title>{title}</title>",
        rectangle(1, 1, WIDTH - 2, HEIGHT - 2, PAPER, card),
        *program_part(20, 250),
        arrow(279),
        *schedule_part(298, 346),
        arrow(653),
        *chart_part(672, 308, measured(text)),
        label(20, 423, f"{PROGRAM.relative_to(ROOT)}", 11, GREY),
        label(298, 423, f"{SCHEDULE.relative_to(ROOT)}", 11, GREY),
        label(672, 423, f"Source: {MEASURED.relative_to(ROOT)}", 11, GREY),
        "</svg>",
    ]
    return "\n".join(drawn) + "\n"


def main() -> None:
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURE
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(picture(MEASURED.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
