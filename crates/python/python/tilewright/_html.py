"""The HTML that notebooks show for functions, kernels and searches: the methods `_repr_html_` call these functions."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._function import Function, Tuned
    from ._native import Kernel

_LEFT = 'style="text-align: left; vertical-align: top"'


def of_function(function: Function) -> str:
    """Returns the signature, the number of kernels, and the schedule of the kernel that was used last."""
    count = function._kernel_count
    rows = {"kernels": str(count) if count else "none yet: a call compiles one"}
    return _card("function", function.signature, rows, function.schedule if count else "")


def of_kernel(kernel: Kernel) -> str:
    """Returns the signature, the sizes, the target and the schedule."""
    target, origin = kernel._made_for
    sizes = ", ".join(f"{name} = {size}" for name, size in kernel.sizes.items())
    return _card("kernel", kernel.signature, {"sizes": sizes, "target": target, "compiled with": origin}, kernel.schedule)


def of_search(found: Tuned) -> str:
    """Returns the times before and after, the effort, and the best schedule."""
    rows = {
        "best": f"{found.seconds * 1e6:.4g} us",
        "default schedule": f"{found.default_seconds * 1e6:.4g} us",
        "speedup": f"{found.speedup:.2f}",
        "trials": f"{found.trials} in {found.elapsed:.1f} s",
        "records": found.kept,
    }
    return _card("tuning", found.name, rows, found.schedule)


def _card(kind: str, title: str, rows: dict[str, str], schedule: str) -> str:
    """Returns a table with a title, and a schedule that can be unfolded. All texts are escaped."""
    lines = [f"<tr><th {_LEFT}>{escape(name)}</th><td {_LEFT}>{escape(text)}</td></tr>" for name, text in rows.items() if text]
    head = f"<div><b>tilewright {kind}</b> <code>{escape(title)}</code></div>"
    steps = f"<details><summary>schedule</summary><pre>{escape(schedule)}</pre></details>" if schedule else ""
    return f"{head}<table>{''.join(lines)}</table>{steps}"
