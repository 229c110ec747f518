"""The processors of this machine, and what to know about it beside a measurement. Linux only."""

import os
import platform
from pathlib import Path


def cores() -> list[int]:
    """One processor for each physical core that this process may use, the highest first: the first serve interrupts more often."""
    seen: dict[str, int] = {}
    for processor in sorted(os.sched_getaffinity(0)):
        siblings = Path(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list")
        core = siblings.read_text().strip() if siblings.exists() else str(processor)
        seen.setdefault(core, processor)
    return sorted(seen.values(), reverse=True)


def processor_name() -> str:
    """The name the processor gives itself, with family and model, for virtual machines often hide the former."""
    fields: dict[str, str] = {}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        key, _, value = line.partition(":")
        fields.setdefault(key.strip(), value.strip())
    name = fields.get("model name", platform.machine())
    if "cpu family" in fields:
        name += f", family {fields['cpu family']}, model {fields['model']}"
    return name


def load() -> float:
    """Processes that ran or wanted to, on average over the last minute."""
    return os.getloadavg()[0]
