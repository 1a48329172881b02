"""Gold links between words, and how often each head's strongest attention finds their targets.

A link asks a head: from this word, which other word is meant? The head's answer is the word it attends to most, or the
word that attends most to it (see `recording.strongest_word`). Correct answers are counted by unit (an example of the
corpus with all its windows) and by label, as are those of two baselines: a fixed offset, and chance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bertology.arrays import Array
from bertology.corpus.sentence import ROOT
from bertology.encoder.token_batch import RecordedInput
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.statistics.words import DIRECTIONS

OFFSETS = (-3, -2, -1, 1, 2, 3)
FIXED_OFFSET = "best fixed offset"
CHANCE = "chance"
NO_TARGET = -2


class GoldLink(NamedTuple):
    """A link from the word `source` to any of the words `targets`.

    `read_word` is the word whose attention is read, usually the source. The target `ROOT` is not a word: only
    baselines can find it.
    """

    source: int
    targets: tuple[int, ...]
    labels: tuple[str, ...]
    read_word: int


LinkExtractor = Callable[[RecordedInput], Sequence[GoldLink]]


LinkFunction = Callable[[RecordedInput, Sequence[GoldLink]], Array]


class LinkBaseline(NamedTuple):
    """A baseline with several variants; `p_correct` gives (variant, link) probabilities of a correct answer.

    `choose` gives the (variant, link) words it chooses, `NO_TARGET` if none; a baseline may not choose any.
    """

    variants: tuple[str, ...]
    p_correct: LinkFunction
    choose: LinkFunction | None = None


@dataclass(frozen=True)
class LinkItems:
    """What the counts were counted from, to list single answers: for each input its unit, links and strongest words."""

    units: Sequence[int]
    inputs: Sequence[RecordedInput]
    links: Sequence[Sequence[GoldLink]]
    strongest: Sequence[Array]
    baselines: Mapping[str, LinkBaseline]


@dataclass(frozen=True)
class LinkCounts:
    """Correct answers and links by unit and label.

    `correct` is (unit, layer, head, direction, label), `total` (unit, label). `baseline_correct` has (unit, variant,
    label) per baseline, `baseline_variants` the names of the variants. `skipped` counts links between words that the
    model was not shown. `tie_rates` has the proportion of answers, over all heads and links, that were taken at random
    from equally strong words, by direction; NaN where ties were not counted. `items` are the links themselves.
    """

    labels: tuple[str, ...]
    directions: tuple[str, ...]
    unit_texts: tuple[str, ...]
    correct: Array
    total: Array
    baseline_correct: Mapping[str, Array]
    baseline_variants: Mapping[str, tuple[str, ...]]
    skipped: int = 0
    tie_rates: tuple[float, ...] = ()
    items: LinkItems | None = None

    def unravel(self, candidate: int) -> tuple[int, int, int]:
        """The layer, head and direction of a flat candidate index."""
        layer, head, direction = np.unravel_index(candidate, self.correct.shape[1:4])
        return int(layer), int(head), int(direction)

    def candidates(self, label: int) -> Array:
        """(unit, candidate) correct answers of every head and direction."""
        return self.correct[..., label].reshape(len(self.correct), -1).astype(np.int32)


def count_links(
    recording: Recording,
    site: ReducedSite,
    extract_links: LinkExtractor,
    *,
    directions: tuple[str, ...],
    labels: Sequence[str] = (),
    baselines: Mapping[str, LinkBaseline] | None = None,
) -> LinkCounts:
    """Count the correct answers of every head to the links of each input.

    `labels` come first, in this order; further labels follow by frequency. `baselines` default to `WORD_BASELINES`.
    """
    baselines = WORD_BASELINES if baselines is None else baselines
    all_links = [list(extract_links(recorded_input)) for recorded_input in recording.inputs]
    present_words = [set(recorded_input.tokens.word_ids.tolist()) for recorded_input in recording.inputs]
    links_by_input = [
        [link for link in links if {link.source, link.read_word} <= present and {*link.targets} <= present | {ROOT}]
        for links, present in zip(all_links, present_words, strict=True)
    ]
    label_names = _order_labels(links_by_input, labels)
    units, unit_texts = group_units(recording.inputs)
    shape = (len(unit_texts), recording.encoder.layers, recording.encoder.heads, len(directions), len(label_names))
    correct = np.zeros(shape, np.uint16)
    total = np.zeros((shape[0], len(label_names)), np.uint16)
    baseline_correct = {
        name: np.zeros((shape[0], len(baseline.variants), len(label_names))) for name, baseline in baselines.items()
    }
    n_tied, n_answers = np.zeros(len(directions)), 0
    for unit, recorded_input, links, strongest in zip(
        units, recording.inputs, links_by_input, recording[site], strict=True
    ):
        if not links:
            continue
        read_words, targets = np.array([link.read_word for link in links]), _pad_targets(links)
        has_label = np.array([[label in link.labels for label in label_names] for link in links], np.float64)
        answers = strongest[:, :, : len(directions), read_words, None]
        is_correct = ((answers == targets) & (targets >= 0)).any(-1)
        correct[unit] += (is_correct @ has_label).astype(np.uint16)
        total[unit] += has_label.sum(0).astype(np.uint16)
        n_tied += _count_ties(strongest, len(directions), read_words)
        n_answers += strongest.shape[0] * strongest.shape[1] * len(links)
        for name, baseline in baselines.items():
            baseline_correct[name][unit] += baseline.p_correct(recorded_input, links) @ has_label
    return LinkCounts(
        label_names,
        directions,
        unit_texts,
        correct,
        total,
        baseline_correct,
        {name: baseline.variants for name, baseline in baselines.items()},
        sum(map(len, all_links)) - sum(map(len, links_by_input)),
        tuple((n_tied / max(1, n_answers)).tolist()),
        LinkItems(units, recording.inputs, links_by_input, recording[site], baselines),
    )


def _count_ties(strongest: Array, n_directions: int, read_words: Array) -> Array:
    """(direction,) answers that are one of several equally strong words; NaN if the site does not count them."""
    ties = strongest[:, :, len(DIRECTIONS) : len(DIRECTIONS) + n_directions, read_words]
    if ties.shape[2] < n_directions or np.isnan(ties).any():
        return np.full(n_directions, np.nan)
    return (ties > 1).sum((0, 1, 3))


def group_units(inputs: Sequence[RecordedInput]) -> tuple[list[int], tuple[str, ...]]:
    """The unit of each input, and the texts of the units in the order of the units.

    All windows and variants of an example are one unit. Units are sorted by text, so that resampling does not depend
    on the order of the corpus.
    """
    words_by_example: dict[int, list[str]] = {}
    for recorded_input in inputs:
        words_by_example.setdefault(recorded_input.example_index, []).extend(recorded_input.text.words)
    texts = {example: " ".join(words) for example, words in words_by_example.items()}
    ordered = sorted(texts, key=lambda example: (texts[example], example))
    units = {example: unit for unit, example in enumerate(ordered)}
    return [units[recorded_input.example_index] for recorded_input in inputs], tuple(sorted(texts.values()))


def _pad_targets(links: Sequence[GoldLink]) -> Array:
    """(link, target), padded with `NO_TARGET`."""
    padded = np.full((len(links), max(len(link.targets) for link in links)), NO_TARGET)
    for row, link in enumerate(links):
        padded[row, : len(link.targets)] = link.targets
    return padded


def _order_labels(links_by_input: Sequence[Sequence[GoldLink]], first: Sequence[str]) -> tuple[str, ...]:
    counts = Counter(label for links in links_by_input for link in links for label in link.labels)
    further = sorted(counts.keys() - set(first), key=lambda label: (-counts[label], label))
    return (*first, *further)


def _word_at_offset(recorded_input: RecordedInput, links: Sequence[GoldLink]) -> Array:
    """(offset, link) the word at that offset in the same segment.

    Before the first word of a segment is the root; beyond the last word is the last word.
    """
    sources = np.array([link.source for link in links])
    ends = np.cumsum([len(segment) for segment in recorded_input.text.segments])
    segments = np.searchsorted(ends, sources, side="right")
    first, last = np.concatenate([[0], ends])[segments], ends[segments] - 1
    words = sources + np.array(OFFSETS)[:, None]
    return np.where(words < first, ROOT, np.minimum(words, last))


def _fixed_offset(recorded_input: RecordedInput, links: Sequence[GoldLink]) -> Array:
    """(offset, link) whether the word at that offset is a target."""
    return (_word_at_offset(recorded_input, links)[..., None] == _pad_targets(links)).any(-1)


def _random_word(recorded_input: RecordedInput, links: Sequence[GoldLink]) -> Array:
    """(1, link) the probability that a random other word is a target."""
    n_others = len({word for word in recorded_input.tokens.word_ids.tolist() if word >= 0}) - 1
    return (_pad_targets(links) >= 0).sum(-1)[None] / max(1, n_others)


WORD_BASELINES: Mapping[str, LinkBaseline] = {
    FIXED_OFFSET: LinkBaseline(tuple(f"{offset:+d}" for offset in OFFSETS), _fixed_offset, _word_at_offset),
    CHANCE: LinkBaseline(("",), _random_word),
}
