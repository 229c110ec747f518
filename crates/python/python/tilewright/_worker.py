"""The worker process that tries candidates for a search."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

from . import _native


def worker_command() -> tuple[str, list[str]]:
    """Returns the command of a worker: this Python with the same module path, without startup code that reads or writes."""
    if not sys.executable:
        raise RuntimeError("a search starts another Python process, and sys.executable is not set")
    # The empty entry of sys.path is the current folder, which may have changed since the start.
    folders = [folder for folder in sys.path if folder] + [str(Path(__file__).resolve().parents[1])]
    code = f"import sys; sys.path[:] = {folders!r}; from tilewright._worker import work; work()"
    return sys.executable, ["-I", "-S", "-c", code]


def work() -> None:
    """Tries candidates until the search ends."""
    # The search handles Ctrl-C, and ends this process at its own end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.exit(_native.command(["worker"], *worker_command()))
