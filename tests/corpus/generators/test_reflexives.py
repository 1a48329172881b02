"""Reflexives: pronoun, antecedent and distractors by gender or number, and the structures of the published files."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.corpus.generators.word_classes import is_plural, letters
from tests.shared_data import shared

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.factors import factors
from bertology.corpus.generate import generate
from bertology.corpus.read import read

ONE = {"woman", "girl", "queen", "princess", "witch", "mother", "aunt", "niece", "actress", "sister", "wife", "lady"}
IRREGULAR = {"women", "wives", "ladies", "princesses", "witches", "actresses"}
FEMININE = ONE | {"nun", "nuns"} | {noun + "s" for noun in ONE} | IRREGULAR
OBJECT = {"R1": 1, "R2": 0, "R5": 1, "R6": 1, "R7": 0, "R8": 0}
CLAUSE = {"R5": 1, "R6": 0, "R7": 1, "R8": 0}


@pytest.fixture(scope="module", params=["gender", "number"])
def corpus(request: pytest.FixtureRequest) -> Corpus:
    return generate("reflexives", size=1200, seed=4, feature=request.param)


@pytest.fixture(scope="module")
def gendered() -> Corpus:
    return generate("reflexives", size=1200, seed=4)


def groups(item: Item, role: str) -> list[str]:
    """The nouns of the marked noun phrases."""
    words = [item.parts[0].words[index] for index in item.parts[0].marks[role]]
    assert letters(words) == "DN" * (len(words) // 2)
    return words[1::2]


def feature(noun: str, name: str) -> bool:
    return noun in FEMININE if name == "gender" else is_plural(noun)


def test_the_conditions_are_equally_frequent(corpus: Corpus) -> None:
    counts = Counter(item.label for item in corpus)
    assert set(counts) == {f"R{number}" for number in range(9)}
    assert max(counts.values()) - min(counts.values()) <= 8


def test_the_pronoun_agrees_with_its_antecedent(corpus: Corpus) -> None:
    for item in corpus:
        part = item.parts[0]
        ((target,), (noun,)) = part.marks["target"], groups(item, "antecedent")
        expected = "themselves" if is_plural(noun) else "herself" if noun in FEMININE else "himself"
        assert target == len(part) - 1 and part.words[target] == expected


def test_distractors_match_as_the_condition_says(corpus: Corpus) -> None:
    for item in corpus:
        known, nouns = factors(item), groups(item, "distractor")
        (antecedent,) = groups(item, "antecedent")
        name = known["feature"]
        other = "number" if name == "gender" else "gender"
        assert all(feature(noun, other) == feature(antecedent, other) for noun in nouns)
        matches = [feature(noun, name) == feature(antecedent, name) for noun in nouns]
        assert int(known["distractors"]) == len(nouns)
        assert int(known["mismatches"]) == matches.count(False)
        condition = known["condition"]
        if condition in CLAUSE:
            assert matches == [CLAUSE[condition], OBJECT[condition]]
        elif condition in ("R3", "R4"):
            assert matches == [condition == "R3"] and "R" in letters(item.parts[0].words)
        else:
            assert matches == ([OBJECT[condition]] if condition in OBJECT else [])


def test_the_places_of_distractors_are_told(corpus: Corpus) -> None:
    for item in corpus:
        words, known = item.parts[0].words, factors(item)
        assert (known["object"] != "none") == (words[-2] == "by")
        assert (known["clause"] != "none") == (known["structure"] in ("object_relative", "subject_relative"))
        assert int(known["distance"]) == len(words) - 2


@pytest.mark.parametrize("condition", range(9))
def test_each_condition_is_built_as_the_published_one(condition: int, gendered: Corpus) -> None:
    published = read(shared(f"data/opensesame/refl.{condition}"), limit=400)
    there, here = shares(list(published)), shares([item for item in gendered if item.label == f"R{condition}"])
    assert here == {layout: pytest.approx(share, abs=0.15) for layout, share in there.items()}
    assert vocabulary(published) <= vocabulary(gendered)


def vocabulary(corpus: Corpus) -> set[str]:
    return {word for part in corpus.sentences for word in part.words}


def shares(items: list[Item]) -> dict[tuple[str, tuple[int, ...]], float]:
    counts = Counter((letters(i.parts[0].words), i.parts[0].marks["distractor"]) for i in items)
    return {layout: count / len(items) for layout, count in counts.items()}
