"""Subject noun: the marked word is the subject's head; other nouns stand before it in the generalisation sets only."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tests.corpus.generators.word_classes import letters
from tests.shared_data import shared

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.factors import factors
from bertology.corpus.generate import generate
from bertology.corpus.read import read

OTHER = "DJ*N"
AFTER = f"(?:P{OTHER}|R(?:XI|{OTHER}XT|XT{OTHER}))?"
SENTENCE = re.compile(f"D((?:J|G|NC)*N*)N{AFTER}X(?:I|T{OTHER}{AFTER})")
SPLITS = ("train", "test", "compound", "possessive")


@pytest.fixture(scope="module", params=["joined", "apart"])
def corpus(request: pytest.FixtureRequest) -> Corpus:
    return generate("subject_noun", size=1400, seed=2, clitic=request.param)


def before(item: Item) -> str:
    """The classes of the words between the determiner and the marked noun."""
    (index,) = item.parts[0].marks["target"]
    return letters(item.parts[0].words)[1:index].replace("J", "")


def test_the_splits_are_in_proportion(corpus: Corpus) -> None:
    splits = Counter(factors(item)["split"] for item in corpus)
    assert [splits[name] for name in SPLITS] == [pytest.approx(200 * weight, abs=20) for weight in (4, 1, 1, 1)]


def test_every_sentence_parses_and_its_subject_is_marked(corpus: Corpus) -> None:
    for item in corpus:
        found = SENTENCE.fullmatch(letters(item.parts[0].words))
        assert found and item.parts[0].marks["target"] == (found.end(1),), item.parts[0].text


def test_what_stands_before_the_subject_is_what_the_split_says(corpus: Corpus) -> None:
    expected = {"train": "", "test": "", "compound": "N", "possessive": "G{1,3}|(NC){1,3}"}
    for item in corpus:
        known = factors(item)
        assert re.fullmatch(expected[known["split"]], before(item))
        assert len(re.findall("[NG]", before(item))) == int(known["before"])


def test_a_clitic_is_joined_or_apart() -> None:
    joined = generate("subject_noun", size=50, split="possessive")
    apart = generate("subject_noun", size=50, split="possessive", clitic="apart")
    assert all("'s" not in part.words and "'s " in part.text for part in joined.sentences)
    assert all("'s" in part.words for part in apart.sentences)
    assert [p.text for p in joined.sentences] == [p.text.replace(" 's", "'s") for p in apart.sentences]


@pytest.mark.parametrize(("first", "seen"), [("new", False), ("known", True)])
def test_first_nouns_of_compounds_are_targets_in_training_where_asked(first: str, seen: bool) -> None:
    train, compound = (generate("subject_noun", size=400, split=own, first=first) for own in ("train", "compound"))
    targets = {_target(item) for item in train}
    firsts = {item.parts[0].words[item.parts[0].marks["target"][0] - 1] for item in compound}
    assert firsts <= targets if seen else not firsts & {word for part in train.sentences for word in part.words}
    assert {_target(item) for item in compound} <= targets


def _target(item: Item) -> str:
    (index,) = item.parts[0].marks["target"]
    return item.parts[0].words[index]


def test_train_and_test_share_no_sentence() -> None:
    train, test = (
        {part.text for part in generate("subject_noun", size=1000, seed=seed, split=name).sentences}
        for seed, name in ((1, "train"), (2, "test"))
    )
    assert not train & test


@pytest.mark.parametrize(
    ("name", "own"), [("sbjn.train", "train"), ("sbjn.gen", "compound"), ("sbjn-join.gen_apost", "possessive")]
)
def test_the_sentences_are_built_as_the_published_ones(name: str, own: str) -> None:
    """The published possessives may end in a compound; ours keep the two apart."""
    published = read(shared(f"data/opensesame/{name}"), limit=600)
    assert all(SENTENCE.fullmatch(letters(item.parts[0].words)) for item in published)
    there = Counter(before(item) for item in published)
    here = Counter(before(item) for item in generate("subject_noun", size=800, split=own))
    assert here.keys() <= there.keys()
    assert there.most_common(1)[0][0].rstrip("N" if own == "possessive" else "") in here
