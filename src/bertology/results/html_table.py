"""Records as an HTML table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

from markupsafe import Markup

from bertology.html import render_fragment

LONG_CELL_LENGTH = 40
"""Cells with more characters are prose and may be broken into lines."""


def html_table(records: Sequence[Mapping[str, Any]]) -> Markup:
    """One row per record; text is aligned left, numbers right."""
    names = list(dict.fromkeys(column for record in records for column in record))
    text_columns = {name for name in names if any(_is_text(record.get(name, "")) for record in records)}
    columns = [{"name": name, "class": "word" if name in text_columns else ""} for name in names]
    rows = [[_cell(record.get(name, ""), name in text_columns) for name in names] for record in records]
    return render_fragment("table.html", columns=columns, rows=rows)


def _cell(value: object, is_text: bool) -> dict[str, str]:
    content = format_value(value)
    return {"text": content, "class": "long" if len(content) > LONG_CELL_LENGTH else "word" if is_text else ""}


def format_value(value: object) -> str:
    """A value for a cell: numbers to three digits, a dash for missing ones."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.3g}" if isfinite(value) else "–"
    return str(value)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value[:1].isalpha()
