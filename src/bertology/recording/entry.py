"""One row of a recording: an input, its pieces, and where in the corpus it came from."""

from __future__ import annotations

from dataclasses import dataclass

from bertology.corpus.corpus import Input
from bertology.encoder.pieces import Pieces


@dataclass(frozen=True, slots=True)
class Entry:
    """The `variant`-th input of the corpus's `item`-th item; `window` counts the windows of an over-long input."""

    item: int
    variant: int
    window: int
    input: Input
    pieces: Pieces
