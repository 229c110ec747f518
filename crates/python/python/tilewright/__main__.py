"""The worker process that tries candidates for a search: `python -m tilewright worker`. `Function.tune` starts it."""

import signal
import sys

from . import _native


def work() -> None:
    """Tries candidates until the search ends."""
    # The search handles Ctrl-C, and ends this process at its own end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _native.worker()


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        work()
    else:
        sys.exit("usage: python -m tilewright worker, which a search starts by itself; the command is `tilewright`")
