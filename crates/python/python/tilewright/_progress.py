"""The progress bar of a search, in terminals and in notebooks."""

from __future__ import annotations

import sys
from typing import Any, Self


class Progress:
    """A progress bar by time or by trials. Without a terminal or a notebook it is hidden, unless `wanted` is True."""

    def __init__(self, name: str, seconds: float | None, trials: int | None, wanted: bool | None) -> None:
        self._name = name
        self._by_time = seconds is not None
        self._total: float = seconds if seconds is not None else float(trials or 0)
        self._wanted = wanted if wanted is not None else _is_interactive()
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self._wanted:
            import warnings

            with warnings.catch_warnings():
                # Without widgets, tqdm warns and shows a text bar in a notebook, which is good enough.
                warnings.simplefilter("ignore")
                from tqdm.auto import tqdm  # type: ignore[import-untyped, unused-ignore]

                layout = f"tuning {self._name} {{bar:30}} {{desc}}"
                self._bar = tqdm(total=self._total, bar_format=layout, leave=False)
        return self

    def __exit__(self, *failure: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def report(self, elapsed: float, trials: int, best: float, default: float) -> None:
        if self._bar is None:
            return
        done = elapsed if self._by_time else trials
        self._bar.n = min(done, self._total)
        speedup = f"{default / best:.2f} x default" if best > 0 else ""
        self._bar.set_description_str(f"{trials} trials, best {best * 1e6:.4g} us, {speedup}", refresh=False)
        self._bar.refresh()


def _is_interactive() -> bool:
    return sys.stderr.isatty() or "ipykernel" in sys.modules
