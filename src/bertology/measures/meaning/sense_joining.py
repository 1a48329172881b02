"""A word's sentence joined to another, and how near the word then is to its own sense (reif2019)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Corpus, Item, joined
from bertology.corpus.sentence import Sentence
from bertology.encoder.encoder import Encoder
from bertology.maths.neighbours import Floats, Places, centroids, cosines
from bertology.measures.meaning.sense_material import Divided, Occurrences
from bertology.measures.probes.probe_material import WORD_SITE
from bertology.recording.recording import Recording

Joined = Literal["other sense", "same sense", "another word"]
JOINED: tuple[Joined, ...] = ("other sense", "same sense", "another word")


@dataclass(frozen=True)
class Joining:
    """Tested occurrences, the opposite sense of each, and for each way of joining the occurrence that is joined."""

    divided: Divided
    cases: Places
    opposite: NDArray[Any]
    partners: Mapping[Joined, Places]

    @property
    def sentences(self) -> NDArray[np.int64]:
        """(case,) the sentence of each."""
        return self.divided.tested.examples.entry[self.cases]


def joining(divided: Divided, most: int, seed: int) -> Joining:
    """Some occurrences of words that have at least two senses in training, with sentences to join them to.

    The sentences are drawn from those with annotated words, from other documents: with another sense of the word, with
    the same sense, and without the word. An occurrence that lacks one of the three is left out.
    """
    generator = np.random.default_rng([seed, 29])
    tested, learned = divided.tested, divided.learned
    first, cases = divided.runs[0]
    known = {(lemma, sense) for lemma, sense in zip(learned.lemma[first], learned.sense[first], strict=True)}
    rows: list[tuple[int, str, dict[Joined, int]]] = []
    for case in generator.permutation(cases).tolist():
        if (tested.lemma[case], tested.sense[case]) not in known:
            continue
        places = _partners(tested, case, known)
        if all(len(some) for some in places.values()) and len(rows) < most:
            drawn: dict[Joined, int] = {name: int(generator.choice(some)) for name, some in places.items()}
            rows.append((case, str(tested.sense[drawn["other sense"]]), drawn))
    return Joining(
        divided,
        np.array([case for case, _, _ in rows], np.intp),
        np.array([sense for _, sense, _ in rows], np.object_),
        {name: np.array([drawn[name] for _, _, drawn in rows], np.intp) for name in JOINED},
    )


def _partners(tested: Occurrences, case: int, known: set[tuple[Any, Any]]) -> dict[Joined, Places]:
    elsewhere = tested.documents != tested.documents[case]
    word = tested.lemma == tested.lemma[case]
    same = tested.sense == tested.sense[case]
    taught = np.array([pair in known for pair in zip(tested.lemma, tested.sense, strict=True)], np.bool_)
    return {
        "other sense": np.flatnonzero(elsewhere & word & ~same & taught),
        "same sense": np.flatnonzero(elsewhere & word & same),
        "another word": np.flatnonzero(elsewhere & ~word),
    }


def alone(own: Joining) -> NDArray[Any]:
    """(layer, case, width) the words in their own sentences."""
    return own.divided.tested.examples.features[:, own.cases]


def joined_states(
    own: Joining, name: Joined, recording: Recording, encoder: Encoder
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """(layer, case, width) the words in their own sentences with another after them, and which of them fit the model.

    Two sentences are one text with a blank between them, as one segment.
    """
    from bertology.recording.policy import Policy
    from bertology.recording.recorder import record

    tested = own.divided.tested
    items = [
        Item((joined((_text(tested, case), _text(tested, partner))),), id=str(number))
        for number, (case, partner) in enumerate(zip(own.cases, own.partners[name], strict=True))
    ]
    policy = replace(Policy(**recording.policy), long="skip")
    made = record(encoder, Corpus(tuple(items), name=f"joined to {name}"), (WORD_SITE,), policy=policy)
    first = own.divided.tested.examples.features
    found = np.zeros((len(first), len(items), first.shape[2]), np.float32)
    fits = np.zeros(len(items), np.bool_)
    for entry, states in zip(made.entries, made[WORD_SITE], strict=True):
        found[:, entry.item] = states[:, tested.word[own.cases[entry.item]]]
        fits[entry.item] = True
    return found, fits


def _text(tested: Occurrences, case: int) -> Sentence:
    return joined(tested.examples.entries[tested.examples.entry[case]].input.parts)


def to_centroids(own: Joining, vectors: NDArray[Any], senses: NDArray[Any] | None = None) -> tuple[Floats, Floats]:
    """(layer, case) cosines with the centroid of the own sense and with that of the opposite one, both of training."""
    learned = own.divided.learned
    first = own.divided.runs[0][0]
    taught = (learned.sense if senses is None else senses)[first]
    found = np.full((2, len(vectors), len(own.cases)), np.nan)
    for number, case in enumerate(own.cases.tolist()):
        lemma = own.divided.tested.lemma[case]
        pair = (own.divided.tested.sense[case], own.opposite[number])
        known = first[learned.lemma[first] == lemma]
        names = taught[learned.lemma[first] == lemma]
        classes = np.select([names == sense for sense in pair], [0, 1], default=2)
        means = centroids(learned.examples.features[:, known], classes, 2)
        found[:, :, number] = cosines(vectors[:, number, None], means)[:, 0].T
    return found[0], found[1]
