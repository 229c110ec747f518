"""A worker process that is asked in JSON, one object a line, and answers so; whoever starts it decides what is said."""

import json
import os
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path


class Unavailable(Exception):
    """Why a contender has no number."""


class Worker:
    """Its process, from the start, which is not waited for, to the end."""

    def __init__(self, command: Sequence[str | Path], environment: dict[str, str], begin: Callable[[], None]):
        """`begin` is called in the process before anything else."""
        self._unread = b""
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=os.environ | environment,
            preexec_fn=begin,
        )

    def stop(self):
        """Lets it do nothing until `go_on`."""
        self._process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self._process.send_signal(signal.SIGCONT)

    def is_alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, question: dict, limit: float) -> dict:
        try:
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Unavailable(self._last_words()) from None
        return self.answer(limit)

    def answer(self, limit: float) -> dict:
        """Its next line."""
        deadline = time.monotonic() + limit
        output = self._process.stdout.fileno()
        while b"\n" not in self._unread:
            readable, _, _ = select.select([output], [], [], max(0, deadline - time.monotonic()))
            if not readable:
                self._process.kill()  # what it says later would be taken for the answer to something else
                raise Unavailable(f"no answer within {limit:.0f} s")
            received = os.read(output, 1 << 16)
            if not received:
                raise Unavailable(self._last_words())
            self._unread += received
        line, self._unread = self._unread.split(b"\n", 1)
        return json.loads(line)

    def close(self):
        self._process.kill()
        self._process.communicate()
        self._log.close()

    def _last_words(self) -> str:
        status = self._process.wait()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f"the worker ended with status {status}" + (f": {said[-1]}" if said else "")
