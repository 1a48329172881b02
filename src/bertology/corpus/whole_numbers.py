"""Whether a cell is a whole number: stricter than `int`, which takes blanks, underscores and other digits."""

from __future__ import annotations

LONGEST = 9


def whole_number(text: str) -> int | None:
    """The number that 1 to 9 ASCII digits spell, else None."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= LONGEST else None
