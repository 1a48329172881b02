"""Reflexives: pronoun, antecedent and distractors by gender or number, and structures of the published files."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.corpus.generators.word_classes import is_plural, letters
from tests.shared_data import shared

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.generate import generate
from bertology.corpus.phrase_spaces import split_word_list
from bertology.corpus.read import read

FEMININE_SINGULAR = set(split_word_list("woman girl queen princess witch mother aunt niece actress sister wife lady"))
IRREGULAR = {"women", "wives", "ladies", "princesses", "witches", "actresses"}
FEMININE = FEMININE_SINGULAR | {"nun", "nuns"} | {noun + "s" for noun in FEMININE_SINGULAR} | IRREGULAR
OBJECT_MATCHES = {"R1": 1, "R2": 0, "R5": 1, "R6": 1, "R7": 0, "R8": 0}
CLAUSE_MATCHES = {"R5": 1, "R6": 0, "R7": 1, "R8": 0}


@pytest.fixture(scope="module", params=["gender", "number"])
def corpus(request: pytest.FixtureRequest) -> Corpus:
    return generate("reflexives", size=1200, seed=4, feature=request.param)


@pytest.fixture(scope="module")
def gender_corpus() -> Corpus:
    return generate("reflexives", size=1200, seed=4)


def marked_nouns(example: Example, role: str) -> list[str]:
    """Return the nouns of the marked noun phrases."""
    words = [example.segments[0].words[index] for index in example.segments[0].marked_words[role]]
    assert letters(words) == "DN" * (len(words) // 2)
    return words[1::2]


def has_feature(noun: str, name: str) -> bool:
    return noun in FEMININE if name == "gender" else is_plural(noun)


def test_the_conditions_are_equally_frequent(corpus: Corpus) -> None:
    counts = Counter(example.label for example in corpus)
    assert set(counts) == {f"R{number}" for number in range(9)}
    assert max(counts.values()) - min(counts.values()) <= 8


def test_the_pronoun_agrees_with_its_antecedent(corpus: Corpus) -> None:
    for example in corpus:
        sentence = example.segments[0]
        ((target,), (noun,)) = sentence.marked_words["target"], marked_nouns(example, "antecedent")
        expected = "themselves" if is_plural(noun) else "herself" if noun in FEMININE else "himself"
        assert target == len(sentence) - 1 and sentence.words[target] == expected


def test_conditions_determine_the_agreement_of_distractors(corpus: Corpus) -> None:
    for example in corpus:
        factors, nouns = example.factors, marked_nouns(example, "distractor")
        (antecedent,) = marked_nouns(example, "antecedent")
        name = factors["feature"]
        other = "number" if name == "gender" else "gender"
        assert all(has_feature(noun, other) == has_feature(antecedent, other) for noun in nouns)
        matches = [has_feature(noun, name) == has_feature(antecedent, name) for noun in nouns]
        assert int(factors["distractors"]) == len(nouns)
        assert int(factors["mismatches"]) == matches.count(False)
        condition = factors["condition"]
        if condition in CLAUSE_MATCHES:
            assert matches == [CLAUSE_MATCHES[condition], OBJECT_MATCHES[condition]]
        elif condition in ("R3", "R4"):
            assert matches == [condition == "R3"] and "R" in letters(example.segments[0].words)
        else:
            assert matches == ([OBJECT_MATCHES[condition]] if condition in OBJECT_MATCHES else [])


def test_factors_describe_the_positions_of_distractors(corpus: Corpus) -> None:
    for example in corpus:
        words, factors = example.segments[0].words, example.factors
        assert (factors["object"] != "none") == (words[-2] == "by")
        assert (factors["clause"] != "none") == (factors["structure"] in ("object_relative", "subject_relative"))
        assert int(factors["distance"]) == len(words) - 2


@pytest.mark.parametrize("condition", range(9))
def test_each_condition_has_the_structures_of_the_published_one(condition: int, gender_corpus: Corpus) -> None:
    published = read(shared(f"data/opensesame/refl.{condition}"), limit=400)
    published_layouts, layouts = (
        frequencies(list(published)),
        frequencies([example for example in gender_corpus if example.label == f"R{condition}"]),
    )
    assert layouts == {layout: pytest.approx(p, abs=0.15) for layout, p in published_layouts.items()}
    assert vocabulary(published) <= vocabulary(gender_corpus)


def vocabulary(corpus: Corpus) -> set[str]:
    return {word for sentence in corpus.sentences for word in sentence.words}


def frequencies(examples: list[Example]) -> dict[tuple[str, tuple[int, ...]], float]:
    counts = Counter((letters(e.segments[0].words), e.segments[0].marked_words["distractor"]) for e in examples)
    return {layout: count / len(examples) for layout, count in counts.items()}
