"""The built-in diagnostic pairs: official names, balance, and no label that the hypothesis alone would give away."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from tests.corpus.checks import assert_surfaces, check
from tests.corpus.generators.baselines import accuracy, bags

from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.factors import factors
from bertology.corpus.readers.diagnostic import CATEGORIES, LABELS, categories_of

NEGATION = {"not", "no", "never", "nobody", "none", "nothing", "neither", "nor", "without", "cannot"}
MARKS = {".", ",", ";"}


@pytest.fixture(scope="module")
def pairs() -> Corpus:
    return corpus_named("diagnostic")


def by_hypothesis(pairs: Corpus) -> dict[str, list[Item]]:
    groups: dict[str, list[Item]] = defaultdict(list)
    for item in pairs:
        groups[item.parts[1].text].append(item)
    return groups


def lower(item: Item, part: int) -> set[str]:
    return {word.lower() for word in item.parts[part].words} - MARKS


def test_every_pair_is_sound(pairs: Corpus) -> None:
    check(pairs)
    assert_surfaces(pairs)
    assert pairs.format == "diagnostic" and not pairs.skipped
    assert len({item.parts[0].text for item in pairs}) == len(pairs) == 291
    for part in pairs.sentences:
        assert part.text[0].isupper() and part.text[-1] in ".!?", part.text
        assert part.text == " ".join(part.text.split()) and part.text.isascii(), part.text
        assert 2 <= len(part) <= 25, part.text
    assert {factors(item)["domain"] for item in pairs} == {"Artificial"}


def test_every_category_and_sub_type_is_there_under_its_official_name(pairs: Corpus) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    whole: Counter[str] = Counter()
    for item in pairs:
        own = categories_of(item)
        assert len(own) == 1, item.id
        whole.update(own.keys())
        counts.update((category, name) for category, names in own.items() for name in names)
    assert whole == {"lexical semantics": 66, "predicate-argument structure": 78, "logic": 81, "knowledge": 66}
    assert set(counts) == {(category, name) for category, names in CATEGORIES.items() for name in names}
    assert min(counts.values()) >= 6


def test_each_hypothesis_has_each_label_once(pairs: Corpus) -> None:
    for hypothesis, items in by_hypothesis(pairs).items():
        assert sorted(str(item.label) for item in items) == sorted(LABELS), hypothesis
        assert len({item.source for item in items}) == 1, hypothesis


def test_any_beginning_has_all_categories_and_balanced_labels(pairs: Corpus) -> None:
    for size in (12, 40, 120):
        counts = Counter(item.label for item in pairs[:size])
        assert max(counts.values()) - min(counts.values()) <= 1
        assert {name for item in pairs[:size] for name in categories_of(item)} == set(CATEGORIES)


def test_the_hypothesis_alone_tells_nothing(pairs: Corpus) -> None:
    """Whatever a model learns of hypotheses it has not seen, each of them has every label once."""
    items = [item for group in by_hypothesis(pairs).values() for item in group]
    found = accuracy(bags([item.parts[1].words for item in items]), [str(item.label) for item in items])
    np.testing.assert_allclose(found, 1 / 3, atol=0.02)


def test_the_premise_alone_tells_next_to_nothing(pairs: Corpus) -> None:
    items = [item for group in by_hypothesis(pairs).values() for item in group]
    found = accuracy(bags([item.parts[0].words for item in items]), [str(item.label) for item in items])
    assert abs(found - 1 / 3) < 0.08


def test_shared_words_and_negation_tell_little(pairs: Corpus) -> None:
    items = [item for group in by_hypothesis(pairs).values() for item in group]
    labels = [str(item.label) for item in items]
    shares = [len(lower(i, 0) & lower(i, 1)) / len(lower(i, 1)) for i in items]
    lengths = [len(i.parts[0]) - len(i.parts[1]) for i in items]
    negated = [[bool(lower(i, part) & NEGATION) for part in (0, 1)] for i in items]
    overlap = np.array([[a, a == 1, b, *c] for a, b, c in zip(shares, lengths, negated, strict=True)], np.float64)
    assert accuracy(overlap, labels) < 0.43
    by_label = Counter(label for label, own in zip(labels, negated, strict=True) if own[0])
    assert max(by_label.values()) < 1.5 * min(by_label.values())
