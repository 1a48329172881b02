"""Progress of long computations: bars in terminals and notebooks, and a line every half minute where stderr is a file.

The commands and the Python functions use the same display: `progress_bars`.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

ProgressCallback = Callable[[int, int], None]
"""Called with what is done and the total, in any unit."""
ProgressFactory = Callable[[str], ProgressCallback]
"""Starts the display of a step with this title, and returns its callback."""
MessageCallback = Callable[[str], None]
"""Called with a sentence for the user."""

MIN_DONE_FRACTION = 0.02
"""No estimate is shown before this fraction is done."""
LINE_SECONDS = 30.0
"""Seconds between two lines where no bars can be drawn."""


class ProgressStep:
    """A callback whose display shows a detail beside the title, such as `3/16 shards, 2 workers`."""

    def __init__(self, show: Callable[[int, int, str], None]) -> None:
        self._show = show
        self._detail = ""

    def __call__(self, done: int, total: int) -> None:
        """Show what is done."""
        self._show(done, total, self._detail)

    def describe(self, detail: str) -> None:
        """Show this detail from the next call on."""
        self._detail = detail


def describe_step(callback: ProgressCallback, detail: str) -> None:
    """Show a detail with the progress of a step, if its display can."""
    if isinstance(callback, ProgressStep):
        callback.describe(detail)


def no_progress(done: int, total: int) -> None:
    """Report nothing."""


@contextmanager
def progress_bars() -> Generator[ProgressFactory]:
    """Show progress on stderr: bars in a terminal or notebook, which disappear when finished, else lines."""
    with _rich_bars() if sys.stderr.isatty() or can_draw_in_notebook() else _lines() as start:
        yield start


def is_interactive() -> bool:
    """Whether a person is watching: a terminal, or a notebook."""
    return sys.stderr.isatty() or is_notebook()


def is_notebook() -> bool:
    """Whether the code runs in a Jupyter notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


def can_draw_in_notebook() -> bool:
    """Whether bars can be drawn in a notebook; this needs ipywidgets."""
    if not is_notebook():
        return False
    from importlib.util import find_spec

    return find_spec("ipywidgets") is not None


@contextmanager
def _rich_bars() -> Generator[ProgressFactory]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[left]}")
    with Progress(*columns, console=console, transient=True) as bars:

        def start(title: str) -> ProgressCallback:
            task, start_time = bars.add_task(title, total=None, left=""), monotonic()

            def update(done: int, total: int, detail: str) -> None:
                left = ", ".join(filter(None, [time_left(monotonic() - start_time, done, total), detail]))
                bars.update(task, completed=done, total=total, left=left, visible=done < total)

            return ProgressStep(update)

        yield start


@contextmanager
def _lines() -> Generator[ProgressFactory]:
    """Print a line from a thread of its own, as a step may take minutes between two calls of its callback."""
    lines, is_finished = ProgressLines(), threading.Event()

    def print_until_finished() -> None:
        while not is_finished.wait(LINE_SECONDS):
            line = lines.describe()
            if line:
                print(line, file=sys.stderr, flush=True)

    thread = threading.Thread(target=print_until_finished, daemon=True)
    thread.start()
    try:
        yield lines.start
    finally:
        is_finished.set()
        thread.join()


@dataclass(eq=False)
class _Step:
    title: str
    start_time: float
    done: int = 0
    total: int = 0
    detail: str = ""

    def describe(self, now: float) -> str:
        if not self.total:
            return self.title
        left = time_left(now - self.start_time, self.done, self.total)
        return ", ".join(filter(None, [f"{self.title}: {self.done / self.total:.0%}", left, self.detail]))


@dataclass
class ProgressLines:
    """Progress of all unfinished steps in one line of text."""

    clock: Callable[[], float] = monotonic
    _steps: list[_Step] = field(default_factory=list[_Step])

    def start(self, title: str) -> ProgressCallback:
        """Add a step; it is removed when all of it is done."""
        step = _Step(title, self.clock())
        self._steps.append(step)

        def update(done: int, total: int, detail: str) -> None:
            step.done, step.total, step.detail = done, total, detail
            is_listed = step in self._steps
            if done >= total and is_listed:
                self._steps.remove(step)
            elif done < total and not is_listed:  # some steps start again, for example each epoch
                self._steps.append(step)

        return ProgressStep(update)

    def describe(self) -> str:
        """The line: `everything: 40%, about 3 min left; recording mini: 24%, about 40 s left`; empty if none runs."""
        return "; ".join(step.describe(self.clock()) for step in list(self._steps))


def time_left(elapsed: float, done: int, total: int) -> str:
    """The estimated time left as text, at the rate so far; empty if too little is done."""
    if not MIN_DONE_FRACTION * total < done < total:
        return ""
    seconds = elapsed * (total - done) / done
    return f"about {seconds / 60:.0f} min left" if seconds > 90 else f"about {seconds:.0f} s left"
