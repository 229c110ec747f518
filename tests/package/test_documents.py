"""What the documents show works: their Python blocks are run, and so are the examples and the notebook."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOT = ROOT if (ROOT / "examples").is_dir() else ROOT.parent
EXAMPLES = ROOT / "examples" / "python"
DOCUMENTS = [path for path in (ROOT / "docs" / "python.md", ROOT / "README.md", ROOT / "crates/python/README.md") if path.exists()]
NEEDS = {
    "autograd.py": ["torch"],
    "custom_operator.py": ["torch"],
    "jax_and_torch.py": ["torch", "jax"],
    "tune_and_plot.py": ["matplotlib"],
    "image_pipeline.py": ["PIL"],
}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_blocks_run_from_top_to_bottom(path, capsys):
    blocks = re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), re.S)
    assert blocks, f"{path.name} has no Python in it"
    names = {}
    for block in blocks:
        for module in ("torch", "jax"):
            if f"import {module}\n" in block:
                pytest.importorskip(module)
        exec(compile(block.replace("seconds=10", "trials=3"), path.name, "exec"), names)


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_examples_run(name, tmp_path):
    for module in NEEDS.get(name, []):
        pytest.importorskip(module)
    options = {"tune_and_plot.py": ["--seconds", "2", "--png", str(tmp_path / "curve.png")]}.get(name, [])
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path), "MPLBACKEND": "agg"}
    command = [sys.executable, str(EXAMPLES / name), *options]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=tmp_path, env=environment)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    notebook = nbformat.read(EXAMPLES / "tour.ipynb", as_version=4)
    resources = {"metadata": {"path": str(EXAMPLES)}}
    # The kernel is this Python, whatever others are installed.
    client = nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources)
    client.execute()
