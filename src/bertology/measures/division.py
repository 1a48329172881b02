"""What trains a probe and what tests it: another corpus, or some of the recording, whole documents where known."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.passes import drawn
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.recording.sites import Site


@dataclass(frozen=True)
class Division:
    """How to divide: train on the first `limit` sentences (0: all) of `corpus`, or on a `share` of the recording.

    Of that share too at most `limit` sentences are trained on, drawn at random. With `half` the raw sites of `corpus`
    are kept in float16.
    """

    corpus: str
    limit: int
    share: float
    seed: int
    half: bool = False

    def parts(
        self,
        recording: Recording,
        encoder: Encoder | None,
        sites: Sequence[Site | str],
        *,
        purpose: str,
        layers: Sequence[str] = ("heads", "relations"),
    ) -> tuple[tuple[Recording, list[int]], tuple[Recording, list[int]]]:
        """What to train on and what to test on: a recording each, and the places of its entries.

        `layers` is the annotation that the other corpus must carry.
        """
        if not self.corpus:
            chosen = training_part(recording.entries, self.share, seed=self.seed)
            first, second = (np.flatnonzero(some).tolist() for some in (chosen, ~chosen))
            return (recording, drawn(recording, self.limit, self.seed, first)), (recording, second)
        learned = self._recorded(recording, encoder, sites, purpose, layers)
        return (learned, list(range(len(learned)))), (recording, list(range(len(recording))))

    def unused(self, recording: Recording) -> int:
        """How many sentences of the share to train on the limit leaves out."""
        if self.corpus or not self.limit:
            return 0
        return max(0, int(training_part(recording.entries, self.share, seed=self.seed).sum()) - self.limit)

    def not_drawn(self, recording: Recording) -> str:
        """The same for the end of a note on sizes; nothing where there are none."""
        left = self.unused(recording)
        return f"; {left} sentences more were there to train on and not drawn" if left else ""

    def _recorded(
        self,
        recording: Recording,
        encoder: Encoder | None,
        sites: Sequence[Site | str],
        purpose: str,
        layers: Sequence[str],
    ) -> Recording:
        from bertology.corpus.builtin import corpus_named
        from bertology.recording.policy import Policy
        from bertology.recording.recorder import record

        if encoder is None:
            raise Refusal(
                f"{purpose} --train needs the model itself, and a recording cannot be run",
                "a model",
                "Give --model and --corpus, or leave --train out to train on a part of the recording",
            )
        corpus = corpus_named(self.corpus, limit=self.limit or None)
        corpus.require(*layers, purpose=f"{purpose} --train")
        policy = Policy(**recording.policy)
        return record(encoder, corpus, sites, policy=replace(policy, half=policy.half or self.half))


def random_form(encoder: Encoder | None) -> Encoder | None:
    """The encoder with the fresh weights that the recordings called `randomised` are made with."""
    from bertology.encoder.huggingface import HuggingFaceEncoder

    return encoder.randomised(seed=0) if isinstance(encoder, HuggingFaceEncoder) else None


def training_part(entries: Sequence[Entry], share: float, *, seed: int = 0) -> NDArray[np.bool_]:
    """(entry,) which entries are for training: whole documents until they make at least `share` of the entries.

    Documents come in an order that depends on their text and the seed, never on the order of the corpus; where there
    are fewer than two documents, equal sentences stay together instead. At least one of them is left for the test.
    """
    groups = _grouped(entries, by_document=True)
    if len(groups) < 2:
        groups = _grouped(entries, by_document=False)
    texts = {name: "\n".join(sorted(" ".join(entries[i].input.words) for i in own)) for name, own in groups.items()}
    order = sorted(groups, key=lambda name: hashlib.sha256(f"{seed}\n{texts[name]}".encode()).digest())
    chosen = np.zeros(len(entries), np.bool_)
    for name in order[:-1]:
        if chosen.sum() >= share * len(entries):
            break
        chosen[groups[name]] = True
    return chosen


def _grouped(entries: Sequence[Entry], *, by_document: bool) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for place, entry in enumerate(entries):
        document = entry.input.parts[0].document if by_document else ""
        # A sentence of no document stands for itself.
        groups[document or f"\n{' '.join(entry.input.words)}"].append(place)
    if by_document and not any(entry.input.parts[0].document for entry in entries):
        return {}
    return groups
