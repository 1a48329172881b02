"""Self-contained pages that notebooks show and that can be saved or opened in a browser; `bertology.show`."""

from __future__ import annotations

import tempfile
import webbrowser
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bertology.atomic_files import write_atomically
from bertology.html import render
from bertology.results.drawing.files import figure_page
from bertology.results.drawing.selection import select_panels
from bertology.results.result import Result

MIN_HEIGHT, MAX_HEIGHT = 120, 4000
"""A frame in a notebook follows the height of its page between these, in pixels."""


class HtmlView(ABC):
    """A self-contained HTML page."""

    height: int = 760
    """Height of its frame in a notebook, in pixels, until the page has said how high it is."""

    @property
    @abstractmethod
    def title(self) -> str:
        """The title of the page."""

    @abstractmethod
    def html(self) -> str:
        """The page; it needs no network."""

    def content(self, suffix: str) -> bytes:
        """The content of a file with this suffix."""
        return self.html().encode()

    def save(self, path: str | Path) -> Path:
        """Write the page to a file."""
        target = Path(path)
        return write_atomically(target, self.content(target.suffix))

    def open(self) -> Path:
        """Save the page to a temporary file and open it in the browser."""
        path = self.save(Path(tempfile.mkdtemp(prefix="bertology-view-"), "view.html"))
        webbrowser.open(path.as_uri())
        return path

    @property
    def data(self) -> str:
        """The page; the name that IPython's HTML objects have for it."""
        return self.html()

    def display(self) -> None:
        """Show the page in the output of a notebook's cell, or else in the browser."""
        try:
            from IPython.core.getipython import get_ipython
            from IPython.display import display
        except ImportError:
            self.open()
            return
        if get_ipython() is None:
            self.open()
        else:
            display(self)

    def _repr_html_(self) -> str:
        """The page in a sandboxed frame, so that its scripts and the notebook's do not meet."""
        title = self.title.encode("utf-8", "replace").decode("utf-8")
        return render(
            "frame.html",
            page=self.html(),
            title=title,
            height=self.height,
            min_height=MIN_HEIGHT,
            max_height=MAX_HEIGHT,
        )


@dataclass(frozen=True)
class ResultView(HtmlView):
    """The figure of a result with tooltips, its numbers and, for a trajectory, a choice of layer."""

    result: Result
    theme: Literal["auto", "light", "dark"] = "auto"
    panels: str | Sequence[str] = ()
    height: int = 760

    @property
    def title(self) -> str:
        """The name of the analysis."""
        return self.result.analysis

    def html(self) -> str:
        """The page; it needs no network."""
        return figure_page(self.result, ["light", "dark"] if self.theme == "auto" else [self.theme], self.panels)


def show(
    result: Result, theme: Literal["auto", "light", "dark"] = "auto", *, panels: str | Sequence[str] = ()
) -> ResultView:
    """A result of any shape as a page: `.save("page.html")`, `.open()`, or the last expression of a notebook's cell.

    With the theme `auto` it follows the browser's. `panels` chooses measures, rows of a table or numbers of sentences,
    as for `Result.figure`.
    """
    select_panels(result.data, panels)  # a name that does not exist is refused here and not when the page is shown
    return ResultView(result, theme, panels)
