"""The command `tilewright` that comes with the package."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright as tw

MM = "def mm(float(M, K) A, float(K, N) B) -> (C) { C(i, j) +=! A(i, k) * B(k, j) }"
COMMAND = [sys.executable, "-m", "tilewright"]


@pytest.fixture
def run(tmp_path):
    """Runs the command in a folder with a program, and returns its exit status, output and messages."""
    (tmp_path / "mm.tw").write_text(MM)
    environment = {**os.environ, "XDG_DATA_HOME": str(tmp_path)}

    def started(*arguments, command=COMMAND):
        options = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True, "timeout": 300}
        ran = subprocess.run([*command, *arguments], **options)
        return ran.returncode, ran.stdout, ran.stderr

    return started


def test_it_is_the_whole_command(run):
    assert run("--version") == (0, f"tilewright {tw.__version__}\n", "")
    assert run("check", "mm.tw")[0] == 0
    status, out, _ = run("run", "mm.tw", "--sizes", "M=3,K=4,N=5", "--check")
    assert status == 0 and out.startswith("C: float32(3, 5)  checksum")
    status, out, _ = run("show", "mm.tw", "--stage", "cuda", "--sizes", "M=32,K=32,N=32")
    assert status == 0 and "__global__" in out


def test_the_script_and_the_module_are_the_same(run):
    script = Path(sys.executable).with_name("tilewright")
    if not script.exists():
        pytest.skip("the package is not installed, so there is no script")
    assert run("--help", command=[str(script)]) == run("--help")


def test_exit_statuses_are_those_of_the_command(run, tmp_path):
    (tmp_path / "wrong.tw").write_text("def f(float(N) x) -> (y) { y(i) = z(i) }")
    status, out, error = run("check", "wrong.tw")
    assert status == 1 and "there is no tensor or function `z`" in out + error
    status, _, error = run("dance")
    assert status == 2 and "Usage: tilewright" in error
    assert run("run", "mm.tw", "--sizes", "M=1,K=1,N=1", "--target", "opencl:99")[0] == 3


def test_a_search_starts_workers_of_this_python(run, tmp_path):
    status, out, error = run("tune", "mm.tw", "--sizes", "M=32,K=32,N=32", "--trials", "3", "--cache", "c.sqlite")
    assert status == 0, error
    tw.cache.use(tmp_path / "c.sqlite")
    [row] = tw.cache.list()
    assert row["trials"] >= 3


def test_ctrl_c_ends_a_command_at_once(tmp_path):
    """As the binary, the command dies of the signal, unless it searches."""
    (tmp_path / "slow.tw").write_text(MM)
    line = ["run", "slow.tw", "--sizes", "M=3000,K=3000,N=3000", "--target", "interp"]

    def heed_ctrl_c():
        # These tests may run in the background of a shell, which makes them ignore Ctrl-C.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    process = subprocess.Popen([*COMMAND, *line], cwd=tmp_path, preexec_fn=heed_ctrl_c)
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=3)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == -signal.SIGINT
    finally:
        process.kill()
        process.wait()


def test_a_worker_ends_with_its_search():
    worker = subprocess.run([*COMMAND, "worker"], input="", capture_output=True, timeout=60)
    assert worker.returncode == 0
