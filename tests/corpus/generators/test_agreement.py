"""Agreement: the words of each condition follow its factors, and structures equal those of the published files."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tests.corpus.generators.word_classes import is_plural, letters
from tests.shared_data import shared

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.generate import generate
from bertology.corpus.read import read

SHAPES = {
    "plain": "DN(X|Y)I",
    "intransitive_relative": "DNR(X|Y)I(X|Y)I",
    "prepositional": "DNPDN(X|Y)I",
    "object_relative": "DNRDN(X|Y)T(X|Y)I",
    "subject_relative": "DNR(X|Y)TDN(X|Y)I",
}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return generate("agreement", size=1600, seed=3)


def marked_forms(example: Example, role: str) -> list[str]:
    return [example.segments[0].words[index] for index in example.segments[0].marked_words[role]]


def test_the_cells_are_equally_frequent(corpus: Corpus) -> None:
    cells = Counter(example.factors["cell"] for example in corpus)
    assert set(cells) == {f"agr.{cell}" for cell in range(20)}
    assert max(cells.values()) - min(cells.values()) <= 2


def test_structures_determine_shape_and_marked_words(corpus: Corpus) -> None:
    for example in corpus:
        words = example.segments[0].words
        assert re.fullmatch(SHAPES[example.factors["structure"]], letters(words))
        assert example.segments[0].marked_words["antecedent"] == (0, 1)
        assert example.segments[0].marked_words["target"] == (len(words) - 2,)
        assert letters(marked_forms(example, "distractor")) in ("", "DN")


def test_the_target_agrees_with_its_antecedent(corpus: Corpus) -> None:
    for example in corpus:
        factors = example.factors
        (target,), (_, noun) = marked_forms(example, "target"), marked_forms(example, "antecedent")
        assert factors["number"] == ("plural" if is_plural(noun) else "singular")
        if factors["auxiliary"] == "inflected":
            assert target == ("do" if is_plural(noun) else "does")
        else:
            assert target in {"can", "will", "would", "could"}


def test_auxiliaries_in_clauses_agree_with_the_subject_of_the_clause(corpus: Corpus) -> None:
    for example in corpus:
        words, factors = example.segments[0].words, example.factors
        if factors["relative"] == "1":
            inner = next(word for word in words if letters([word]) in "XY")
            subject = words[4] if factors["structure"] == "object_relative" else words[1]
            assert inner not in {"do", "does"} or inner == ("do" if is_plural(subject) else "does")


def test_conditions_determine_the_distractors(corpus: Corpus) -> None:
    for example in corpus:
        factors, distractor = example.factors, marked_forms(example, "distractor")
        assert example.label == factors["condition"]
        assert int(factors["distractors"]) == len(distractor) // 2
        assert (factors["condition"] == "A0") == (not distractor)
        assert factors["relative"] == str(int("R" in letters(example.segments[0].words)))
        if distractor:
            mismatch = is_plural(distractor[1]) != is_plural(marked_forms(example, "antecedent")[1])
            assert factors["mismatch"] == str(int(mismatch))
            assert factors["condition"] == f"A{1 + mismatch + 2 * int(factors['relative'])}"


def test_distance_is_the_number_of_words_from_noun_to_target(corpus: Corpus) -> None:
    for example in corpus:
        marked = example.segments[0].marked_words
        assert int(example.factors["distance"]) == marked["target"][0] - marked["antecedent"][1]


@pytest.mark.parametrize("cell", range(20))
def test_each_cell_has_the_structures_of_the_published_one(cell: int, corpus: Corpus) -> None:
    published = read(shared(f"data/opensesame/agr.{cell}"), limit=300)
    generated = [example for example in corpus if example.factors["cell"] == f"agr.{cell}"]
    assert set(map(layout, generated)) == set(map(layout, published))
    assert vocabulary(published) - {"fish"} <= vocabulary(corpus)
    assert {example.factors["condition"] for example in published} == {example.label for example in generated}


def layout(example: Example) -> tuple[str, tuple[tuple[int, ...], ...]]:
    marked = example.segments[0].marked_words
    return letters(example.segments[0].words), tuple(marked[role] for role in ("target", "antecedent", "distractor"))


def vocabulary(corpus: Corpus | list[Example]) -> set[str]:
    return {word for example in corpus for word in example.segments[0].words}
