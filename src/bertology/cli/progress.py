"""Progress bars on stderr, drawn only for people, with an estimate of what is left."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from bertology.recording.recorder import Progress

FIRST = 0.02
"""Nothing is foretold before this share is done."""


@contextmanager
def progress_bars() -> Generator[Callable[[str], Progress]]:
    """A function that starts a bar with a title and returns what moves it: (done, total). A finished one goes away."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    console = Console(stderr=True)
    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[left]}")
    with Progress(*columns, console=console, transient=True, disable=not sys.stderr.isatty()) as bars:

        def start(title: str) -> Callable[[int, int], None]:
            task, begun = bars.add_task(title, total=None, left=""), monotonic()

            def move(done: int, total: int) -> None:
                left = time_left(monotonic() - begun, done, total)
                bars.update(task, completed=done, total=total, left=left, visible=done < total)

            return move

        yield start


def time_left(elapsed: float, done: int, total: int) -> str:
    """What is left in words, if the rest goes on as what is done did; nothing where too little is done to tell."""
    if not FIRST * total < done < total:
        return ""
    seconds = elapsed * (total - done) / done
    return f"about {seconds / 60:.0f} min left" if seconds > 90 else f"about {seconds:.0f} s left"
