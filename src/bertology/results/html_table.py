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
    words = {column for column in columns if any(_in_words(row.get(column, "")) for row in rows)}
    head = "".join(f"<th{_kind('', column in words)}>{escape(column)}</th>" for column in columns)
    lines = ("".join(_cell(row.get(column, ""), column in words) for column in columns) for row in rows)
    return f'<div class="scroll"><table><tr>{head}</tr>{"".join(f"<tr>{line}</tr>" for line in lines)}</table></div>'


def _cell(value: object, words: bool) -> str:
    text = (f"{value:.3g}" if isfinite(value) else "–") if isinstance(value, float) else str(value)
    return f"<td{_kind(text, words)}>{escape(text)}</td>"


def _in_words(value: object) -> bool:
    """Whether a value is read, not compared: names stand at the left of their column, numbers at its right."""
    return isinstance(value, str) and value[:1].isalpha()


def _kind(text: str, words: bool) -> str:
    kind = "long" if len(text) > LONG else "word" if words else ""
    return f' class="{kind}"' if kind else ""
