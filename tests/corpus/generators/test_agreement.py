"""Agreement: each condition is what it says, in the words of the sentence, and as in the published files."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tests.corpus.generators.word_classes import is_plural, letters
from tests.shared_data import shared

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.factors import factors
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


def marked(item: Item, role: str) -> list[str]:
    return [item.parts[0].words[index] for index in item.parts[0].marks[role]]


def test_the_cells_are_equally_frequent(corpus: Corpus) -> None:
    cells = Counter(factors(item)["cell"] for item in corpus)
    assert set(cells) == {f"agr.{cell}" for cell in range(20)}
    assert max(cells.values()) - min(cells.values()) <= 2


def test_shape_and_marks_are_the_structures(corpus: Corpus) -> None:
    for item in corpus:
        words = item.parts[0].words
        assert re.fullmatch(SHAPES[factors(item)["structure"]], letters(words))
        assert item.parts[0].marks["antecedent"] == (0, 1)
        assert item.parts[0].marks["target"] == (len(words) - 2,)
        assert letters(marked(item, "distractor")) in ("", "DN")


def test_the_target_agrees_with_its_antecedent(corpus: Corpus) -> None:
    for item in corpus:
        known = factors(item)
        (target,), (_, noun) = marked(item, "target"), marked(item, "antecedent")
        assert known["number"] == ("plural" if is_plural(noun) else "singular")
        if known["auxiliary"] == "inflected":
            assert target == ("do" if is_plural(noun) else "does")
        else:
            assert target in {"can", "will", "would", "could"}


def test_auxiliaries_in_clauses_agree_with_their_own_subject(corpus: Corpus) -> None:
    for item in corpus:
        words, known = item.parts[0].words, factors(item)
        if known["relative"] == "1":
            inner = next(word for word in words if letters([word]) in "XY")
            subject = words[4] if known["structure"] == "object_relative" else words[1]
            assert inner not in {"do", "does"} or inner == ("do" if is_plural(subject) else "does")


def test_distractors_are_what_the_condition_says(corpus: Corpus) -> None:
    for item in corpus:
        known, distractor = factors(item), marked(item, "distractor")
        assert item.label == known["condition"]
        assert int(known["distractors"]) == len(distractor) // 2
        assert (known["condition"] == "A0") == (not distractor)
        assert known["relative"] == str(int("R" in letters(item.parts[0].words)))
        if distractor:
            mismatch = is_plural(distractor[1]) != is_plural(marked(item, "antecedent")[1])
            assert known["mismatch"] == str(int(mismatch))
            assert known["condition"] == f"A{1 + mismatch + 2 * int(known['relative'])}"


def test_distance_counts_words_from_noun_to_target(corpus: Corpus) -> None:
    for item in corpus:
        marks = item.parts[0].marks
        assert int(factors(item)["distance"]) == marks["target"][0] - marks["antecedent"][1]


@pytest.mark.parametrize("cell", range(20))
def test_each_cell_is_built_as_the_published_one(cell: int, corpus: Corpus) -> None:
    published = read(shared(f"data/opensesame/agr.{cell}"), limit=300)
    own = [item for item in corpus if factors(item)["cell"] == f"agr.{cell}"]
    assert set(map(layout, own)) == set(map(layout, published))
    assert vocabulary(published) - {"fish"} <= vocabulary(corpus)
    assert {factors(item)["condition"] for item in published} == {item.label for item in own}


def layout(item: Item) -> tuple[str, tuple[tuple[int, ...], ...]]:
    marks = item.parts[0].marks
    return letters(item.parts[0].words), tuple(marks[role] for role in ("target", "antecedent", "distractor"))


def vocabulary(corpus: Corpus | list[Item]) -> set[str]:
    return {word for item in corpus for word in item.parts[0].words}
