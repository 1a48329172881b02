"""What a head may be for, after Voita et al. (2019): a fixed position, a relation of the tree, the rarest word.

Every function is a set of questions (see `word_questions`): a head has it where the word it attends to most is the one
asked for. Functions are nominated on one half of the sentences and confirmed on the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.maths.multiple_tests import holm, paired_above
from bertology.measures.attention.word_relations import part_of_words
from bertology.measures.heads.head_choice import first_half
from bertology.measures.heads.word_questions import ANY_WORD, FIXED_OFFSET, OFFSETS, Question, Tally
from bertology.recording.annotation import word_heads, word_layer
from bertology.recording.entry import Entry
from bertology.results.estimate import Estimate
from bertology.results.sampling import pooled_over_sentences
from bertology.results.shapes import Head

Numbers = NDArray[Any]
Kind = Literal["positional", "syntactic", "rare word"]

POSITIONS: Mapping[int, str] = {
    offset: {1: "next word", -1: "previous word"}.get(offset, f"{abs(offset)} words {'on' if offset > 0 else 'back'}")
    for offset in OFFSETS
}
RAREST = "rarest word"
TO_HEAD, TO_DEPENDENT = "dependent to head", "head to dependent"
LEVEL = 0.05


def kind_of(label: str) -> Kind:
    """What kind of function a label is."""
    if label in POSITIONS.values():
        return "positional"
    return "rare word" if label == RAREST else "syntactic"


def function_questions(entry: Entry, counts: Mapping[str, int], frequent: frozenset[str]) -> list[Question]:
    """Every question about an entry; `counts` says how often words occur, `frequent` which are never rare."""
    return [*_of_position(entry), *_of_tree(entry), *_of_rarity(entry, counts, frequent)]


def _of_position(entry: Entry) -> list[Question]:
    parts = part_of_words(entry).tolist()
    return [
        Question(word, (word + offset,), (name,), word)
        for word in range(len(parts))
        for offset, name in POSITIONS.items()
        if 0 <= word + offset < len(parts) and parts[word + offset] == parts[word]
    ]


def _of_tree(entry: Entry) -> list[Question]:
    """From each word to its head, and from each head to its dependents, whichever of those of one relation."""
    found: list[Question] = []
    dependents: dict[tuple[int, str], list[int]] = {}
    for word, (head, relation) in enumerate(zip(word_heads(entry), word_layer(entry, "relations"), strict=True)):
        if head is None or head < 0 or relation is None or relation == "punct":
            continue
        for name in dict.fromkeys((relation.split(":")[0], relation)):
            found.append(Question(word, (head,), (f"{name}, {TO_HEAD}",), word))
            dependents.setdefault((head, name), []).append(word)
    for (head, name), words in dependents.items():
        found.append(Question(head, tuple(words), (f"{name}, {TO_DEPENDENT}",), head))
    return found


def _of_rarity(entry: Entry, counts: Mapping[str, int], frequent: frozenset[str]) -> list[Question]:
    """From each word to the rarest other of the input, where that is not a frequent word."""
    forms = [word.lower() for word in entry.input.words]
    shown = sorted({word for word in entry.pieces.word.tolist() if word >= 0})
    lowest = min((counts[forms[word]] for word in shown), default=0)
    rarest = [word for word in shown if counts[forms[word]] == lowest and forms[word] not in frequent]
    return [
        Question(word, tuple(other for other in rarest if other != word), (RAREST,), word)
        for word in shown
        if set(rarest) - {word}
    ]


def frequencies(texts: Sequence[Sequence[str]], top: int) -> tuple[Mapping[str, int], frozenset[str]]:
    """How often each word occurs, lower-cased, and the `top` most frequent ones."""
    counts = Counter(word.lower() for words in texts for word in words)
    ranked = sorted(counts, key=lambda word: (-counts[word], word))
    return counts, frozenset(ranked[:top])


@dataclass(frozen=True)
class Thresholds:
    """What a function asks for: the share of words of a position, the gain of a relation, the share of rare words."""

    positional: float = 0.9
    syntactic: float = 0.1
    rare: float = 0.5

    def short_by(self, label: str, rate: float, baseline: float) -> float:
        """How much is lacking; 0 or less where the threshold is reached."""
        match kind_of(label):
            case "positional":
                return self.positional - rate
            case "syntactic":
                return baseline + self.syntactic - rate
            case "rare word":
                return max(self.rare - rate, baseline - rate)


@dataclass(frozen=True)
class Function:
    """What a head was nominated for, and what the other half of the sentences says of it."""

    head: Head
    label: str
    score: Estimate
    baseline: Estimate
    p: float
    confirmed: bool


def functions_of(tally: Tally, thresholds: Thresholds, *, minimum: int, seed: int) -> list[Function]:
    """For every head the function it comes nearest to on one half, told and confirmed on the other.

    A function is confirmed where the other half reaches its threshold, too, the interval of the score lies above that
    of the baseline, and a paired t test over sentences says so after Holm's correction for all heads nominated.
    """
    first = first_half(tally.keys, seed)
    labels = [n for n in range(len(tally.labels)) if tally.cases[:, n].sum() >= minimum and _in_both(tally, first, n)]
    if not labels:
        return []
    baselines = baseline_hits(tally, first)
    rates, chances = (
        hits[first].sum(0) / np.maximum(1, tally.cases[first].sum(0)) for hits in (tally.hits[:, :, :, 0], baselines)
    )
    sure = _p_values(tally, baselines, first)
    heads = [Head(layer, head) for layer, head in np.ndindex(*rates.shape[:2])]
    nominated = [_nominated(rates[head], chances, sure[head], tally.labels, labels, thresholds) for head in heads]
    hits = np.stack(
        [tally.hits[(slice(None), *head, 0, label)] for head, label in zip(heads, nominated, strict=True)], 1
    )
    cases, ruled = tally.cases[:, nominated].astype(np.float64), baselines[:, nominated]
    scores = pooled_over_sentences(hits[~first], cases[~first], seed=seed)
    beside = pooled_over_sentences(ruled[~first], cases[~first], seed=seed)
    differences = np.where(cases > 0, hits - ruled, np.nan)[~first]
    reached = [
        thresholds.short_by(tally.labels[label], float(rates[(*head, label)]), float(chances[label])) <= 0
        for head, label in zip(heads, nominated, strict=True)
    ]
    p = holm(np.where(reached, paired_above(differences), np.nan))
    found: list[Function] = []
    for number, (head, label) in enumerate(zip(heads, nominated, strict=True)):
        score, baseline = scores[number], beside[number]
        holds = thresholds.short_by(tally.labels[label], score.value, baseline.value) <= 0
        confirmed = reached[number] and holds and score.clearly_above(baseline) and bool(p[number] < LEVEL)
        found.append(Function(head, tally.labels[label], score, baseline, float(p[number]), confirmed))
    return found


def _in_both(tally: Tally, first: NDArray[np.bool_], label: int) -> bool:
    return bool(tally.cases[first, label].any() and tally.cases[~first, label].any())


def baseline_hits(tally: Tally, first: NDArray[np.bool_]) -> Numbers:
    """(unit, label) right answers of the rule beside each label, its offset chosen on the first half.

    Of a position that is a blind guess: to point there always is the function itself.
    """
    found = np.zeros(tally.cases.shape)
    for label, name in enumerate(tally.labels):
        rule = tally.rules[ANY_WORD if kind_of(name) == "positional" else FIXED_OFFSET][..., label]
        found[:, label] = rule[:, int(rule[first].sum(0).argmax())]
    return found


def _p_values(tally: Tally, baselines: Numbers, first: NDArray[np.bool_]) -> Numbers:
    """(layer, head, label) how likely the first half would be without a gain over the baseline."""
    found: list[Numbers] = []
    for label in range(len(tally.labels)):
        there = first & (tally.cases[:, label] > 0)
        found.append(paired_above(tally.hits[there, :, :, 0, label] - baselines[there, label, None, None]))
    return np.stack(found, -1)


def _nominated(
    rates: Numbers,
    chances: Numbers,
    sure: Numbers,
    names: Sequence[str],
    labels: Sequence[int],
    thresholds: Thresholds,
) -> int:
    """The function of which the first half is most sure of those it reaches, positions first; else the nearest."""
    lacking = {n: thresholds.short_by(names[n], float(rates[n]), float(chances[n])) for n in labels}
    reached = [n for n in labels if lacking[n] <= 0 and np.isfinite(sure[n])]
    positions = [n for n in reached if kind_of(names[n]) == "positional"]
    if reached:
        return min(positions or reached, key=lambda n: (sure[n], n))
    return min(labels, key=lambda n: (lacking[n], n))
