"""Minimal pairs: one word apart, the acceptable side agrees, and the nouns between are what the factors say."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.factors import factors
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


def marked(item: Item, role: str, side: int = 0) -> list[str]:
    part = item.parts[side]
    return [part.words[index] for index in part.marks[role]]


def nouns(item: Item, role: str) -> list[str]:
    return [word.removesuffix("'s") for word in marked(item, role) if word.lower() != "the"]


def is_plural(noun: str) -> bool:
    return noun in IRREGULAR or (noun.endswith("s") and noun not in SINGULAR_IN_S)


def singular_form(verb: str) -> bool:
    """Whether an agreeing verb is the form for a singular subject."""
    return verb in SINGULAR_VERBS or verb.endswith("s")


def reflexive(noun: str) -> str:
    return "themselves" if is_plural(noun) else "herself" if noun in FEMININE else "himself"


def test_the_paradigms_are_equally_frequent(corpus: Corpus) -> None:
    counts = Counter(factors(item)["paradigm"] for item in corpus)
    assert set(counts) == PARADIGMS
    assert all(count == pytest.approx(300, abs=25) for count in counts.values())


def test_the_sides_differ_in_the_target_alone(corpus: Corpus) -> None:
    for item in corpus:
        good, bad = item.parts
        assert item.kind == "minimal_pair" and len(good) == len(bad)
        different = [i for i, (a, b) in enumerate(zip(good.words, bad.words, strict=True)) if a != b]
        assert tuple(different) == good.marks["target"] == bad.marks["target"]
        assert good.marks == bad.marks


def test_they_are_written_as_text(corpus: Corpus) -> None:
    for part in corpus.sentences:
        assert part.text[0].isupper() and part.text.endswith(part.words[-2] + ".") and part.words[-1] == "."


def test_no_noun_comes_twice(corpus: Corpus) -> None:
    for item in corpus:
        found = nouns(item, "antecedent") + nouns(item, "distractor")
        assert len(set(found)) == len(found)


def test_only_the_acceptable_side_agrees(corpus: Corpus) -> None:
    for item in corpus:
        (head,), (good,), (bad,) = nouns(item, "antecedent"), marked(item, "target"), marked(item, "target", 1)
        if factors(item)["paradigm"].startswith("agreement"):
            assert singular_form(good) != is_plural(head)
            assert singular_form(bad) == is_plural(head)
            assert good not in {"read", "hurt"}, "its past has the same form, so both sides would do"
        else:
            assert good == reflexive(head) != bad


def test_attractors_are_counted(corpus: Corpus) -> None:
    for item in corpus:
        known, others = factors(item), nouns(item, "distractor")
        (head,), (bad,) = nouns(item, "antecedent"), marked(item, "target", 1)
        if known["paradigm"].startswith("agreement"):
            attracting = [noun for noun in others if is_plural(noun) != is_plural(head)]
        else:
            attracting = [noun for noun in others if reflexive(noun) == bad]
        assert int(known["intervening"]) == len(others)
        assert int(known["attractors"]) == len(attracting)
        assert known["paradigm"] != "binding/c_command" or len(attracting) == 1


def test_number_verbs_and_attractors_are_crossed(corpus: Corpus) -> None:
    cells = Counter(
        tuple(factors(item)[name] for name in ("structure", "verb", "number", "intervening", "attractors"))
        for item in corpus
        if "verb" in factors(item)
    )
    assert len(cells) == (1 + 3 * 3 * 2) * 4 * 2
    attractors = {(key[3], key[4]) for key in cells}
    assert attractors == {("0", "0"), ("1", "0"), ("1", "1"), ("2", "0"), ("2", "2"), ("3", "0"), ("3", "3")}


@pytest.mark.parametrize("paradigm", ["agreement", "binding"])
def test_one_side_of_grammar_alone(paradigm: str) -> None:
    corpus = generate("minimal_pairs", size=100, paradigm=paradigm)
    assert {factors(item)["paradigm"].split("/")[0] for item in corpus} == {paradigm}
