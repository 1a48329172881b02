"""The same pieces or words in two recordings of one corpus: a sample of stimuli, and their states in each layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.pieces import Special
from bertology.errors import Refusal
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording

Unit = Literal["pieces", "words"]
Places = NDArray[np.intp]

SITES: dict[Unit, str] = {"pieces": "hidden", "words": "hidden.words"}
FEWEST = 10


@dataclass(frozen=True)
class PairedStates:
    """Stimuli that two recordings have in common.

    `places` are (entry of the first, entry of the second, piece or word) for each stimulus, stimuli of one entry
    together; `sentences` numbers the input each belongs to.
    """

    first: Recording
    second: Recording
    unit: Unit
    places: Places

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def sentences(self) -> Places:
        """(stimulus,) which input it stands in."""
        return np.unique(self.places[:, 0], return_inverse=True)[1]

    @property
    def layers(self) -> tuple[int, int]:
        """How many layers each has, the embeddings included."""
        return self.first.encoder.layers + 1, self.second.encoder.layers + 1

    def states(self, of: Literal["first", "second"], layer: int) -> NDArray[Any]:
        """(stimulus, width) the states of one recording in one layer."""
        column = 0 if of == "first" else 1
        kept = (self.first, self.second)[column][SITES[self.unit]]
        found: list[NDArray[Any]] = []
        starts = np.flatnonzero(np.diff(self.places[:, column], prepend=-1))
        for rows in np.split(self.places, starts[1:]):
            found.append(np.asarray(kept[int(rows[0, column])][layer])[rows[:, 2]])
        return np.concatenate(found)


def paired_states(first: Recording, second: Recording, *, unit: Unit, most: int, seed: int) -> PairedStates:
    """A seeded sample of `most` stimuli (all, where there are fewer), whatever the order of the corpus."""
    keys = {_key(entry): place for place, entry in enumerate(second.entries)}
    common = [(place, keys[_key(entry)]) for place, entry in enumerate(first.entries) if _key(entry) in keys]
    # Entries in an order of their own, so that the same sentences give the same sample however they are arranged.
    common.sort(key=lambda pair: first.entries[pair[0]].pieces.ids.tobytes())
    found = [
        (one, other, place)
        for one, other in common
        for place in _shared(first.entries[one], second.entries[other], unit, first, second)
    ]
    if len(found) < FEWEST:
        raise Refusal(
            f"{first.encoder.name} and {second.encoder.name} have {len(found)} {unit} of {first.corpus.name} in common",
            f"at least {FEWEST}, to compare pairs of them",
            "Give a larger corpus",
        )
    places = np.array(found, np.intp)
    if len(places) > most:
        places = places[np.sort(np.random.default_rng(seed).permutation(len(places))[:most])]
    return PairedStates(first, second, unit, places)


def _key(entry: Entry) -> tuple[int, int, int]:
    return entry.item, entry.variant, entry.window


def _shared(one: Entry, other: Entry, unit: Unit, first: Recording, second: Recording) -> Sequence[int]:
    """The ordinary pieces, or the words that both show."""
    if unit == "words":
        return sorted(set(one.pieces.word.tolist()) & set(other.pieces.word.tolist()) - {-1})
    if not np.array_equal(one.pieces.ids, other.pieces.ids):
        raise Refusal(
            f"{first.encoder.name} and {second.encoder.name} cut the text into different pieces",
            "two models with the same vocabulary, or words as what is compared",
            "Give --unit words",
        )
    return np.flatnonzero(one.pieces.special == Special.NONE).tolist()
