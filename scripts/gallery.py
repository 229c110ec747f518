#!/usr/bin/env python3
"""Writes docs/gallery.md and its pictures: pipelines of examples/pipelines on test pictures.

    python3 scripts/gallery.py [--tilewright target/release/tilewright]

The pictures come from scripts/test_pictures.py, and each command of the page runs as it is printed,
in target/gallery. That folder also gets index.html, the same page with a slider between the input
and the output; it is not committed. On one machine the same programs always give the same bytes.
tests/python/test_gallery.py checks that the page is up to date, and that its commands work.

Needs NumPy, for the test pictures, and nothing else.
"""

import argparse
import base64
import html
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PIPELINES = ROOT / "examples/pipelines"
PAGE = ROOT / "docs/gallery.md"
PICTURES = ROOT / "docs/images/gallery"
WORK = ROOT / "target/gallery"
INPUTS = "python3 scripts/test_pictures.py pictures --width 384 --height 256"
COLUMNS = 96

# Programs that turn files into pictures of 8 bits for the page, by their names.
VIEWS = {
    "colours": "def view(float(3, H, W) I) -> (O) { O(c, y, x) = I(c, y, x) }",
    "grays": "def view(float(H, W) I) -> (O) { O(y, x) = I(y, x) }",
    # Sums up to 225 * 255.
    "sums": "def view(uint16(H, W) I) -> (O) { O(y, x) = uint8_sat(I(y, x) / 225) }",
    # Numbers up to 1023, without the border that camera_pipe leaves out.
    "sensor": "def view(uint16(H, W) I) -> (O) {"
    " O(y, x) = uint8_sat(I(y + 12, x + 16) / 4)"
    " where y in 0:(H - 24) / 32 * 32, x in 0:(W - 32) / 32 * 32 }",
    # Colours before white.
    "alpha": "def view(float(4, H, W) I) -> (O) {"
    " O(c, y, x) = lerp(1.0, I(c, y, x), I(3, y, x)) where c in 0:3 }",
    # The square root, with the border that harris leaves out.
    "corners": "def view(float(H, W) I) -> (O) { f = constant(I, 0)"
    " O(y, x) = min(sqrt(max(f(y - 3, x - 3), 0.0)) * 12, 1.0) where y in 0:H + 6, x in 0:W + 6 }",
}


@dataclass(frozen=True)
class Shown:
    """A file as a picture of the page."""

    file: str
    caption: str
    view: str = "colours"

    @property
    def picture(self) -> str:
        return f"{Path(self.file).stem}.jpg"

    @property
    def alternative(self) -> str:
        """The text for readers who cannot see the picture."""
        return re.split("[:;,]", self.caption)[0]


@dataclass(frozen=True)
class Entry:
    """A section of the page. The commands, one a line, make the last picture."""

    pipeline: str
    title: str
    words: str
    commands: str
    pictures: tuple[Shown, ...]
    heart: tuple[str, str]  # how the first and the last statement of the program's heart begin

    @property
    def path(self) -> Path:
        return PIPELINES / f"{self.pipeline}.tw"


# In 8 bits, scene_16.png and levels_16.png are the same pictures.
SCENE = Shown("pictures/scene.png", "input")
GRAY = Shown("pictures/gray.png", "input", "grays")

