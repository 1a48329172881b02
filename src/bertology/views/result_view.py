"""`bertology.show`: a result as an interactive page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bertology.results.drawing.files import figure_page
from bertology.results.result import Result
from bertology.views.html_view import HtmlView


@dataclass(frozen=True)
class ResultView(HtmlView):
    """The figure of a result with tooltips, its numbers and, for a trajectory, a choice of layer."""

    result: Result
    theme: Literal["auto", "light", "dark"] = "auto"
    height: int = 760

    @property
    def title(self) -> str:
        """The name of the analysis."""
        return self.result.analysis

    def html(self) -> str:
        """The page; it needs no network."""
        return figure_page(self.result, ["light", "dark"] if self.theme == "auto" else [self.theme])


def show(result: Result, theme: Literal["auto", "light", "dark"] = "auto") -> ResultView:
    """A result of any shape as a page: `.save("page.html")`, `.open()`, or the last expression of a notebook's cell.

    With the theme `auto` it follows the browser's.
    """
    return ResultView(result, theme)
