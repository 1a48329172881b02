"""The one exception for a user's mistake: what was found, what was expected, what to do.

The command line prints it as one paragraph and exits with status 2; anything else that escapes is a bug.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class Refusal(Exception):
    """Input that would give wrong numbers, refused early, with a way out."""

    def __init__(self, found: str, expected: str, remedy: str, *, where: str = "") -> None:
        super().__init__(found, expected, remedy, where)
        self.found = found
        self.expected = expected
        self.remedy = remedy
        self.where = where

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        return f"{place}{_sentence(self.found)} Expected {_sentence(self.expected)} {_sentence(self.remedy)}"


MANY = 30
"""So many names are no help in a sentence, where a near one is known and `remedy` says how to see them all."""


def unknown_name(kind: str, name: str, known: Iterable[str], *, remedy: str = "") -> Refusal:
    """A refusal of `name` that lists what exists, or the nearest of very many, and suggests the nearest."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
    suggestion = f"Did you mean {near[0]!r}? " if near else ""
    some = bool(near and remedy and len(names) > MANY)
    listed = ", ".join(near if some else names) or "(none)"
    return Refusal(
        f"There is no {kind} called {name!r}",
        f"one of {len(names)} names, of which these are nearest: {listed}" if some else f"one of: {listed}",
        suggestion + (remedy or "Choose a name from that list"),
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else text + "."