ENTRIES = [
    Entry(
        "camera_pipe",
        "Camera pipeline",
        "Turns the raw pixels of a sensor into a picture. It removes hot pixels, finds the two colours"
        " that each pixel lacks, corrects the colours, applies a tone curve and sharpens. The result"
        " leaves out a border.",
        "tilewright run examples/pipelines/camera_pipe.tw --in input=pictures/bayer.png"
        " --in matrix_3200=pictures/matrix_3200.npy --in matrix_7000=pictures/matrix_7000.npy"
        " --in color_temp=3700 --in gamma=2.2 --in contrast=50 --in sharpen_strength=1"
        " --in blackLevel=25 --in whiteLevel=1023 --out camera_pipe.png",
        (
            Shown("pictures/bayer.png", "input: 10 bits a pixel, without a tone curve", "sensor"),
            Shown("camera_pipe.png", "output"),
        ),
        ("# Green at red", "g_b(y, x)"),
    ),
    Entry(
        "demosaic",
        "Demosaic by a network",
        "Finds the colours of a Bayer mosaic by convolutions with ReLU. The weights of this picture are"
        " not learned: `filters.npz` has the linear filters of Malvar, He and Cutler, written as a"
        " network of 4 channels and one inner layer. Such filters give false colours at fine lines. The"
        " border is dotted because the network reads 0 beyond the edges.",
        "tilewright run examples/pipelines/demosaic.tw:demosaic --in mosaic=pictures/mosaic.png"
        " --in pictures/filters.npz --out demosaic.png",
        (Shown("pictures/mosaic.png", "input", "grays"), Shown("demosaic.png", "output")),
        ("for k in 0:layers", "cells ="),
    ),
    Entry(
        "local_laplacian",
        "Local Laplacian filter",
        "Strengthens detail without halos at edges, by pyramids of remapped images. `alpha` is the"
        " strength of the detail, and `beta` scales the contrast of edges.",
        "tilewright run examples/pipelines/local_laplacian.tw:local_laplacian"
        " --in input=pictures/scene_16.png --sizes intensities=8 --in alpha=0.25 --in beta=1"
        " --out local_laplacian.png",
        (SCENE, Shown("local_laplacian.png", "output")),
        ("out[0] = between", "}"),
    ),
    Entry(
        "bgu",
        "Bilateral-guided upsampling",
        "Applies to a large picture what another program did to a small one. The first command"
        " strengthens the contrast of a picture of 96 by 64 pixels. The second finds, for each cell of"
        " a grid, the matrix that maps the small colours before to those after. The large picture goes"
        " through these matrices and stays sharp.",
        "tilewright run examples/pipelines/local_laplacian.tw:local_laplacian"
        " --in input=pictures/small_16.png --sizes intensities=8 --in alpha=1 --in beta=0.3"
        " --out small_strong.png\n"
        "tilewright run examples/pipelines/bgu.tw --in splat_loc=pictures/small_16.png"
        " --in values=small_strong.png --in slice_loc=pictures/scene_16.png"
        " --sizes cell=8,factor=4 --in r_sigma=0.125 --out bgu.png",
        (
            Shown("pictures/small_16.png", "small"),
            Shown("small_strong.png", "small, with more contrast"),
            Shown("pictures/scene.png", "large"),
            Shown("bgu.png", "output"),
        ),
        ("line_y(y, gx", "output(c, y, x)"),
    ),
    Entry(
        "lens_blur",
        "Lens blur",
        "Blurs a photograph as a large lens would. The depth of each pixel comes from a second view. The"
        " program expects near things further to the right in that view, so `right.png` is the first"
        " one. The disc is in focus.",
        "tilewright run examples/pipelines/lens_blur.tw --in left=pictures/right.png"
        " --in right=pictures/left.png --sizes slices=8,focus=6,samples=48,R=9 --in scale=1.5"
        " --out lens_blur.png",
        (Shown("pictures/right.png", "input"), Shown("lens_blur.png", "output")),
        ("# A random point", "final(c, y, x)"),
    ),
    Entry(
        "nl_means",
        "Non-local means",
        "Removes noise. Each pixel becomes a weighted mean of the pixels around it; the weight of a"
        " pixel is large if its surroundings look alike.",
        "tilewright run examples/pipelines/nl_means.tw --in input=pictures/noisy.png"
        " --sizes patch=5,search=11 --in sigma=0.12 --out nl_means.png",
        (Shown("pictures/noisy.png", "input"), Shown("nl_means.png", "output")),
        ("w(dy, dx, y, x)", "output(c, y, x)"),
    ),
    Entry(
        "bilateral_grid",
        "Bilateral grid",
        "Smooths a gray picture but keeps its edges. A grid over place and brightness is blurred, and"
        " sampled at each pixel.",
        "tilewright run examples/pipelines/bilateral_grid.tw --in input=pictures/gray.png"
        " --in r_sigma=0.125 --out bilateral_grid.png",
        (GRAY, Shown("bilateral_grid.png", "output", "grays")),
        ("f = repeat(input)", "histogram("),
    ),
    Entry(
        "interpolate",
        "Interpolation",
        "Fills transparent pixels from their neighbours, near and far, by a pyramid of 10 levels.",
        "tilewright run examples/pipelines/interpolate.tw:interpolate"
        " --in input=pictures/holes.png --out interpolate.png",
        (
            Shown("pictures/holes.png", "input; transparent pixels are white here", "alpha"),
            Shown("interpolate.png", "output"),
        ),
        ("# Each level fills", "output(c, y, x)"),
    ),
    Entry(
        "hist",
        "Histogram equalisation",
        "Spreads the brightness over all 256 levels. The colour differences stay, so colours that were"
        " pale stay pale.",
        "tilewright run examples/pipelines/hist.tw --in input=pictures/dim.png --out hist.png",
        (Shown("pictures/dim.png", "input"), Shown("hist.png", "output")),
        ("# How many pixels", "}"),
    ),
    Entry(
        "unsharp",
        "Unsharp mask",
        "Sharpens: adds to the gray picture its difference from a blurred copy. The colours of a pixel"
        " are scaled as its gray value is. A black pixel would become 0 / 0; the scene has none.",
        "tilewright run examples/pipelines/unsharp.tw --in input=pictures/scene.png --out unsharp.png",
        (SCENE, Shown("unsharp.png", "output")),
        ("sharpen(y, x)", "output(c, y, x)"),
    ),
    Entry(
        "iir_blur",
        "Recursive blur",
        "Blurs by a recursive filter, down and up each column and then along each row. A smaller"
        " `alpha` blurs more widely, in the same time.",
        "tilewright run examples/pipelines/iir_blur.tw:iir_blur --in input=pictures/scene.png"
        " --in alpha=0.2 --out iir_blur.png",
        (SCENE, Shown("iir_blur.png", "output")),
        ("blur(c, 0, x)", "transpose(c, x, y)"),
    ),
    Entry(
        "max_filter",
        "Maximum filter",
        "Replaces each sample by the maximum over a disc around it, here of radius 6.",
        "tilewright run examples/pipelines/max_filter.tw --in input=pictures/scene.png"
        " --sizes radius=6,slices=4 --out max_filter.png",
        (SCENE, Shown("max_filter.png", "output")),
        ("f = repeat(input)", "}"),
    ),
    Entry(
        "harris",
        "Harris corners",
        "Finds corners: the result is large where the gradient has several directions. The picture shows"
        " the square root of the positive values, in white from 0.007 on.",
        "tilewright run examples/pipelines/harris.tw:harris --in input=pictures/scene.png --out harris.npy",
        (SCENE, Shown("harris.npy", "output", "corners")),
        ("Ixx(y, x)", "output(y, x)"),
    ),
    Entry(
        "stencil_chain",
        "Chain of stencils",
        "Applies a 5 by 5 stencil several times, in integers of 16 bits. The weights of a stage add up to"
        " 225 and the sums wrap, so this picture has one stage, in which nothing wraps. The default of 32"
        " stages is for measurements, and gives a picture of noise.",
        "tilewright run examples/pipelines/stencil_chain.tw --in input=pictures/levels_16.png"
        " --sizes stages=1 --out stencil_chain.png",
        (GRAY, Shown("stencil_chain.png", "output, divided by 225", "sums")),
        ("for k in 1:stages", "}"),
    ),
]

