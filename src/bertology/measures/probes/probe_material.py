"""What probes of hidden states are shown: cases with a label and a vector a layer, to train on and to test on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.division import Division, training_part
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording

Numbers = NDArray[Any]
WORD_SITE = "hidden.words"


class Case(NamedTuple):
    """One thing to label: its label, its type for control labels, and the words (start, end) of its spans."""

    label: str
    type: str
    spans: tuple[tuple[int, int], ...]


Cases = Callable[[Entry], Sequence[Case]]


@dataclass(frozen=True)
class Examples:
    """Cases of some entries: `features` is (layer, case, width), the spans' vectors end to end; the rest is (case,).

    `entry` is the place in `entries` of the sentence that a case is from.
    """

    features: Numbers
    label: Numbers
    type: Numbers
    entry: Numbers
    entries: tuple[Entry, ...]

    def __len__(self) -> int:
        return len(self.label)

    def only(self, kept: Numbers) -> Examples:
        """Some of the cases."""
        return replace(
            self, features=self.features[:, kept], label=self.label[kept], type=self.type[kept], entry=self.entry[kept]
        )


@dataclass(frozen=True)
class Task:
    """Cases to train on and to test on, and their labels, the most frequent in training first.

    `rare` are the labels that were left out, with how many cases they have; `not_drawn` tells of sentences that could
    have been trained on.
    """

    learned: Examples
    tested: Examples
    labels: tuple[str, ...]
    rare: dict[str, int]
    not_drawn: str = ""

    def numbered(self, part: Examples) -> NDArray[np.int64]:
        """(case,) the place of its label."""
        numbers = {name: number for number, name in enumerate(self.labels)}
        return np.array([numbers[name] for name in part.label.tolist()], np.int64)

    @property
    def edges(self) -> NDArray[np.float64]:
        """The inner edges of the labels' shares of training, for control labels in the same proportions."""
        counts = np.bincount(self.numbered(self.learned), minlength=len(self.labels))
        return np.cumsum(counts / counts.sum())[:-1]

    @property
    def sizes(self) -> str:
        """How much there is, in words."""
        said = f"{len(self.labels)} labels, {len(self.learned)} cases to train on, {len(self.tested)} to test on"
        if self.rare:
            some = ", ".join(sorted(self.rare)[:5]) + (" ..." if len(self.rare) > 5 else "")
            said += f"; {sum(self.rare.values())} cases of {len(self.rare)} rare labels left out ({some})"
        return said + self.not_drawn


def span_examples(recording: Recording, places: Sequence[int], cases_of: Cases) -> Examples:
    """The cases of some entries, a span's vector being the mean over its words that have pieces.

    Entries come in an order of their own, so that the same sentences give the same numbers however they are arranged.
    A case with a span of which no word has a piece is left out.
    """
    order = sorted(places, key=lambda place: recording.entries[place].pieces.ids.tobytes())
    states = recording[WORD_SITE]
    vectors: list[Numbers] = []
    kept: list[tuple[Case, int]] = []
    for number, place in enumerate(order):
        entry = recording.entries[place]
        present = np.zeros(entry.pieces.words, np.bool_)
        present[[word for word in set(entry.pieces.word.tolist()) if word >= 0]] = True
        own = [case for case in cases_of(entry) if _has_words(case, present, entry)]
        if own:
            vectors.append(_vectors(np.asarray(states[place], np.float32), own, present))
            kept.extend((case, number) for case in own)
    return gathered(vectors, kept, [recording.entries[place] for place in order])


def gathered(vectors: Sequence[Numbers], kept: Sequence[tuple[Case, int]], entries: Sequence[Entry]) -> Examples:
    """Examples from (layer, case, width) of each entry that has any, and the cases with their entries."""
    return Examples(
        np.concatenate(vectors, 1) if vectors else np.zeros((0, 0, 0), np.float32),
        np.array([case.label for case, _ in kept], np.object_),
        np.array([case.type for case, _ in kept], np.object_),
        np.array([number for _, number in kept], np.int64),
        tuple(entries),
    )


