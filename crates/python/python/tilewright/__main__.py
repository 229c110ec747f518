"""The process that tries candidates for a search: `python -m tilewright worker`, or what `Function.tune` starts."""

import signal
import sys

from . import _native


def work() -> None:
    """Tries candidates, until there are no more."""
    # Ctrl-C is for the search, which ends this process when it is over.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _native.worker()


if __name__ == "__main__":
    if sys.argv[1:] == ["worker"]:
        work()
    else:
        sys.exit("usage: python -m tilewright worker, which a search starts by itself; the command is `tilewright`")
