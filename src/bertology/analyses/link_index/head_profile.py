"""What a head links over a corpus: offsets, tags and relations beside base rates, examples, and heads most alike."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bertology.analyses.head_selection.functions import TO_DEPENDENT, TO_GOVERNOR, function_links
from bertology.analyses.link_index.index import AnnotatedWords, HeadLinks, LinkIndex
from bertology.analyses.link_index.query import Link
from bertology.analyses.link_index.site import COMPLETE_ABOVE
from bertology.corpus.word_frequencies import load_frequencies
from bertology.encoder.encoder import Head

MAX_OFFSET = 5
N_FREQUENT_WORDS = 500
NO_RELATION = "no relation"


@dataclass(frozen=True)
class HistogramBar:
    """A category, the number of links in it, their proportion, and the proportion that chance gives."""

    category: str
    count: int
    proportion: float
    base_rate: float


@dataclass(frozen=True)
class LinkHistogram:
    """The links of a head by one property; `base` says what the base rates are."""

    name: str
    base: str
    n: int
    bars: tuple[HistogramBar, ...]


@dataclass(frozen=True)
class SimilarHead:
    """Another head and the proportion of words from which both attend most to the same word.

    `mean` is the mean of that proportion over all other heads.
    """

    head: Head
    agreement: float
    mean: float
    n: int


RANDOM_WORD = "the same links to a random other word of the sentence"
RANDOM_SOURCE = "all words of the corpus"


def link_histograms(index: LinkIndex, head: Head, min_weight: float = COMPLETE_ABOVE) -> list[LinkHistogram]:
    """Links above a weight by offset, by part of speech of source and target, and by dependency relation."""
    counts: dict[str, Counter[str]] = {name: Counter() for name in ("offset", "source", "target", "relation")}
    base: dict[str, dict[str, float]] = {name: defaultdict(float) for name in counts}
    for words, links in zip(index.inputs, index.links(head), strict=True):
        shown = np.flatnonzero(words.has_tokens).tolist()
        for word in shown:
            base["source"][words.pos[word] or ""] += 1
        for source, target, _ in _strong_links(links, min_weight):
            counts["source"][words.pos[source] or ""] += 1
            others = [word for word in shown if word != source]
            for name, category in _PAIR_CATEGORIES.items():
                counts[name][category(words, source, target)] += 1
                for word in others:
                    base[name][category(words, source, word)] += 1 / len(others)
    order = [*(_offset_name(offset) for offset in range(-MAX_OFFSET, MAX_OFFSET + 1) if offset)]
    return [
        _histogram("offset", RANDOM_WORD, counts["offset"], base["offset"], order),
        _histogram("part of speech of the word that attends", RANDOM_SOURCE, counts["source"], base["source"]),
        _histogram("part of speech of the word attended to", RANDOM_WORD, counts["target"], base["target"]),
        _histogram("dependency relation", RANDOM_WORD, counts["relation"], base["relation"]),
    ]


def strongest_examples(index: LinkIndex, head: Head, n: int) -> list[Link]:
    """The strongest link of each of the `n` inputs with the strongest links."""
    best = [link for link in _best_links(index, head) if link is not None]
    return sorted(best, key=lambda link: -link.weight)[:n]


def random_examples(index: LinkIndex, head: Head, n: int, seed: int = 0) -> list[Link]:
    """The strongest link of a random word, in each of `n` random inputs."""
    rng = np.random.default_rng([seed, *head])
    chosen: list[Link] = []
    for number in rng.permutation(len(index.inputs)).tolist():
        links = index.links(head)[number]
        sources = np.flatnonzero(links.targets[0] >= 0)
        if len(sources) and len(chosen) < n:
            chosen.append(_strongest(links, number, int(rng.choice(sources))))
    return chosen


def missed_examples(index: LinkIndex, head: Head, label: str, n: int, seed: int = 0) -> list[Link]:
    """Words from which the head should attend most to the target of its function, by its label, and does not.

    Each is a link to the word it attends to most instead; at most one of an input.
    """
    frequencies = load_frequencies("")
    frequent = frequencies.most_frequent(N_FREQUENT_WORDS)
    missed: list[Link] = []
    for number in np.random.default_rng([seed, *head, 1]).permutation(len(index.inputs)).tolist():
        links = index.links(head)[number]
        gold = list(function_links(index.recording.inputs[number], frequencies, frequent))
        wrong = [
            link.source
            for link in gold
            if label in link.labels and links.targets[0, link.source] not in (-1, *link.targets)
        ]
        if wrong and len(missed) < n:
            missed.append(_strongest(links, number, wrong[0]))
    return missed


def similar_heads(index: LinkIndex, head: Head, n: int) -> list[SimilarHead]:
    """The heads that attend most to the same words as this one."""
    targets = index.strongest_targets
    own = targets[:, head[0], head[1]]
    has_target = own >= 0
    agreement = (targets[has_target] == own[has_target, None, None]).mean(0)
    others = [Head(layer, number) for layer, number in np.ndindex(*agreement.shape) if (layer, number) != tuple(head)]
    mean = float(np.mean([agreement[other] for other in others])) if others else 0.0
    best = sorted(others, key=lambda other: -agreement[other])[:n]
    return [SimilarHead(other, float(agreement[other]), mean, int(has_target.sum())) for other in best]


def _strong_links(links: HeadLinks, min_weight: float) -> Iterator[tuple[int, int, float]]:
    for link, source in zip(*np.nonzero((links.weights > min_weight) & (links.targets >= 0)), strict=True):
        yield int(source), int(links.targets[link, source]), float(links.weights[link, source])


def _best_links(index: LinkIndex, head: Head) -> Iterator[Link | None]:
    for number, links in enumerate(index.links(head)):
        has_link = links.targets[0] >= 0
        yield (
            _strongest(links, number, int(np.where(has_link, links.weights[0], -1).argmax()))
            if has_link.any()
            else None
        )


def _strongest(links: HeadLinks, number: int, source: int) -> Link:
    return Link(number, source, int(links.targets[0, source]), float(links.weights[0, source]))


def _histogram(
    name: str, base_name: str, counts: Mapping[str, int], base: Mapping[str, float], order: Sequence[str] = ()
) -> LinkHistogram:
    n, n_base = sum(counts.values()), sum(base.values())
    categories = list(order) or sorted({*counts, *base}, key=lambda name: -counts.get(name, 0))
    bars = [
        _bar(category, counts.get(category, 0), n, base.get(category, 0.0) / (n_base or 1))
        for category in categories
        if category
    ]
    return LinkHistogram(name, base_name, n, tuple(bars))


def _bar(category: str, count: int, n: int, base_rate: float) -> HistogramBar:
    return HistogramBar(category, count, count / max(1, n), base_rate)


def _offset_name(offset: int) -> str:
    if abs(offset) >= MAX_OFFSET:
        return f"{'+' if offset > 0 else '-'}{MAX_OFFSET} or more"
    return f"{offset:+d}"


def _offset_category(words: AnnotatedWords, source: int, target: int) -> str:
    return _offset_name(max(-MAX_OFFSET, min(MAX_OFFSET, target - source)))


def _target_category(words: AnnotatedWords, source: int, target: int) -> str:
    return words.pos[target] or ""


def _relation_category(words: AnnotatedWords, source: int, target: int) -> str:
    if words.governors[source] == target and words.relations[source]:
        return f"{words.relations[source]}, {TO_GOVERNOR}"
    if words.governors[target] == source and words.relations[target]:
        return f"{words.relations[target]}, {TO_DEPENDENT}"
    return NO_RELATION if words.governors[source] >= 0 or words.governors[target] >= 0 else ""


_PAIR_CATEGORIES: dict[str, Callable[[AnnotatedWords, int, int], str]] = {
    "offset": _offset_category,
    "target": _target_category,
    "relation": _relation_category,
}
