"""Every function of every example, run by the interpreter and compared with NumPy.

    pip install -r tests/python/requirements.txt
    pytest tests/python
"""

import importlib
import re
import shlex
from pathlib import Path

import pytest

from cases import CASES
from comparing import expect_agreement, name_of
from conftest import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
FILES = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.tw"))
RUNS = [(case, sizes) for case in CASES for sizes in case.sizes]


def functions(file: str) -> list[str]:
    """The functions that need a case. Of a pipeline it is the one with the name of the file."""
    if file.startswith("pipelines/"):
        return [Path(file).stem]
    text = re.sub(r"#.*", "", (EXAMPLES / file).read_text(encoding="utf-8"))
    return re.findall(r"\bdef\s+(\w+)\s*\(", text)


@pytest.mark.parametrize("case, sizes", RUNS, ids=map(name_of, RUNS))
def test_agrees_with_numpy(tilewright, tmp_path, case, sizes):
    expect_agreement(tilewright, tmp_path, case, sizes, "--target", "interp")


def test_every_function_has_a_case():
    written = {(file, function) for file in FILES for function in functions(file)}
    covered = {(case.file, case.function) for case in CASES}
    assert written - covered == set(), "functions without a case"
    assert covered - written == set(), "cases without a function"


def test_all_cases_are_those_of_every_file():
    files = sorted(path.stem for path in Path(__file__).parent.glob("cases_*.py"))
    rows = [case for file in files for case in importlib.import_module(file).CASES]
    assert sorted(map(id, rows)) == sorted(map(id, CASES))


@pytest.mark.parametrize("file", FILES)
def test_check_accepts_without_warnings(tilewright, file):
    done = tilewright("check", f"examples/{file}")
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr.lower(), done.stderr


@pytest.mark.parametrize("file", FILES)
def test_command_in_the_header_runs(tilewright, file):
    text = (EXAMPLES / file).read_text(encoding="utf-8")
    (command,) = re.findall(r"^# tilewright (run .*)$", text, re.MULTILINE)
    assert f"examples/{file}" in command
    done = tilewright(*shlex.split(command))
    assert done.returncode == 0, done.stderr
