"""Batches for analyses that run the model themselves, over the entries of a recording."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from bertology.encoder.encoder import Encoder
from bertology.recording.plan import batches, pieces_at_once
from bertology.recording.recording import Recording

if TYPE_CHECKING:
    from bertology.recording.frame import Frame


def frames_of(recording: Recording, encoder: Encoder) -> Iterator[tuple[list[int], Frame]]:
    """Entries of similar length, by their places in the recording, as frames on the encoder's device."""
    from bertology.recording.frame import Frame

    lengths = [len(entry.pieces) for entry in recording.entries]
    for some in batches(lengths, pieces_at_once(encoder.device)):
        yield list(some), Frame([recording.entries[index] for index in some], encoder.device)
