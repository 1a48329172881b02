"""Work is said before it starts: its estimated time and space, and the bounds above which it is refused."""

from __future__ import annotations

import math
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass

from bertology.errors import CostError
from bertology.store_paths import RemotePath, StorePath

MAX_HOURS = 12.0
"""Work that is estimated to take longer is refused, unless `--max-hours` allows it."""
MESSAGE_SECONDS = 60.0
"""Work that takes less is not worth a message."""
SMALL_BYTES = 256e6
"""Less is written without asking whether the disk has space for it."""
UNITS = ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes"), (1.0, "seconds"))


@dataclass(frozen=True)
class WorkEstimate:
    """The seconds that work takes on this machine, and the bytes that it keeps."""

    seconds: float = 0.0
    n_bytes: float = 0.0

    def __add__(self, other: WorkEstimate) -> WorkEstimate:
        return WorkEstimate(self.seconds + other.seconds, self.n_bytes + other.n_bytes)

    def scaled(self, factor: float) -> WorkEstimate:
        """So many times this work."""
        return WorkEstimate(self.seconds * factor, self.n_bytes * factor)

    def shared_by(self, n_workers: int) -> WorkEstimate:
        """The work of each of several workers that divide it evenly; all bytes are kept."""
        return WorkEstimate(self.seconds / max(1, n_workers), self.n_bytes)


def check_work(
    title: str,
    work: WorkEstimate,
    max_hours: float,
    *,
    folder: StorePath | None = None,
    notify: Callable[[str], None] | None = None,
) -> None:
    """Tell what takes longer than a minute; refuse more than `max_hours`, or more bytes than there is space for.

    Bytes are kept in the `folder`, or in memory without one.
    """
    size = f", and {format_bytes(work.n_bytes)} to keep" if work.n_bytes >= 1e6 else ""
    message = f"{title} takes about {format_duration(work.seconds)} on this machine{size}"
    if work.seconds > 3600 * max_hours:
        raise CostError(
            message,
            f"at most {format_hours(max_hours)}",
            f"Use fewer texts (--limit) or a smaller model, or allow it with --max-hours {_allowing_hours(work)}; in "
            f"Python: max_hours={_allowing_hours(work)}",
        )
    free = _free_bytes(folder)
    if work.n_bytes > free:
        place = "memory" if folder is None else f"the disk of {folder}"
        raise CostError(
            message,
            f"at most the {format_bytes(free)} that {place} has",
            "Use fewer texts (--limit), reduced sites such as attention.entropy instead of attention, or float16 "
            f"(--float16); or {'record into a folder' if folder is None else 'choose a folder on a larger disk'}",
        )
    if notify is not None and work.seconds > MESSAGE_SECONDS:
        notify(f"{message}.")


def format_duration(seconds: float) -> str:
    """A duration in its largest unit: "41 days", "2.5 hours", "3 minutes"."""
    size, name = next((unit for unit in UNITS if seconds >= 1.5 * unit[0]), UNITS[-1])
    number = seconds / size
    return f"{number:,.1f} {name}" if name in {"hours", "days"} and number < 10 else f"{number:,.0f} {name}"


def format_hours(hours: float) -> str:
    """A bound in hours."""
    return "1 hour" if hours == 1 else f"{hours:g} hours"


def format_bytes(n_bytes: float) -> str:
    """A number of bytes in its unit of 1000: "77 GB"."""
    power = min(5, max(0, int(math.log10(max(1.0, n_bytes)) // 3)))
    number = n_bytes / 1000**power
    return f"{number:.{0 if number >= 10 or not power else 1}f} {('bytes', 'kB', 'MB', 'GB', 'TB', 'PB')[power]}"


def _allowing_hours(work: WorkEstimate) -> int:
    """A bound that allows the work even if it takes half as long again."""
    return math.ceil(1.5 * work.seconds / 3600)


def _free_bytes(folder: StorePath | None) -> float:
    """The bytes free on the disk of a folder, which need not exist; without one, all memory of the machine.

    An object store does not say how much it takes.
    """
    if isinstance(folder, RemotePath):
        return math.inf
    if folder is not None:
        existing = next((path for path in (folder, *folder.absolute().parents) if path.exists()), None)
        return math.inf if existing is None else float(shutil.disk_usage(existing).free)
    try:
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):  # not every system says so
        return math.inf
