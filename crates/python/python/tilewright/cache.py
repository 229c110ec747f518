"""What searches have measured: one file, which the command `tilewright` uses too.

>>> tw.cache.path()
>>> tw.cache.use("project.sqlite")   # another file, from now on
>>> tw.cache.list()
"""

from ._native import cache_clear as _clear
from ._native import cache_export as _export
from ._native import cache_import as _import
from ._native import cache_list as _list
from ._native import cache_path as _path
from ._native import set_cache_path as _use

__all__ = ["clear", "export", "list", "load", "path", "use"]


def path():
    """Where the cache is."""
    return _path()


def use(path=None):
    """Uses another file from now on, which is made when something is tuned; without a path, the user's own."""
    _use(path)


def list():
    """The programs that were tuned: a dict for each, with its sizes, target, trials and the best time in seconds."""
    return _list()


def clear():
    """Removes all records, and says how many there were. Functions keep what they have compiled."""
    return _clear()


def export(path):
    """Writes all records to one portable file, and says how many there were."""
    return _export(path)


def load(path):
    """Adds the records of a portable file, and says how many are new."""
    return _import(path)
