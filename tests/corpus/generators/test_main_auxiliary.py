"""Main auxiliary: position identifies the target in training, but never in generalisation."""

from __future__ import annotations

import re
from collections import Counter
from statistics import mean

import pytest
from tests.corpus.generators.word_classes import letters, shape
from tests.shared_data import shared

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.generate import generate
from bertology.corpus.read import read

OTHER = "DJ*N"
CLAUSE = f"R(?:XI|{OTHER}XT|XT{OTHER})"
SENTENCE = re.compile(f"(DN(?:P{OTHER}|{CLAUSE})?)X(?:I|T{OTHER}(?:P{OTHER}|{CLAUSE})?)")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return generate("main_auxiliary", size=900, seed=2)


def target(example: Example) -> int:
    (index,) = example.segments[0].marked_words["target"]
    return index


def test_the_splits_are_four_to_one_to_one(corpus: Corpus) -> None:
    splits = Counter(example.factors["split"] for example in corpus)
    assert splits == {"train": pytest.approx(600, abs=10), "test": pytest.approx(150, abs=10)} | {
        "generalisation": 900 - splits["train"] - splits["test"]
    }


def test_every_sentence_parses_and_its_main_auxiliary_is_marked(corpus: Corpus) -> None:
    for example in corpus:
        match = SENTENCE.fullmatch(letters(example.segments[0].words))
        assert match and target(example) == match.end(1), example.segments[0].text


def test_position_identifies_the_target_in_training_but_not_in_generalisation(corpus: Corpus) -> None:
    for example in corpus:
        classes, factors = letters(example.segments[0].words), example.factors
        assert (classes.index("X") == target(example)) == (factors["split"] != "generalisation")
        assert classes.count("X") == int(factors["auxiliaries"])


def test_train_and_test_share_no_sentence_for_any_seed() -> None:
    train, test = (
        {s.text for s in generate("main_auxiliary", size=1500, seed=seed, split=split).sentences}
        for seed, split in ((1, "train"), (2, "test"))
    )
    assert not train & test
    assert sum(len(text.split()) == 4 for text in test) > 150, "short sentences could occur in both"


def test_no_word_predicts_the_split() -> None:
    counts: dict[str, Counter[str]] = {}
    for split in ("train", "test"):
        corpus = generate("main_auxiliary", size=3000, seed=5, split=split)
        counts[split] = Counter(word for example in corpus for word in example.segments[0].words)
    for word, count in counts["train"].items():
        frequency = count / counts["train"].total()
        assert counts["test"][word] / counts["test"].total() == pytest.approx(frequency, rel=0.3), word


@pytest.mark.parametrize("split", ["train", "test", "gen"])
def test_sentences_have_the_structures_of_the_published_ones(split: str) -> None:
    published = read(shared(f"data/opensesame/aux.{split}"), limit=800)
    generated = generate("main_auxiliary", size=1500, split={"gen": "generalisation"}.get(split, split))
    common = {name for name, count in shapes(published).items() if count >= 5}
    assert common <= shapes(generated).keys()
    assert all(SENTENCE.fullmatch(letters(example.segments[0].words)) for example in published)
    lengths, published_lengths = (map(len, corpus.sentences) for corpus in (generated, published))
    assert mean(lengths) == pytest.approx(mean(published_lengths), abs=2)


def shapes(corpus: Corpus) -> Counter[str]:
    return Counter(shape(example.segments[0].words) for example in corpus)
