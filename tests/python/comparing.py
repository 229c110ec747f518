"""Running a case of cases_*.py by the command, and comparing what it wrote with the reference."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np

from case import Case

SEED = 20


def name_of(run: tuple[Case, dict]) -> str:
    case, sizes = run
    return f"{case.file}:{case.function} " + ",".join(f"{name}={size}" for name, size in sizes.items())


def expect_agreement(
    tilewright: Callable[..., CompletedProcess], folder: Path, case: Case, sizes: dict, *options: str, off_by: int = 0
):
    """Fails unless the command, with these options of `run`, computes what the reference does; integers up to `off_by`."""
    inputs = case.inputs(np.random.default_rng(SEED), **sizes)
    actual = computed(tilewright, folder, case, inputs, *options)
    expected = case.reference(**{name: widen(value) for name, value in inputs.items()})
    assert sorted(actual) == sorted(expected)
    for name in expected:
        compare(name, actual[name], expected[name], case.tolerance, off_by)


def computed(
    tilewright: Callable[..., CompletedProcess], folder: Path, case: Case, inputs: dict, *options: str
) -> dict[str, np.ndarray]:
    """Runs a case through files in `folder`; returns what it wrote, by name."""
    arguments = ["run", f"examples/{case.file}:{case.function}", *options]
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


def compare(name: str, actual: np.ndarray, expected: np.ndarray, tolerance: float, off_by: int):
    assert actual.shape == expected.shape, name
    if expected.dtype == np.float64:
        assert actual.dtype == np.float32, name
        np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance, err_msg=name)
    else:
        assert actual.dtype == expected.dtype, name
        actual, expected = (array.astype(np.int64) for array in (actual, expected))
        np.testing.assert_allclose(actual, expected, rtol=0, atol=off_by, err_msg=name)
