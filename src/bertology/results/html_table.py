"""Records as an HTML table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any


def html_table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Records as a table, one a line."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = ("".join(f"<td>{escape(_cell(row.get(column, '')))}</td>" for column in columns) for row in rows)
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(f"<tr>{line}</tr>" for line in lines)}</table></div>'


def _cell(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)
