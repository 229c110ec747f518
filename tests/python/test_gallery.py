"""docs/gallery.md: its text, its pictures, and its commands on smaller pictures."""

import importlib.util
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE, PICTURES = REPOSITORY / "docs/gallery.md", REPOSITORY / "docs/images/gallery"
TEXT = PAGE.read_text(encoding="utf-8")
MOST_BYTES = 1_500_000
OUT_OF_DATE = "docs/gallery.md is out of date: run `make gallery`"
# Small pictures whose sizes differ from those of the page, but not from their remainders by 8.
SMALLER = ["--width", "96", "--height", "64"]


def loaded():
    """Returns the script as a module."""
    spec = importlib.util.spec_from_file_location("gallery_script", REPOSITORY / "scripts/gallery.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gallery = loaded()


def joined(block: str) -> str:
    """Joins lines as a shell does; that of Python keeps the line break."""
    return block.replace("\\\n", "")


def commands(section: str) -> list[list[str]]:
    """The commands of a part of the page, as a shell splits them."""
    blocks = re.findall(r"^```sh\n(.*?)^```", section, re.M | re.S)
    return [shlex.split(line) for block in blocks for line in joined(block).splitlines()]


FIRST, *SECTIONS = re.split(r"^## ", TEXT, flags=re.M)
# The last section has the pipelines without a picture.
SECTIONS = {section.splitlines()[0]: commands(section) for section in SECTIONS[:-1]}


def test_the_page_is_what_the_script_writes():
    assert TEXT == gallery.document(), OUT_OF_DATE
    assert max(map(len, TEXT.splitlines())) <= 100


def test_every_pipeline_is_shown_or_has_a_reason_not_to_be():
    written = {path.stem for path in (REPOSITORY / "examples/pipelines").glob("*.tw")}
    shown = [entry.pipeline for entry in gallery.ENTRIES]
    assert len(shown) == len(set(shown)) == len(SECTIONS) > 10
    assert sorted([*shown, *gallery.WITHOUT_PICTURE]) == sorted(written)
    assert all(gallery.WITHOUT_PICTURE.values())


def test_the_pictures_are_those_of_the_page_and_small():
    linked = set(re.findall(r"!\[.+?\]\(images/gallery/(.+?)\)", TEXT))
    files = list(PICTURES.iterdir())
    assert {file.name for file in files} == linked, OUT_OF_DATE
    assert sum(file.stat().st_size for file in files) < MOST_BYTES
    # JPEG, from the first bytes to the last: no picture was cut off.
    for file in files:
        data = file.read_bytes()
        assert data.startswith(b"\xff\xd8") and data.endswith(b"\xff\xd9"), file.name


def test_links_lead_to_files_and_headings():
    prose = re.sub(r"^```.*?^```", "", TEXT, flags=re.M | re.S)
    for target in re.findall(r"\]\((?!#)(.+?)\)", prose):
        assert (PAGE.parent / target).exists(), target
    headings = {gallery.anchor(title) for title in SECTIONS}
    assert set(re.findall(r"\]\(#(.+?)\)", prose)) == headings


def test_a_command_is_wrapped_between_options():
    command = "tilewright run f.tw " + " ".join(f"--in a{number}=file{number}.png" for number in range(12))
    lines = gallery.wrapped(command).splitlines()
    assert len(lines) > 2 and all(len(line) <= gallery.COLUMNS for line in lines)
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert all(line.startswith("    --in ") for line in lines[1:])
    assert shlex.split(joined("\n".join(lines))) == command.split()


def test_a_heart_that_the_program_lacks_is_an_error():
    entry = gallery.Entry("unsharp", "", "", "", (), ("gray(y, x)", "nothing"))
    with pytest.raises(ValueError, match="unsharp.tw has no lines from 'gray"):
        gallery.heart(entry)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the inputs, as the first command of the page makes them, but smaller."""
    folder = tmp_path_factory.mktemp("gallery")
    for name in "examples", "scripts":
        (folder / name).symlink_to(REPOSITORY / name)
    ((program, script, place, *_),) = commands(FIRST)
    assert program == "python3"
    subprocess.run([sys.executable, script, place, *SMALLER], cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.parametrize("title", SECTIONS)
def test_the_commands_work(tilewright_in, folder, title):
    assert SECTIONS[title]
    for program, *arguments in SECTIONS[title]:
        assert program == "tilewright"
        out = folder / arguments[arguments.index("--out") + 1]
        assert not out.exists(), "two commands write this file"
        done = tilewright_in(folder, *arguments)
        assert done.returncode == 0, done.stderr
        assert out.stat().st_size > 0