def divided(
    recording: Recording,
    encoder: Encoder | None,
    division: Division,
    cases_of: Cases,
    *,
    purpose: str,
    layers: Sequence[str],
) -> tuple[Examples, Examples]:
    """The cases of spans to train on and to test on."""
    first, second = division.parts(recording, encoder, (WORD_SITE,), purpose=purpose, layers=layers)
    return span_examples(*first, cases_of), span_examples(*second, cases_of)


def task_of(learned: Examples, tested: Examples, minimum: int, *, purpose: str, not_drawn: str = "") -> Task:
    """The labels that have `minimum` cases to train on, and the cases that carry them."""
    counts: Counter[str] = Counter(learned.label.tolist())
    new: Counter[str] = Counter(tested.label.tolist())
    _refuse_empty(counts, new, purpose)
    labels = tuple(name for count, name in sorted((-n, name) for name, n in counts.items()) if -count >= minimum)
    missing = sorted(set(new) - set(counts))
    if missing and minimum <= 1:
        raise Refusal(
            f"{purpose}: the label {missing[0]!r} is in the test and not in training, nobody can learn it",
            "labels that occur in training",
            "Train on more, or leave rare labels out with --minimum 2 or more",
        )
    if len(labels) < 2:
        only = f"only {labels[0]!r} has" if labels else "no label has"
        raise Refusal(
            f"{purpose}: of {len(counts)} labels {only} {max(1, minimum)} cases to train on",
            "at least two labels to tell apart",
            "Use a larger corpus or lower --minimum",
        )
    kept = [np.isin(part.label, labels) for part in (learned, tested)]
    if not kept[1].any():
        raise Refusal(f"{purpose}: no case of the test has a label that was learned", "some", "Use a larger corpus")
    rare = {name: counts[name] + new[name] for name in {*counts, *new} - set(labels)}
    return Task(learned.only(kept[0]), tested.only(kept[1]), labels, rare, not_drawn)


def held_out(learned: Examples, share: float, seed: int) -> NDArray[np.bool_]:
    """(case,) which cases are held out from training: whole documents where known, else sentences."""
    chosen = ~training_part(learned.entries, 1 - share, seed=seed)
    held = chosen[learned.entry]
    if held.all() or not held.any():
        raise Refusal(
            f"There are {len(set(learned.entry.tolist()))} sentences to train on, too few to hold some of them out",
            "at least two documents or sentences",
            "Use a larger corpus",
        )
    return held


def _refuse_empty(counts: Counter[str], new: Counter[str], purpose: str) -> None:
    if not counts or not new:
        raise Refusal(
            f"{purpose} found {sum(counts.values())} cases to train on and {sum(new.values())} to test on",
            "some of both",
            "Use a larger corpus that is annotated so, or give another to train on with --train",
        )
    if len({*counts, *new}) < 2:
        raise Refusal(
            f"{purpose}: every case has the same label, {next(iter(counts))!r}",
            "at least two labels to tell apart",
            "Use another corpus, or ask for another label",
        )


def _has_words(case: Case, present: NDArray[np.bool_], entry: Entry) -> bool:
    for start, end in case.spans:
        if not 0 <= start < end <= len(entry.input.words):
            raise Refusal(
                f"A span labelled {case.label!r} reaches from word {start} to word {end} of a sentence of "
                f"{len(entry.input.words)} words: it is empty or outside ({' '.join(entry.input.words)[:60]!r})",
                "spans of at least one word",
                "Correct the annotation",
            )
    return all(present[start:end].any() for start, end in case.spans)


def _vectors(states: Numbers, cases: Sequence[Case], present: NDArray[np.bool_]) -> Numbers:
    """(layer, case, spans x width)."""
    each: list[Numbers] = []
    for number in range(len(cases[0].spans)):
        weights = np.zeros((len(cases), len(present)), np.float32)
        for row, case in enumerate(cases):
            start, end = case.spans[number]
            weights[row, start:end] = present[start:end]
        each.append((weights / weights.sum(1, keepdims=True)) @ states)
    return np.concatenate(each, -1)
