"""Reading items: the answer stands in the passage and is found by reading it; without the passage there is chance."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from tests.corpus.generators.baselines import bags, picked

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.factors import factors
from bertology.corpus.generate import generate

WOMEN = {"Anna", "Mary", "Laura", "Susan", "Emma", "Julia", "Helen", "Alice", "Clara", "Nora"}
QUESTIONS = {"who", "what", "where", "when", "tool"}


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return generate("reading", size=2100, seed=9)


def options(item: Item) -> list[str]:
    return [part.text for part in item.parts[2:]]


def right(item: Item) -> int:
    return int(item.label or "")


def expected(corpus: Corpus) -> float:
    """The accuracy of guessing."""
    return float(np.mean([1 / len(options(item)) for item in corpus]))


def sentences(item: Item) -> list[str]:
    return re.findall(r"[^.]+\.", item.parts[0].text)


def facts(item: Item) -> list[str]:
    """The passage cut before each person: what is said about one of them."""
    found: list[str] = []
    for sentence in sentences(item):
        if re.match(r" ?(She|He)\b", sentence):
            found[-1] += sentence
        else:
            found.append(sentence)
    return found


def test_questions_options_and_positions_are_balanced(corpus: Corpus) -> None:
    cells = Counter((factors(item)["question"], factors(item)["options"], item.label) for item in corpus)
    assert {question for question, _, _ in cells} == QUESTIONS and len(cells) == 5 * (3 + 4)
    for count, share in (("3", 70), ("4", 52.5)):
        assert all(abs(n - share) <= 1 for (_, size, _), n in cells.items() if size == count)


def test_passages_have_three_to_six_sentences(corpus: Corpus) -> None:
    assert {len(sentences(item)) for item in corpus} == {3, 4, 5, 6}
    assert all(len(item.parts) == 2 + int(factors(item)["options"]) for item in corpus)


def test_every_option_is_mentioned_once_and_all_differ(corpus: Corpus) -> None:
    for item in corpus:
        assert len(set(options(item))) == len(options(item))
        for option in options(item):
            assert len(re.findall(rf"\b{option}\b", item.parts[0].text)) == 1, (option, item.parts[0].text)


def test_reading_finds_the_answer_and_only_it(corpus: Corpus) -> None:
    """The one fact that shares a person or an object with the question holds exactly one option: the right one."""
    for item in corpus:
        question = item.parts[1].text
        person = re.search(r"did (\w+) ", question)
        thing = re.search(r"(the [a-z ]+)\?", question)
        key = person[1] if person else thing[1] if thing else ""
        (fact,) = (fact for fact in facts(item) if re.search(rf"\b{key}\b", fact))
        assert not thing or thing[1] in fact
        held = [place for place, option in enumerate(options(item)) if re.search(rf"\b{option}\b", fact)]
        assert held == [right(item)], (item.parts[0].text, question)


def test_pronouns_fit_the_names(corpus: Corpus) -> None:
    for item in corpus:
        for before, after in zip(sentences(item), sentences(item)[1:], strict=False):
            if pronoun := re.match(r" (She|He)\b", after):
                name = re.match(r" ?(\w+)", before)
                assert name and (pronoun[1] == "She") == (name[1] in WOMEN)


def test_articles_and_capitals(corpus: Corpus) -> None:
    for item in corpus:
        assert all(sentence.strip()[0].isupper() for sentence in sentences(item))
        assert item.parts[1].text.endswith("?")
        for article, letter in re.findall(r"\b(an?) (\w)", item.parts[0].text):
            assert (article == "an") == (letter in "aeiou")


def test_length_position_and_order_of_mention_are_at_chance(corpus: Corpus) -> None:
    """Measured at seeds 9, 1, 2: longest 28.5, 29.3, 28.0 %, mentioned first 28.1, 31.1, 28.9 %; chance is 29.2 %."""

    def share(guess: list[int]) -> float:
        return float(np.mean([place == right(item) for place, item in zip(guess, corpus, strict=True)]))

    def first(item: Item) -> int:
        return int(np.argmin([item.parts[0].text.index(option) for option in options(item)]))

    def last(item: Item) -> int:
        return int(np.argmax([item.parts[0].text.index(option) for option in options(item)]))

    guesses = {
        "longest": [int(np.argmax([len(option) for option in options(item)])) for item in corpus],
        "shortest": [int(np.argmin([len(option) for option in options(item)])) for item in corpus],
        "mentioned first": [first(item) for item in corpus],
        "mentioned last": [last(item) for item in corpus],
        "first position": [0 for _ in corpus],
    }
    for name, guess in guesses.items():
        assert share(guess) == pytest.approx(expected(corpus), abs=0.035), name


def test_question_and_option_without_the_passage_are_at_chance(corpus: Corpus) -> None:
    """Measured on items with four options at seeds 9, 1, 2: 28.1, 22.7, 27.0 %; chance is 25 %."""
    rows = [(item, place) for item in corpus if len(options(item)) == 4 for place in range(4)]
    texts = [(*item.parts[1].words, *(f"option:{w}" for w in item.parts[2 + place].words)) for item, place in rows]
    assert picked(bags(texts), [place == right(item) for item, place in rows], 4) == pytest.approx(0.25, abs=0.045)
