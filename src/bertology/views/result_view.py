"""`bertology.show`: a result as an interactive page, offline, in a notebook or a browser."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bertology.results.charts.files import require_figures
from bertology.results.result import Result
from bertology.views.shown import Shown


@dataclass(frozen=True)
class ResultView(Shown):
    """The figure of one result with tooltips, what can be chosen in it, and its numbers."""

    result: Result
    theme: Literal["auto", "light", "dark"] = "auto"
    height: int = 760

    @property
    def title(self) -> str:
        """What stands above it."""
        return self.result.analysis

    def html(self) -> str:
        """The page as text: self-contained, fetching nothing."""
        from bertology.results.charts.page import page

        name = self.result.analysis.replace("/", "-")
        return page(self.result, name, ["light", "dark"] if self.theme == "auto" else [self.theme])


def show(result: Result, theme: Literal["auto", "light", "dark"] = "auto") -> ResultView:
    """A result of any shape as a page: `.save("page.html")`, `.open()`, or the last line of a notebook's cell.

    By itself a result shows a drawing in notebooks, which is light; this one answers the pointer, has the layer of a
    trajectory on a slider, and holds a megabyte of Vega-Lite. It needs the `figures` extra.
    """
    require_figures()
    return ResultView(result, theme)