# Pipelines without a picture, and the reason.
WITHOUT_PICTURE = {
    "conv_layer": "a layer of a network, without a network",
    "depthwise_separable_conv": "another such layer",
    "mat_mul": "a product of matrices",
}


# --- Running.


def run_commands(tilewright: Path):
    """Makes the inputs and runs all commands in the folder WORK, and the views into PICTURES."""
    for folder in (WORK, PICTURES):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    for folder in ("examples", "scripts"):
        (WORK / folder).symlink_to(ROOT / folder)
    run(tilewright, INPUTS)
    for entry in ENTRIES:
        print(entry.pipeline, flush=True)
        for command in entry.commands.splitlines():
            run(tilewright, command)
    for name, program in VIEWS.items():
        (WORK / f"{name}.tw").write_text(program)
    for shown in {shown.picture: shown for entry in ENTRIES for shown in entry.pictures}.values():
        place = shlex.quote(str(PICTURES / shown.picture))
        run(tilewright, f"tilewright run {shown.view}.tw --in I={shown.file} --out {place}")


def run(tilewright: Path, command: str):
    """Runs a command of the page. No schedule that was tuned on this machine is used."""
    program, *arguments = shlex.split(command)
    place = {"tilewright": str(tilewright), "python3": sys.executable}[program]
    environment = {**os.environ, "XDG_DATA_HOME": str(WORK / "data")}
    done = subprocess.run([place, *arguments], cwd=WORK, env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{command}\n{done.stderr}")


# --- The page.


def wrapped(command: str) -> str:
    """Breaks a command into lines that a shell joins again. An option stays beside its value."""
    pieces = re.split(r" (?=--)", command)
    lines = [pieces[0]]
    for piece in pieces[1:]:
        if len(lines[-1]) + len(piece) + 3 <= COLUMNS:
            lines[-1] += f" {piece}"
        else:
            lines.append(f"    {piece}")
    return " \\\n".join(lines)


def heart(entry: Entry) -> str:
    """Returns lines of a program, from the first of the heart to the end of the last statement."""
    text = entry.path.read_text(encoding="utf-8")
    first, last = map(re.escape, entry.heart)
    # The last line has the indentation of the first; lines of its statement have more.
    found = re.search(rf"^( *){first}.*?^\1{last}[^\n]*\n(?:\1 +[^\n]*\n)*", text, re.M | re.S)
    if found is None:
        raise ValueError(f"{entry.path.name} has no lines from {entry.heart[0]!r} to {entry.heart[1]!r}")
    return textwrap.dedent(found[0]).rstrip()


def table(pictures: tuple[Shown, ...]) -> str:
    """Returns a table of pictures beside each other, under their captions."""
    captions = " | ".join(shown.caption for shown in pictures)
    rule = "|".join("---" for _ in pictures)
    images = " | ".join(f"![{shown.alternative}](images/gallery/{shown.picture})" for shown in pictures)
    return f"| {captions} |\n|{rule}|\n| {images} |"


def section(entry: Entry) -> str:
    """Returns the Markdown of an entry."""
    pairs = (entry.pictures[at : at + 2] for at in range(0, len(entry.pictures), 2))
    tables = "\n\n".join(map(table, pairs))
    commands = "\n".join(map(wrapped, entry.commands.splitlines()))
    return f"""## {entry.title}

{textwrap.fill(entry.words, 100)}

{tables}

```sh
{commands}
```

From [{entry.pipeline}.tw](../examples/pipelines/{entry.pipeline}.tw):

```
{heart(entry)}
```
"""


def document() -> str:
    """Returns the text of docs/gallery.md. It depends on the programs, but not on the pictures."""
    contents = " ·\n".join(f"[{entry.title}](#{anchor(entry.title)})" for entry in ENTRIES)
    without = "\n".join(
        f"- [{name}](../examples/pipelines/{name}.tw): {reason}." for name, reason in WITHOUT_PICTURE.items()
    )
    sections = "\n".join(map(section, ENTRIES))
    return f"""# Gallery

Pipelines of [examples/pipelines](../examples/pipelines), on pictures from a script. Each section
has the pictures, the command that makes the output from the input, and the heart of the program.
The commands run in the root of the repository. First make the inputs; the script needs only NumPy:

```sh
{INPUTS}
```

[pictures.md](pictures.md) says how a program takes and gives pictures. `make gallery` makes this
page again, and `target/gallery/index.html`, where a slider lies between input and output.

{contents}

{sections}
## Without a picture

{without}
"""


def anchor(title: str) -> str:
    """Returns the name that GitHub gives to a heading."""
    return re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-")


# --- The page with sliders.

STYLE = """
body { font: 16px/1.5 sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #1f2328; }
pre { background: #f6f8fa; border-radius: 6px; padding: .8rem; overflow-x: auto; font-size: 13px; }
figure { margin: 0; display: inline-block; vertical-align: top; }
figcaption { color: #59636e; font-size: 14px; }
.pair { position: relative; width: 768px; max-width: 100%; --at: 50%; }
.pair img { display: block; width: 100%; image-rendering: pixelated; }
.pair .after { position: absolute; inset: 0; height: 100%; clip-path: inset(0 0 0 var(--at)); }
.pair::after { content: ""; position: absolute; top: 0; bottom: 0; left: var(--at); width: 2px;
  margin-left: -1px; background: #fff; box-shadow: 0 0 3px #000; pointer-events: none; }
.pair input { position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0;
  cursor: ew-resize; z-index: 1; }
"""


def image(shown: Shown, more: str = "") -> str:
    """Returns an element that contains the picture itself."""
    data = base64.b64encode((PICTURES / shown.picture).read_bytes()).decode()
    return f'<img src="data:image/jpeg;base64,{data}" alt="{html.escape(shown.caption)}"{more}>'


def sliding_section(entry: Entry) -> str:
    *others, before, after = entry.pictures
    figures = "".join(
        f"<figure>{image(shown)}<figcaption>{html.escape(shown.caption)}</figcaption></figure> "
        for shown in others
    )
    commands = html.escape("\n".join(map(wrapped, entry.commands.splitlines())))
    words = re.sub(r"`(.*?)`", r"<code>\1</code>", html.escape(entry.words))
    return f"""<h2 id="{anchor(entry.title)}">{html.escape(entry.title)}</h2>
<p>{words}</p>
{figures}
<div class="pair">{image(before)}{image(after, ' class="after"')}
<input type="range" min="0" max="100" value="50" step="0.1" aria-label="between input and output"
 oninput="this.parentNode.style.setProperty('--at', this.value + '%')"></div>
<p>Left: {html.escape(before.caption)}. Right: {html.escape(after.caption)}.</p>
<pre>{commands}</pre>
<details><summary>{entry.pipeline}.tw</summary>
<pre>{html.escape(entry.path.read_text(encoding="utf-8"))}</pre></details>
"""


def sliding_page() -> str:
    """Returns the page with sliders. It contains its pictures."""
    sections = "\n".join(map(sliding_section, ENTRIES))
    return f"""<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Tilewright: gallery</title><style>{STYLE}</style>
<h1>Gallery</h1>
<p>Move the line in a picture to see the input on its left and the output on its right. The inputs
come from a script:</p>
<pre>{html.escape(INPUTS)}</pre>
{sections}
</html>
"""


def write(path: Path, text: str):
    path.write_text(text, encoding="utf-8", newline="\n")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    command = ROOT / "target/release/tilewright"
    parser.add_argument("--tilewright", type=Path, default=command, help="the command to run")
    options = parser.parse_args()
    if not shutil.which(options.tilewright):
        parser.error(f"there is no command at {options.tilewright}: run `make build`, or name one")
    run_commands(options.tilewright.absolute())
    write(PAGE, document())
    write(WORK / "index.html", sliding_page())
    size = sum(path.stat().st_size for path in PICTURES.iterdir())
    print(f"{PAGE.relative_to(ROOT)}, {len(ENTRIES)} pipelines, {size / 1e6:.2f} MB of pictures")
    print(f"{(WORK / 'index.html').relative_to(ROOT)}")


if __name__ == "__main__":
    main()
