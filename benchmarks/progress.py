"""How far a long run has come, and when it will end."""

import time
from dataclasses import dataclass, field

PREPARATION_SECONDS = 15  # of a row: libraries are loaded, results compared
BENCH_SECONDS = 1.5  # of a burst of ours, compiling included


def expected_seconds(tuning: float, rounds: int, own: int, peers: int, burst: float) -> float:
    """A guess for one row, before anything is known about this machine."""
    return tuning * 1.2 + PREPARATION_SECONDS + rounds * (own * BENCH_SECONDS + peers * burst * 1.5)


@dataclass
class Progress:
    """Guesses for the rows to come, corrected by how long those behind took."""

    guesses: list[float]
    done: int = 0
    began: float = field(default_factory=time.monotonic)

    def step(self):
        self.done += 1

    def seconds_left(self, now: float | None = None) -> float:
        behind = sum(self.guesses[: self.done])
        passed = (time.monotonic() if now is None else now) - self.began
        correction = passed / behind if behind else 1.0
        return sum(self.guesses[self.done :]) * correction

    def __str__(self) -> str:
        left = self.seconds_left()
        return f"row {self.done + 1} of {len(self.guesses)}, {duration(left)} to go"


def duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return "less than a minute"
    return f"about {minutes} min" if minutes < 90 else f"about {seconds / 3600:.1f} h"
