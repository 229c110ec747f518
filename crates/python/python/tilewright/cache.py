"""The cache of tuning results: one file, which the command `tilewright` uses too.

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
    """Returns the path of the cache."""
    return str(_path())


def use(path: str | PathLike[str] | None = None) -> None:
    """Uses another cache file from now on, or the user's default cache without a path. Tuning creates a missing file."""
    if path is not None and not str(path):
        raise ValueError("the path of the cache is empty: give the path of a file")
    _use(path)


def list() -> builtins.list[dict[str, Any]]:
    """Lists the tuned programs: a dict for each, with its sizes, target, threads, trials and the best time in seconds."""
    return _list()


def clear() -> int:
    """Removes all records, and returns their number. Functions keep their compiled kernels."""
    return _clear()


def export(path: str | PathLike[str]) -> int:
    """Writes all records to one portable file, and returns their number."""
    return _export(path)


def load(path: str | PathLike[str]) -> int:
    """Adds the records of a portable file, and returns the number of new ones."""
    return _import(path)
