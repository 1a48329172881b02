"""Complexity, ambiguity and unseen words: counted by hand on small texts, and restated on a treebank."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import entropy

from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Item
from bertology.corpus.sentence import ROOT, sentence
from bertology.measures.meaning.structure_properties import (
    NO_NAME,
    Counted,
    arc_length,
    class_entropy,
    counted,
    halves,
    kind_of,
    of_name,
    of_text,
    of_word,
)


def labelled(text: str, label: str) -> Item:
    return Item((sentence(text.split()),), label=label)


def tagged(text: str) -> list[tuple[str, str]]:
    return [(word, kind_of(tag)) for word, _, tag in (pair.partition("/") for pair in text.split())]


TRAINING = counted(
    tagged("Paris/B-LOC is/O nice/O Paris/B-PER Hilton/I-PER sings/O in/O paris/O it/O rains/O Hilton/B-PER sings/O")
)


def classes_of(*items: Item) -> Counted:
    return counted((word, str(item.label)) for item in items for word in item.parts[0].words)


def test_a_name_by_hand() -> None:
    # Paris was LOC, PER and none; Hilton only PER. Paris was seen three times, Hilton twice.
    np.testing.assert_allclose(of_name(["Paris", "Hilton"], TRAINING), [2, (3 + 1) / 2, (1 / 4 + 1 / 3) / 2])
    np.testing.assert_allclose(of_name(["Oslo"], TRAINING), [1, np.nan, 1])
    np.testing.assert_allclose(of_name(["New", "Paris"], TRAINING), [2, 3, (1 + 1 / 4) / 2])


def test_a_word_by_hand() -> None:
    tree = replace(sentence(["Oslo", "sings", "in", "Paris"]), heads=(1, ROOT, 3, 1))
    np.testing.assert_allclose(of_word(tree, 3, TRAINING), [2, 3, 1 / 4])
    np.testing.assert_allclose(of_word(tree, 0, TRAINING), [1, np.nan, 1])
    assert np.isnan(of_word(tree, 1, TRAINING)[0])
    assert np.isnan(of_word(sentence(["Paris"]), 0, TRAINING)[0])


@pytest.mark.parametrize(("tag", "kind"), [("B-PER", "PER"), ("I-a-b", "a-b"), ("O", NO_NAME)])
def test_the_kind_of_a_tag(tag: str, kind: str) -> None:
    assert kind_of(tag) == kind


def test_arc_length_by_hand_leaves_out_root_and_punctuation() -> None:
    tree = replace(
        sentence(["the", "old", "dog", "barked", "loudly", "."]),
        heads=(2, 2, 3, ROOT, 3, 3),
        relations=("det", "amod", "nsubj", "root", "advmod", "punct"),
    )
    assert arc_length((tree,)) == (2 + 1 + 1 + 1) / 4
    other = replace(sentence(["a", "b"]), heads=(ROOT, 0), relations=("root", "obj"))
    assert arc_length((tree, other)) == (2 + 1 + 1 + 1 + 1) / 5
    assert np.isnan(arc_length((sentence(["no", "tree"]),)))


def test_arc_length_on_a_treebank_is_that_of_its_arcs() -> None:
    for item in corpus_named("english", limit=20):
        (part,) = item.parts
        assert part.heads is not None and part.relations is not None
        arcs = np.array([(word, head) for word, head in enumerate(part.heads)])
        kept = (arcs[:, 1] >= 0) & np.array([relation != "punct" for relation in part.relations])
        expected = np.abs(np.diff(arcs[kept], axis=1)).mean() if kept.any() else np.nan
        np.testing.assert_allclose(arc_length(item.parts), expected)


def test_entropy_of_the_mean_chance() -> None:
    training = classes_of(labelled("good good film", "+"), labelled("bad film", "-"), labelled("good film", "+"))
    # good: always +; bad: always -; film: + in 2 of 3.
    for words, chance in (("good", 1), ("good bad", 0.5), ("film new", 2 / 3), ("Good film bad", (1 + 2 / 3 + 0) / 3)):
        found = class_entropy(words.split(), training, ("+", "-"))
        np.testing.assert_allclose(found, entropy([chance, 1 - chance], base=2), atol=1e-12)
    assert np.isnan(class_entropy(["new"], training, ("+", "-")))


def test_many_classes_reach_the_logarithm_of_their_number() -> None:
    training = classes_of(*(labelled("word", name) for name in "abcd"))
    np.testing.assert_allclose(class_entropy(["word"], training, tuple("abcd")), 2)


def test_a_text_by_hand() -> None:
    training = classes_of(labelled("good film", "+"), labelled("bad film", "-"))
    complexity, ambiguity, unseen = of_text(labelled("a good new film", "+"), training, ("+", "-"))
    assert np.isnan(complexity)
    np.testing.assert_allclose(ambiguity, entropy([0.75, 0.25], base=2))
    assert unseen == 2 / 4


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
    found = halves(np.array(values, float))
    assert found is not None and found.tolist() == [bool(one) for one in upper]


@pytest.mark.parametrize("values", [[], [np.nan], [1.0, 1.0], [2.0]])
def test_no_halves_where_all_are_alike(values: list[float]) -> None:
    assert halves(np.array(values, float)) is None
