"""What a site wants of a layer besides its rows, said before the pass: where it can be had, no map is made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from bertology.recording.pairs import Pairs
    from bertology.recording.word_level import Words


class Wanted(NamedTuple):
    """Sums over pairs, and the strongest word of each word, where they are wanted."""

    pairs: Pairs | None = None
    words: Words | None = None


def rows_alone(prepared: Any) -> Wanted:
    """Rows are all that is wanted."""
    return Wanted()
