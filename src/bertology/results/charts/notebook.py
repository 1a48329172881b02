"""A result in a notebook: its figure as a drawing that needs no network, or a table where figures are not installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.results.result import Result

ROWS = 200


def bundle(result: Result) -> dict[str, Any]:
    """The same result in the forms a notebook may choose from.

    The drawing is SVG because Altair's own HTML fetches its libraries from the network; `result.figure()` is the chart
    itself, shown by whichever renderer Altair was told to use.
    """
    from bertology.results.charts.files import require_figures, svg

    plain = {"text/plain": f"{result.analysis}: {result.data.shape}, {result.rests_on}"}
    try:
        require_figures()
    except Refusal:
        return plain | {"text/html": _html(result)}
    return plain | {"image/svg+xml": svg(result, "light")}


def _html(result: Result) -> str:
    from bertology.results.html_table import html_table

    rows = result.rows()
    left = f"<p>The first {ROWS} of {len(rows)} rows; to_pandas() has all.</p>" if len(rows) > ROWS else ""
    return html_table(rows[:ROWS]) + left
