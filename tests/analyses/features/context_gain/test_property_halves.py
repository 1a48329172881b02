"""Structural complexity, ambiguity and rarity: values computed by hand on small texts, and on a treebank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import entropy

from bertology.analyses.features.context_gain.property_halves import (
    NO_ENTITY,
    WordLabelCounts,
    arc_length,
    class_entropy,
    count_word_labels,
    entity_properties,
    entity_type,
    text_properties,
    upper_half,
    word_properties,
)
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import ROOT, sentence_from_words


def labelled_text(text: str, label: str) -> Example:
    return Example((sentence_from_words(text.split()),), label=label)


def parse_tagged(text: str) -> list[tuple[str, str]]:
    return [(word, entity_type(tag)) for word, _, tag in (pair.partition("/") for pair in text.split())]


TRAINING = count_word_labels(
    parse_tagged(
        "Paris/B-LOC is/O nice/O Paris/B-PER Hilton/I-PER sings/O in/O paris/O it/O rains/O Hilton/B-PER sings/O"
    )
)


def count_words(*examples: Example) -> WordLabelCounts:
    return count_word_labels((word, str(example.label)) for example in examples for word in example.segments[0].words)


def test_properties_of_an_entity() -> None:
    # Paris was LOC, PER and no entity; Hilton only PER. Paris occurs three times, Hilton twice.
    np.testing.assert_allclose(entity_properties(["Paris", "Hilton"], TRAINING), [2, (3 + 1) / 2, (1 / 4 + 1 / 3) / 2])
    np.testing.assert_allclose(entity_properties(["Oslo"], TRAINING), [1, np.nan, 1])
    np.testing.assert_allclose(entity_properties(["New", "Paris"], TRAINING), [2, 3, (1 + 1 / 4) / 2])


def test_properties_of_a_word() -> None:
    tree = replace(sentence_from_words(["Oslo", "sings", "in", "Paris"]), governors=(1, ROOT, 3, 1))
    np.testing.assert_allclose(word_properties(tree, 3, TRAINING), [2, 3, 1 / 4])
    np.testing.assert_allclose(word_properties(tree, 0, TRAINING), [1, np.nan, 1])
    assert np.isnan(word_properties(tree, 1, TRAINING)[0])
    assert np.isnan(word_properties(sentence_from_words(["Paris"]), 0, TRAINING)[0])


@pytest.mark.parametrize(("tag", "expected"), [("B-PER", "PER"), ("I-a-b", "a-b"), ("O", NO_ENTITY)])
def test_entity_type_of_a_tag(tag: str, expected: str) -> None:
    assert entity_type(tag) == expected


def test_arc_length_excludes_root_and_punctuation() -> None:
    tree = replace(
        sentence_from_words(["the", "old", "dog", "barked", "loudly", "."]),
        governors=(2, 2, 3, ROOT, 3, 3),
        relations=("det", "amod", "nsubj", "root", "advmod", "punct"),
    )
    assert arc_length((tree,)) == (2 + 1 + 1 + 1) / 4
    other = replace(sentence_from_words(["a", "b"]), governors=(ROOT, 0), relations=("root", "obj"))
    assert arc_length((tree, other)) == (2 + 1 + 1 + 1 + 1) / 5
    assert np.isnan(arc_length((sentence_from_words(["no", "tree"]),)))


def test_arc_length_on_a_treebank_is_the_mean_over_its_arcs() -> None:
    for example in load_corpus("english", limit=20):
        (sentence,) = example.segments
        assert sentence.governors is not None and sentence.relations is not None
        arcs = np.array(list(enumerate(sentence.governors)))
        mask = (arcs[:, 1] >= 0) & np.array([relation != "punct" for relation in sentence.relations])
        expected = np.abs(np.diff(arcs[mask], axis=1)).mean() if mask.any() else np.nan
        np.testing.assert_allclose(arc_length(example.segments), expected)


def test_class_entropy_is_that_of_the_mean_probability() -> None:
    training = count_words(
        labelled_text("good good film", "+"), labelled_text("bad film", "-"), labelled_text("good film", "+")
    )
    # good: always +; bad: always -; film: + in 2 of 3.
    for words, probability in (
        ("good", 1),
        ("good bad", 0.5),
        ("film new", 2 / 3),
        ("Good film bad", (1 + 2 / 3 + 0) / 3),
    ):
        bits = class_entropy(words.split(), training, ("+", "-"))
        np.testing.assert_allclose(bits, entropy([probability, 1 - probability], base=2), atol=1e-12)
    assert np.isnan(class_entropy(["new"], training, ("+", "-")))


def test_class_entropy_of_four_equal_classes_is_two_bits() -> None:
    training = count_words(*(labelled_text("word", name) for name in "abcd"))
    np.testing.assert_allclose(class_entropy(["word"], training, tuple("abcd")), 2)


def test_properties_of_a_text() -> None:
    training = count_words(labelled_text("good film", "+"), labelled_text("bad film", "-"))
    complexity, ambiguity, rarity = text_properties(labelled_text("a good new film", "+"), training, ("+", "-"))
    assert np.isnan(complexity)
    np.testing.assert_allclose(ambiguity, entropy([0.75, 0.25], base=2))
    assert rarity == 2 / 4


@pytest.mark.parametrize(
    ("values", "upper"),
    [
        ([1, 2, 3, 4], [0, 0, 1, 1]),
        ([1, 1, 1, 2], [0, 0, 0, 1]),
        ([1, 2, 2, 2], [0, 1, 1, 1]),
        ([3, 1, np.nan, 2], [1, 0, 0, 0]),
    ],
)
def test_halves_are_as_even_as_ties_allow(values: list[float], upper: list[int]) -> None:
    mask = upper_half(np.array(values, float))
    assert mask is not None and mask.tolist() == [bool(value) for value in upper]


@pytest.mark.parametrize("values", [[], [np.nan], [1.0, 1.0], [2.0]])
def test_equal_values_have_no_halves(values: list[float]) -> None:
    assert upper_half(np.array(values, float)) is None
