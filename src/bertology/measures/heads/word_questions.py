"""Questions about words that a head may answer: from this word, which other word is meant?

A head answers with the word that gets most of its attention, or the one that attends most to the word asked about
(see `recording.word_sites`). Answers are counted by unit, an item of the corpus with all its windows, and by label;
beside them those of a rule that always points so many words away, and of a blind guess.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.sentence import ROOT
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite

Numbers = NDArray[Any]

OFFSETS = (-3, -2, -1, 1, 2, 3)
FIXED_OFFSET = "best fixed offset"
ANY_WORD = "any other word"
NO_ANSWER = -2


class Question(NamedTuple):
    """From the word `source`, any of `gold` is meant; `asked` is the word whose attention is read.

    That is the source itself, as a rule. A `gold` of `ROOT` is no word: only rules can answer it.
    """

    source: int
    gold: tuple[int, ...]
    labels: tuple[str, ...]
    asked: int


Ask = Callable[[Entry], Sequence[Question]]


class Rule(NamedTuple):
    """A baseline of some variants: (variant, question) how likely each is right about the questions of an entry."""

    variants: tuple[str, ...]
    right: Callable[[Entry, Sequence[Question]], Numbers]


@dataclass(frozen=True)
class Tally:
    """Right answers by unit and label.

    `hits` is (unit, layer, head, direction, label), `cases` (unit, label). `rules` are baselines: the hits of each
    variant, (unit, variant, label), and `variants` their names. `keys` are the texts of the units. `left_out` counts
    questions about words that the model was not shown.
    """

    labels: tuple[str, ...]
    directions: tuple[str, ...]
    keys: tuple[str, ...]
    hits: Numbers
    cases: Numbers
    rules: Mapping[str, Numbers]
    variants: Mapping[str, tuple[str, ...]]
    left_out: int = 0

    def place(self, number: int) -> tuple[int, int, int]:
        """The layer, head and direction of one of the flattened candidates."""
        layer, head, direction = np.unravel_index(number, self.hits.shape[1:4])
        return int(layer), int(head), int(direction)

    def candidates(self, label: int) -> Numbers:
        """(unit, candidate) hits of every head and direction."""
        return self.hits[..., label].reshape(len(self.hits), -1).astype(np.int32)


def tally(
    recording: Recording,
    site: ReducedSite,
    ask: Ask,
    *,
    directions: tuple[str, ...],
    labels: Sequence[str] = (),
    rules: Mapping[str, Rule] | None = None,
) -> Tally:
    """Count the answers of every head to the questions about each entry.

    `labels` come first, in this order; others follow as they occur, the most frequent first. `rules` are the baselines,
    fixed offsets and a blind guess where none are given.
    """
    rules = WORD_RULES if rules is None else rules
    asked = [list(ask(entry)) for entry in recording.entries]
    shown = [set(entry.pieces.word.tolist()) for entry in recording.entries]
    kept = [
        [q for q in some if {q.source, q.asked} <= there and {*q.gold} <= there | {ROOT}]
        for some, there in zip(asked, shown, strict=True)
    ]
    named = _ordered(kept, labels)
    units, keys = units_of(recording.entries)
    shape = (len(keys), recording.encoder.layers, recording.encoder.heads, len(directions), len(named))
    hits = np.zeros(shape, np.uint16)
    cases = np.zeros((shape[0], len(named)), np.uint16)
    ruled = {name: np.zeros((shape[0], len(rule.variants), len(named))) for name, rule in rules.items()}
    for unit, entry, questions, strongest in zip(units, recording.entries, kept, recording[site], strict=True):
        if not questions:
            continue
        read, gold = np.array([q.asked for q in questions]), _golds(questions)
        member = np.array([[label in q.labels for label in named] for q in questions], np.float64)
        answers = strongest[:, :, : len(directions), read, None]
        right = ((answers == gold) & (gold >= 0)).any(-1)
        hits[unit] += (right @ member).astype(np.uint16)
        cases[unit] += member.sum(0).astype(np.uint16)
        for name, rule in rules.items():
            ruled[name][unit] += rule.right(entry, questions) @ member
    return Tally(
        named,
        directions,
        keys,
        hits,
        cases,
        ruled,
        {name: rule.variants for name, rule in rules.items()},
        sum(map(len, asked)) - sum(map(len, kept)),
    )


def units_of(entries: Sequence[Entry]) -> tuple[list[int], tuple[str, ...]]:
    """The unit of each entry, and the texts of the units, in whose order they stand.

    Windows and variants of an item belong together. The order of the corpus leaves no trace in what is resampled.
    """
    texts: dict[int, list[str]] = {}
    for entry in entries:
        texts.setdefault(entry.item, []).extend(entry.input.words)
    joined = {item: " ".join(words) for item, words in texts.items()}
    places = {item: place for place, item in enumerate(sorted(joined, key=lambda item: (joined[item], item)))}
    return [places[entry.item] for entry in entries], tuple(sorted(joined.values()))


def _golds(questions: Sequence[Question]) -> Numbers:
    """(question, answer) with `NO_ANSWER` after the answers of each question."""
    golds = [q.gold for q in questions]
    found = np.full((len(golds), max(map(len, golds))), NO_ANSWER)
    for row, gold in enumerate(golds):
        found[row, : len(gold)] = gold
    return found


def _ordered(asked: Sequence[Sequence[Question]], first: Sequence[str]) -> tuple[str, ...]:
    counts = Counter(label for some in asked for question in some for label in question.labels)
    others = sorted(counts.keys() - set(first), key=lambda label: (-counts[label], label))
    return (*first, *others)


def _at_offsets(entry: Entry, questions: Sequence[Question]) -> Numbers:
    """(offset, question) whether the word so far away in the same part is meant.

    Before the first word of a part comes the root, after the last one that one again.
    """
    sources = np.array([q.source for q in questions])
    ends = np.cumsum([len(part) for part in entry.input.parts])
    part = np.searchsorted(ends, sources, side="right")
    first, last = np.concatenate([[0], ends])[part], ends[part] - 1
    places = sources + np.array(OFFSETS)[:, None]
    reached = np.where(places < first, ROOT, np.minimum(places, last))
    return (reached[..., None] == _golds(questions)).any(-1)


def _by_guess(entry: Entry, questions: Sequence[Question]) -> Numbers:
    """(1, question) how likely one of the other words is meant."""
    others = len({word for word in entry.pieces.word.tolist() if word >= 0}) - 1
    return (_golds(questions) >= 0).sum(-1)[None] / max(1, others)


WORD_RULES: Mapping[str, Rule] = {
    FIXED_OFFSET: Rule(tuple(f"{offset:+d}" for offset in OFFSETS), _at_offsets),
    ANY_WORD: Rule(("",), _by_guess),
}
