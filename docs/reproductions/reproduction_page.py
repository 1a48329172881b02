"""What the scripts of these pages share: numbers as Markdown, and putting them between a page's two marks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from bertology.results.estimate import Estimate

BEGIN, END = "<!-- numbers: begin -->", "<!-- numbers: end -->"


def percent(estimate: Estimate) -> str:
    """A share with its interval, in percent."""
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a line for each row."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def written(page: str, numbers: str) -> str:
    """The page with other numbers."""
    return re.sub(f"{BEGIN}.*{END}", lambda _: f"{BEGIN}\n\n{numbers}\n\n{END}", page, flags=re.DOTALL)
