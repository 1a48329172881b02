"""Batches for analyses that run the model themselves, over the entries of a recording."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from bertology.encoder.encoder import Encoder
from bertology.recording.plan import batches, pieces_at_once
from bertology.recording.recording import Recording

if TYPE_CHECKING:
    from bertology.recording.frame import Frame


def frames_of(
    recording: Recording, encoder: Encoder, *, sentences: int = 0, seed: int = 0
) -> Iterator[tuple[list[int], Frame]]:
    """Entries of similar length, by their places in the recording, as frames on the encoder's device.

    With `sentences`, of that many entries alone.
    """
    from bertology.recording.frame import Frame

    chosen = drawn(recording, sentences, seed)
    lengths = [len(recording.entries[place].pieces) for place in chosen]
    for some in batches(lengths, pieces_at_once(encoder.device)):
        places = [chosen[index] for index in some]
        yield places, Frame([recording.entries[place] for place in places], encoder.device)


def drawn(recording: Recording, count: int, seed: int, among: Sequence[int] | None = None) -> list[int]:
    """The places of `count` entries (0: of all), drawn by their pieces and the seed, whatever order they come in.

    With `among`, of those entries alone.
    """
    places = list(range(len(recording)) if among is None else among)
    if not count or count >= len(places):
        return places

    def luck(place: int) -> bytes:
        ids = recording.entries[place].pieces.ids
        return hashlib.sha256(f"{seed} {list(ids)}".encode()).digest()

    return sorted(sorted(places, key=luck)[:count])
