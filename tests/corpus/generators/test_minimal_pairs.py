"""Minimal pairs: one word differs, only the acceptable sentence agrees, factors describe the intervening nouns."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.generate import generate

IRREGULAR = {"children", "men", "women"}
SINGULAR_IN_S = {"boss", "princess", "actress", "waitress"}
FEMININE = re.findall(
    r"\w+",
    """queen princess nun actress waitress woman girl witch queens princesses nuns actresses waitresses women girls
    witches sister mother aunt daughter niece grandmother""",
)
SINGULAR_VERBS = {"is", "has", "does"}
PARADIGMS = {
    *(f"agreement/{name}" for name in ("simple", "prepositional", "object_relative", "subject_relative")),
    *(f"binding/{name}" for name in ("gender", "number", "c_command")),
}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return generate("minimal_pairs", size=2100, seed=6)


def marked_forms(example: Example, role: str, index: int = 0) -> list[str]:
    sentence = example.segments[index]
    return [sentence.words[word] for word in sentence.marked_words[role]]


def nouns(example: Example, role: str) -> list[str]:
    return [word.removesuffix("'s") for word in marked_forms(example, role) if word.lower() != "the"]


def is_plural(noun: str) -> bool:
    return noun in IRREGULAR or (noun.endswith("s") and noun not in SINGULAR_IN_S)


def is_singular_verb(verb: str) -> bool:
    return verb in SINGULAR_VERBS or verb.endswith("s")


def reflexive(noun: str) -> str:
    return "themselves" if is_plural(noun) else "herself" if noun in FEMININE else "himself"


def test_the_paradigms_are_equally_frequent(corpus: Corpus) -> None:
    counts = Counter(example.factors["paradigm"] for example in corpus)
    assert set(counts) == PARADIGMS
    assert all(count == pytest.approx(300, abs=25) for count in counts.values())


def test_the_sentences_differ_only_in_the_target(corpus: Corpus) -> None:
    for example in corpus:
        first, second = example.segments
        assert example.kind == "minimal_pair" and len(first) == len(second)
        different = [i for i, (a, b) in enumerate(zip(first.words, second.words, strict=True)) if a != b]
        assert tuple(different) == first.marked_words["target"] == second.marked_words["target"]
        assert first.marked_words == second.marked_words


def test_sentences_have_capitals_and_full_stops(corpus: Corpus) -> None:
    for sentence in corpus.sentences:
        text, words = sentence.text, sentence.words
        assert text[0].isupper() and text.endswith(words[-2] + ".") and words[-1] == "."


def test_no_noun_is_repeated(corpus: Corpus) -> None:
    for example in corpus:
        all_nouns = nouns(example, "antecedent") + nouns(example, "distractor")
        assert len(set(all_nouns)) == len(all_nouns)


def test_only_the_acceptable_sentence_agrees(corpus: Corpus) -> None:
    for example in corpus:
        (noun,) = nouns(example, "antecedent")
        (right,), (wrong,) = (marked_forms(example, "target", index) for index in (0, 1))
        if example.factors["paradigm"].startswith("agreement"):
            assert is_singular_verb(right) != is_plural(noun)
            assert is_singular_verb(wrong) == is_plural(noun)
            assert right not in {"read", "hurt"}, "the past has the same form, so both would be acceptable"
        else:
            assert right == reflexive(noun) != wrong


def test_attractors_are_counted(corpus: Corpus) -> None:
    for example in corpus:
        factors, distractors = example.factors, nouns(example, "distractor")
        (antecedent,), (wrong,) = nouns(example, "antecedent"), marked_forms(example, "target", 1)
        if factors["paradigm"].startswith("agreement"):
            attractors = [noun for noun in distractors if is_plural(noun) != is_plural(antecedent)]
        else:
            attractors = [noun for noun in distractors if reflexive(noun) == wrong]
        assert int(factors["intervening"]) == len(distractors)
        assert int(factors["attractors"]) == len(attractors)
        assert factors["paradigm"] != "binding/c_command" or len(attractors) == 1


def test_number_verb_and_attractors_are_crossed(corpus: Corpus) -> None:
    cells = Counter(
        tuple(example.factors[name] for name in ("structure", "verb", "number", "intervening", "attractors"))
        for example in corpus
        if "verb" in example.factors
    )
    assert len(cells) == (1 + 3 * 3 * 2) * 4 * 2
    combinations = {(key[3], key[4]) for key in cells}
    assert combinations == {("0", "0"), ("1", "0"), ("1", "1"), ("2", "0"), ("2", "2"), ("3", "0"), ("3", "3")}


@pytest.mark.parametrize("paradigm", ["agreement", "binding"])
def test_one_paradigm_can_be_generated(paradigm: str) -> None:
    corpus = generate("minimal_pairs", size=100, paradigm=paradigm)
    assert {example.factors["paradigm"].split("/")[0] for example in corpus} == {paradigm}
