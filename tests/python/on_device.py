"""Every function of every example on a device, compared with NumPy: `on_device.py TILEWRIGHT TARGET`.

The cases and sizes are those of cases_*.py. Needs NumPy and no pytest, so that it runs where nothing can be installed. Prints
the cases that fail and a line that counts them; the status is 1 if there are any.
"""

import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from case import Case
from cases import CASES
from comparing import expect_agreement, name_of

REPOSITORY = Path(__file__).resolve().parents[2]
AT_ONCE = min(8, os.cpu_count() or 1)  # each compiles on the processor, and uses the device for a moment
SECONDS = 300


def main():
    binary, target = os.path.abspath(sys.argv[1]), sys.argv[2]

    def tilewright(*arguments):
        command = [binary, *map(str, arguments)]
        return subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=SECONDS)

    def problem(run: tuple[Case, dict]) -> str | None:
        with tempfile.TemporaryDirectory() as folder:
            try:
                expect_agreement(tilewright, Path(folder), *run, "--target", target, off_by=run[0].off_by)
            except (AssertionError, subprocess.TimeoutExpired) as difference:
                return f"{name_of(run)}: {str(difference).strip()}"
        return None

    runs = [(case, sizes) for case in CASES for sizes in case.sizes]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        problems = [found for found in pool.map(problem, runs) if found]
    for found in problems:
        print(found)
    print(f"{len(runs) - len(problems)} of {len(runs)} cases agree with NumPy on {target}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
