"""The process that tries candidates for a search: `python -m tilewright worker`."""

import signal
import sys

from . import _native

if sys.argv[1:] == ["worker"]:
    # Ctrl-C is for the search, which ends this process when it is over.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _native.worker()
else:
    sys.exit("usage: python -m tilewright worker, which a search starts by itself; the command is `tilewright`")
