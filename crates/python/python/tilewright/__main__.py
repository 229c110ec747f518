"""The command `tilewright`, as the console script of this name and as `python -m tilewright`."""

import signal
import sys

from . import _native
from ._worker import worker_command


def main() -> None:
    """Runs the command with the arguments of this process, and ends the process with the exit status of the command."""
    # Python would see Ctrl-C only after the command's end. A search handles it by itself.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(_native.command(sys.argv[1:], *worker_command()))


if __name__ == "__main__":
    main()
