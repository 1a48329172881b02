"""Records as an HTML table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import isfinite
from typing import Any

LONG = 40
"""Letters from which on a cell is a sentence rather than a number, and may be broken into lines."""


def html_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Records as a table, one a line."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = ("".join(_cell(row.get(column, "")) for column in columns) for row in rows)
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(f"<tr>{line}</tr>" for line in lines)}</table></div>'


def _cell(value: object) -> str:
    text = (f"{value:.3g}" if isfinite(value) else "–") if isinstance(value, float) else str(value)
    kind = ' class="long"' if len(text) > LONG else ""
    return f"<td{kind}>{escape(text)}</td>"
