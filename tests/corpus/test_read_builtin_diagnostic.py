"""The built-in diagnostic pairs: official names, balanced labels, no label that the hypothesis alone predicts."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pytest
from tests.corpus.checks import assert_offsets_match, assert_valid
from tests.corpus.generators.baselines import accuracy, bags

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.corpus.readers.glue_diagnostic import CATEGORIES, LABELS, example_categories

NEGATION = {"not", "no", "never", "nobody", "none", "nothing", "neither", "nor", "without", "cannot"}
PUNCTUATION = {".", ",", ";"}


@pytest.fixture(scope="module")
def pairs() -> Corpus:
    return load_corpus("diagnostic")


def by_hypothesis(pairs: Corpus) -> dict[str, list[Example]]:
    groups: dict[str, list[Example]] = defaultdict(list)
    for example in pairs:
        groups[example.segments[1].text].append(example)
    return groups


def word_types(example: Example, segment: int) -> set[str]:
    return {word.lower() for word in example.segments[segment].words} - PUNCTUATION


def test_every_pair_is_well_formed(pairs: Corpus) -> None:
    assert_valid(pairs)
    assert_offsets_match(pairs)
    assert pairs.format == "glue_diagnostic" and not pairs.skipped
    assert len({example.segments[0].text for example in pairs}) == len(pairs) == 291
    for sentence in pairs.sentences:
        text = sentence.text
        assert text[0].isupper() and text[-1] in ".!?", text
        assert text == " ".join(text.split()) and text.isascii(), text
        assert 2 <= len(sentence) <= 25, text
    assert {example.factors["domain"] for example in pairs} == {"Artificial"}


def test_every_category_and_sub_type_occurs_under_its_official_name(pairs: Corpus) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    by_category: Counter[str] = Counter()
    for example in pairs:
        categories = example_categories(example)
        assert len(categories) == 1, example.id
        by_category.update(categories.keys())
        counts.update((category, name) for category, names in categories.items() for name in names)
    assert by_category == {"lexical semantics": 66, "predicate-argument structure": 78, "logic": 81, "knowledge": 66}
    assert set(counts) == {(category, name) for category, names in CATEGORIES.items() for name in names}
    assert min(counts.values()) >= 6


def test_each_hypothesis_has_each_label_once(pairs: Corpus) -> None:
    for hypothesis, examples in by_hypothesis(pairs).items():
        assert sorted(str(example.label) for example in examples) == sorted(LABELS), hypothesis
        assert len({tuple(example.factors.items()) for example in examples}) == 1, hypothesis


def test_the_first_pairs_have_all_categories_and_balanced_labels(pairs: Corpus) -> None:
    for size in (12, 40, 120):
        counts = Counter(example.label for example in pairs[:size])
        assert max(counts.values()) - min(counts.values()) <= 1
        assert {name for example in pairs[:size] for name in example_categories(example)} == set(CATEGORIES)


def test_the_hypothesis_alone_predicts_nothing(pairs: Corpus) -> None:
    """Each hypothesis has every label once, so that hypotheses of other pairs are of no help."""
    examples = [example for group in by_hypothesis(pairs).values() for example in group]
    score = accuracy(
        bags([example.segments[1].words for example in examples]), [str(example.label) for example in examples]
    )
    np.testing.assert_allclose(score, 1 / 3, atol=0.02)


def test_the_premise_alone_predicts_almost_nothing(pairs: Corpus) -> None:
    examples = [example for group in by_hypothesis(pairs).values() for example in group]
    score = accuracy(
        bags([example.segments[0].words for example in examples]), [str(example.label) for example in examples]
    )
    assert abs(score - 1 / 3) < 0.08


def test_shared_words_and_negation_predict_little(pairs: Corpus) -> None:
    examples = [example for group in by_hypothesis(pairs).values() for example in group]
    labels = [str(example.label) for example in examples]
    overlaps = [len(word_types(e, 0) & word_types(e, 1)) / len(word_types(e, 1)) for e in examples]
    lengths = [len(e.segments[0]) - len(e.segments[1]) for e in examples]
    negated = [[bool(word_types(e, segment) & NEGATION) for segment in (0, 1)] for e in examples]
    features = np.array([[a, a == 1, b, *c] for a, b, c in zip(overlaps, lengths, negated, strict=True)], np.float64)
    assert accuracy(features, labels) < 0.43
    by_label = Counter(label for label, is_negated in zip(labels, negated, strict=True) if is_negated[0])
    assert max(by_label.values()) < 1.5 * min(by_label.values())
