"""Every function of every example, run by the interpreter and compared with NumPy.

    pip install -r tests/python/requirements.txt
    pytest tests/python
"""

import re
import shlex

import numpy as np
import pytest

import cases_benchmarks
import cases_flextensor
import cases_images
import cases_paper
from case import Case
from conftest import REPOSITORY

EXAMPLES = REPOSITORY / "examples"
FILES = sorted(path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.tw"))
CASES = cases_paper.CASES + cases_benchmarks.CASES + cases_flextensor.CASES + cases_images.CASES
RUNS = [(case, sizes) for case in CASES for sizes in case.sizes]
SEED = 20


def name_of(run: tuple[Case, dict]) -> str:
    case, sizes = run
    return f"{case.file}:{case.function} " + ",".join(f"{name}={size}" for name, size in sizes.items())


def functions(file: str) -> list[str]:
    text = re.sub(r"#.*", "", (EXAMPLES / file).read_text(encoding="utf-8"))
    return re.findall(r"\bdef\s+(\w+)\s*\(", text)


@pytest.mark.parametrize("case, sizes", RUNS, ids=map(name_of, RUNS))
def test_agrees_with_numpy(tilewright, tmp_path, case, sizes):
    inputs = case.inputs(np.random.default_rng(SEED), **sizes)
    actual = interpret(tilewright, tmp_path, case, inputs)
    expected = case.reference(**{name: widen(value) for name, value in inputs.items()})
    assert sorted(actual) == sorted(expected)
    for name in expected:
        compare(name, actual[name], expected[name], case.tolerance)


def interpret(tilewright, folder, case: Case, inputs: dict) -> dict[str, np.ndarray]:
    """Runs a case through files in `folder`; returns what it wrote, by name."""
    arguments = ["run", f"examples/{case.file}:{case.function}", "--target", "interp"]
    for name, value in inputs.items():
        if isinstance(value, np.ndarray):
            np.save(folder / f"{name}.npy", value)
            value = folder / f"{name}.npy"
        arguments += ["--in", f"{name}={value}"]
    out = folder / "out"
    out.mkdir()
    done = tilewright(*arguments, "--out", out)
    assert done.returncode == 0, done.stderr
    return {path.stem: np.load(path) for path in out.glob("*.npy")}


def widen(value):
    """A copy, with floats as float64."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float64) if value.dtype == np.float32 else value.copy()
    return value


def compare(name: str, actual: np.ndarray, expected: np.ndarray, tolerance: float):
    assert actual.shape == expected.shape, name
    if expected.dtype == np.float64:
        assert actual.dtype == np.float32, name
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance, err_msg=name)
    else:
        assert actual.dtype == expected.dtype, name
        np.testing.assert_array_equal(actual, expected, err_msg=name)


def test_every_function_has_a_case():
    written = {(file, function) for file in FILES for function in functions(file)}
    covered = {(case.file, case.function) for case in CASES}
    assert written - covered == set(), "functions without a case"
    assert covered - written == set(), "cases without a function"


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
