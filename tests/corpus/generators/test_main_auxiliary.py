"""Main auxiliary: the marked word is the main clause's, position finds it in training and never in generalisation."""

from __future__ import annotations

import re
from collections import Counter
from statistics import mean

import pytest
from tests.corpus.generators.word_classes import letters, shape
from tests.shared_data import shared

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.factors import factors
from bertology.corpus.generate import generate
from bertology.corpus.read import read

OTHER = "DJ*N"
CLAUSE = f"R(?:XI|{OTHER}XT|XT{OTHER})"
SENTENCE = re.compile(f"(DN(?:P{OTHER}|{CLAUSE})?)X(?:I|T{OTHER}(?:P{OTHER}|{CLAUSE})?)")


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return generate("main_auxiliary", size=900, seed=2)


def target(item: Item) -> int:
    (index,) = item.parts[0].marks["target"]
    return index


def test_the_splits_are_four_to_one_to_one(corpus: Corpus) -> None:
    splits = Counter(factors(item)["split"] for item in corpus)
    assert splits == {"train": pytest.approx(600, abs=10), "test": pytest.approx(150, abs=10)} | {
        "generalisation": 900 - splits["train"] - splits["test"]
    }


def test_every_sentence_parses_and_its_main_auxiliary_is_marked(corpus: Corpus) -> None:
    for item in corpus:
        found = SENTENCE.fullmatch(letters(item.parts[0].words))
        assert found and target(item) == found.end(1), item.parts[0].text


def test_position_finds_it_in_training_and_never_in_generalisation(corpus: Corpus) -> None:
    for item in corpus:
        classes, known = letters(item.parts[0].words), factors(item)
        assert (classes.index("X") == target(item)) == (known["split"] != "generalisation")
        assert classes.count("X") == int(known["auxiliaries"])


def test_train_and_test_share_no_sentence_whatever_the_seed() -> None:
    sides = [generate("main_auxiliary", size=1500, seed=seed, split=part) for seed, part in ((1, "train"), (2, "test"))]
    train, test = ({item.parts[0].text for item in side} for side in sides)
    assert not train & test
    assert sum(len(text.split()) == 4 for text in test) > 150, "short sentences are where they could meet"


def test_no_word_decides_the_split() -> None:
    counts: dict[str, Counter[str]] = {}
    for part in ("train", "test"):
        corpus = generate("main_auxiliary", size=3000, seed=5, split=part)
        counts[part] = Counter(word for item in corpus for word in item.parts[0].words)
    for word, count in counts["train"].items():
        share = count / counts["train"].total()
        assert counts["test"][word] / counts["test"].total() == pytest.approx(share, rel=0.3), word


@pytest.mark.parametrize("part", ["train", "test", "gen"])
def test_the_sentences_are_built_as_the_published_ones(part: str) -> None:
    published = read(shared(f"data/opensesame/aux.{part}"), limit=800)
    own = generate("main_auxiliary", size=1500, split={"gen": "generalisation"}.get(part, part))
    common = {name for name, count in shapes(published).items() if count >= 5}
    assert common <= shapes(own).keys()
    assert all(SENTENCE.fullmatch(letters(item.parts[0].words)) for item in published)
    assert mean(len(part) for part in own.sentences) == pytest.approx(
        mean(len(part) for part in published.sentences), abs=2
    )


def shapes(corpus: Corpus) -> Counter[str]:
    return Counter(shape(item.parts[0].words) for item in corpus)
