"""What searches have measured: one file, which the command `tilewright` uses too.

>>> tw.cache.path()
>>> tw.cache.use("project.sqlite")   # another file, from now on
>>> tw.cache.list()
"""

from __future__ import annotations

import builtins
from os import PathLike
from typing import Any

from ._native import cache_clear as _clear
from ._native import cache_export as _export
from ._native import cache_import as _import
from ._native import cache_list as _list
from ._native import cache_path as _path
from ._native import set_cache_path as _use

__all__ = ["clear", "export", "list", "load", "path", "use"]


def path() -> str:
    """Where the cache is."""
    return str(_path())


def use(path: str | PathLike[str] | None = None) -> None:
    """Uses another file from now on, which is made when something is tuned; without a path, the user's own."""
    if path is not None and not str(path):
        raise ValueError("a cache is a file, and this is the path of none")
    _use(path)


def list() -> builtins.list[dict[str, Any]]:
    """The programs that were tuned: a dict for each, with its sizes, target, trials and the best time in seconds."""
    return _list()


def clear() -> int:
    """Removes all records, and says how many there were. Functions keep what they have compiled."""
    return _clear()


def export(path: str | PathLike[str]) -> int:
    """Writes all records to one portable file, and says how many there were."""
    return _export(path)


def load(path: str | PathLike[str]) -> int:
    """Adds the records of a portable file, and says how many are new."""
    return _import(path)
