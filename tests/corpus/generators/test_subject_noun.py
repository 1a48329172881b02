"""Subject noun: the target is the head noun of the subject; nouns precede it only in the generalisation sets."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from tests.corpus.generators.word_classes import letters
from tests.shared_data import shared

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.generate import generate
from bertology.corpus.read import read

OTHER = "DJ*N"
AFTER = f"(?:P{OTHER}|R(?:XI|{OTHER}XT|XT{OTHER}))?"
SENTENCE = re.compile(f"D((?:J|G|NC)*N*)N{AFTER}X(?:I|T{OTHER}{AFTER})")
SPLITS = ("train", "test", "compound", "possessive")


@pytest.fixture(scope="module", params=["joined", "apart"])
def corpus(request: pytest.FixtureRequest) -> Corpus:
    return generate("subject_noun", size=1400, seed=2, clitic=request.param)


def classes_before_target(example: Example) -> str:
    """Return the classes of the words between the determiner and the target, without adjectives."""
    (index,) = example.segments[0].marked_words["target"]
    return letters(example.segments[0].words)[1:index].replace("J", "")


def test_the_sizes_of_splits_are_proportional_to_their_weights(corpus: Corpus) -> None:
    splits = Counter(example.factors["split"] for example in corpus)
    assert [splits[name] for name in SPLITS] == [pytest.approx(200 * weight, abs=20) for weight in (4, 1, 1, 1)]


def test_every_sentence_parses_and_its_subject_is_marked(corpus: Corpus) -> None:
    for example in corpus:
        match = SENTENCE.fullmatch(letters(example.segments[0].words))
        assert match and example.segments[0].marked_words["target"] == (match.end(1),), example.segments[0].text


def test_splits_determine_the_words_before_the_target(corpus: Corpus) -> None:
    expected = {"train": "", "test": "", "compound": "N", "possessive": "G{1,3}|(NC){1,3}"}
    for example in corpus:
        factors = example.factors
        assert re.fullmatch(expected[factors["split"]], classes_before_target(example))
        assert len(re.findall("[NG]", classes_before_target(example))) == int(factors["before"])


def test_a_clitic_is_joined_or_separate() -> None:
    joined = generate("subject_noun", size=50, split="possessive")
    apart = generate("subject_noun", size=50, split="possessive", clitic="apart")
    assert all("'s" not in sentence.words and "'s " in sentence.text for sentence in joined.sentences)
    assert all("'s" in sentence.words for sentence in apart.sentences)
    assert [s.text for s in joined.sentences] == [s.text.replace(" 's", "'s") for s in apart.sentences]


@pytest.mark.parametrize(("first", "in_training"), [("new", False), ("known", True)])
def test_first_nouns_of_compounds_are_targets_in_training_if_known(first: str, in_training: bool) -> None:
    train, compound = (generate("subject_noun", size=400, split=split, first=first) for split in ("train", "compound"))
    targets = {target_form(example) for example in train}
    firsts = {example.segments[0].words[example.segments[0].marked_words["target"][0] - 1] for example in compound}
    vocabulary = {word for sentence in train.sentences for word in sentence.words}
    assert firsts <= targets if in_training else not firsts & vocabulary
    assert {target_form(example) for example in compound} <= targets


def target_form(example: Example) -> str:
    (index,) = example.segments[0].marked_words["target"]
    return example.segments[0].words[index]


def test_train_and_test_share_no_sentence() -> None:
    train, test = (
        {sentence.text for sentence in generate("subject_noun", size=1000, seed=seed, split=name).sentences}
        for seed, name in ((1, "train"), (2, "test"))
    )
    assert not train & test


@pytest.mark.parametrize(
    ("name", "split"), [("sbjn.train", "train"), ("sbjn.gen", "compound"), ("sbjn-join.gen_apost", "possessive")]
)
def test_sentences_have_the_structures_of_the_published_ones(name: str, split: str) -> None:
    """Published possessives can end in a compound; generated ones cannot."""
    published = read(shared(f"data/opensesame/{name}"), limit=600)
    assert all(SENTENCE.fullmatch(letters(example.segments[0].words)) for example in published)
    published_classes = Counter(classes_before_target(example) for example in published)
    generated = generate("subject_noun", size=800, split=split)
    classes = Counter(classes_before_target(example) for example in generated)
    assert classes.keys() <= published_classes.keys()
    assert published_classes.most_common(1)[0][0].rstrip("N" if split == "possessive" else "") in classes
