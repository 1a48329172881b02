"""`probes/artefacts`: clues that are planted are found, those that are not stay at chance."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item, of_sentences
from bertology.corpus.sentence import sentence
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.results.shapes import Table

NAME = "probes/artefacts"
SEVERAL = 400


def table(corpus: Corpus) -> Table:
    data = run(registry.get(NAME), Subject(corpus, load("tiny"))).data
    assert isinstance(data, Table)
    return data


def corpus_of(kind: str, *, split: bool = False) -> Corpus:
    """Labels that the length, a word, the order of two words, or nothing shows."""
    random = np.random.default_rng(0)
    items: list[Item] = []
    for number in range(SEVERAL):
        one = bool(random.integers(2))
        words = [f"w{place}" for place in random.integers(50, size=6)]
        if kind == "length":
            words = words[: 5 + one]
        if kind == "words":
            words[int(random.integers(6))] = "yes" if one else "no"
        if kind == "neighbours":
            words[2:4] = ["left", "right"] if one else ["right", "left"]
        source = ("test" if number % 5 == 0 else "train") if split else ""
        items.append(Item((sentence(words),), label=str(one), source=source))
    return Corpus(tuple(items), name=kind)


@pytest.mark.parametrize("kind", ["length", "words", "neighbours", "nothing"])
@pytest.mark.parametrize("split", [True, False])
def test_the_planted_clue_is_found_and_no_other(kind: str, split: bool) -> None:
    found = table(corpus_of(kind, split=split))
    implied = {"length": {"length"}, "words": {"words"}, "neighbours": {"neighbours"}, "nothing": set[str]()}[kind]
    for row, value in zip(found.rows_named, found.measures["accuracy"].value, strict=True):
        if row in implied:
            assert value > 0.95, row
        elif not (kind == "length" and row == "words") and not (kind == "words" and row == "neighbours"):
            assert 0.3 < value < 0.7, row
    shuffled = found.baselines["shuffled labels"]["accuracy"].value
    assert ((shuffled > 0.25) & (shuffled < 0.75)).all()
    if split:
        assert found.measures["accuracy"].n[0] == SEVERAL / 5


def test_order_tasks_tell_nothing_to_a_bag_of_words() -> None:
    for task in ("bigram_shift", "odd_man_out"):
        found = table(corpus_named(f"tasks:{task}:english"))
        words = found.measures["accuracy"][found.rows_named.index("words")]
        assert words.low < 0.5 < words.high, task


def test_one_label_is_refused() -> None:
    one = of_sentences([sentence(["a", str(n)]) for n in range(5)])
    with pytest.raises(Refusal, match="label"):
        table(one)
    with pytest.raises(Refusal, match="two labels or more"):
        table(Corpus(tuple(Item(item.parts, label="same") for item in one), name="same"))
