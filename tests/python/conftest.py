"""The command line under test: $TILEWRIGHT, or target/release/tilewright."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def tilewright():
    """Calls the command in the root of the repository and returns the finished process."""
    in_folder = caller()

    def call(*arguments):
        return in_folder(REPOSITORY, *arguments)

    return call


@pytest.fixture(scope="session")
def tilewright_in():
    """Calls the command in a folder and returns the finished process."""
    return caller()


def caller():
    binary = Path(os.environ.get("TILEWRIGHT", REPOSITORY / "target/release/tilewright")).absolute()
    if not shutil.which(binary):
        pytest.fail(f"no program at {binary}: run `cargo build --release`, or set TILEWRIGHT", pytrace=False)

    def call(folder, *arguments):
        command = [binary, *map(str, arguments)]
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)

    return call
