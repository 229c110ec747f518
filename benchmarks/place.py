"""Where the contenders of a row run: on some processors of this machine, or on a device."""

import os
from dataclasses import dataclass
from typing import Protocol

from worker import Unavailable


class Place(Protocol):
    threads: int | None

    def label(self) -> str:
        """A word for names of files."""

    def arguments(self) -> list[str]:
        """What `tilewright run`, `bench` and `tune` are told."""

    def pin(self):
        """Called in a process before it begins to work."""

    def expect(self, answer: dict):
        """Fails if `tilewright bench` says that it measured elsewhere."""


@dataclass(frozen=True)
class Placement:
    """The threads that a contender may use, and the processors for them; the same for all contenders of a row."""

    threads: int
    processors: tuple[int, ...]

    def label(self) -> str:
        return str(self.threads)

    def arguments(self) -> list[str]:
        return ["--threads", str(self.threads)]

    def pin(self):
        os.sched_setaffinity(0, self.processors)

    def expect(self, answer: dict):
        if answer["threads"] != self.threads:
            raise Unavailable(f"ran on {answer['threads']} threads and not on {self.threads}")


@dataclass(frozen=True)
class Device:
    """A device by its name, such as cuda:0; the processors are there for everybody."""

    target: str
    threads: None = None

    def label(self) -> str:
        return self.target.replace(":", "")

    def arguments(self) -> list[str]:
        return ["--target", self.target]

    def pin(self):
        pass

    def expect(self, answer: dict):
        if answer["target"] != self.target:
            raise Unavailable(f"ran on {answer['target']} and not on {self.target}")
