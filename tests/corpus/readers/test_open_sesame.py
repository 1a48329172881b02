"""Open Sesame: marked words by the indices of the published files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import ReaderSample, assert_offsets_match
from tests.shared_data import shared

from bertology.corpus.read import read
from bertology.corpus.readers.open_sesame import published_factors

AUXILIARIES = {"can", "could", "do", "does", "will", "would"}


@pytest.fixture
def sample(tmp_path: Path) -> ReaderSample:
    return ReaderSample(tmp_path, "open_sesame", "agr.5")


GOOD = "the cat near your bird does cry\t5\t0 1\t3 4 \n"


def test_four_columns_mark_target_antecedent_and_distractor(sample: ReaderSample) -> None:
    (example,) = corpus = sample.read(GOOD)
    assert dict(example.segments[0].marked_words) == {"target": (5,), "antecedent": (0, 1), "distractor": (3, 4)}
    assert (example.source, example.id) == ("agr.5", "agr.5-1")
    assert_offsets_match(corpus)


def test_the_distractor_can_be_missing(sample: ReaderSample) -> None:
    assert sample.read("a cat does cry\t2\t0 1\t\n")[0].segments[0].marked_words["distractor"] == ()


def test_two_columns_mark_the_target(sample: ReaderSample) -> None:
    assert dict(sample.read("our dogs can move\t2\n")[0].segments[0].marked_words) == {"target": (2,)}


def test_indices_count_an_apostrophe_as_a_word(sample: ReaderSample) -> None:
    sentence = sample.read("my duck's duck with her\t4\n")[0].segments[0]
    assert sentence.words[sentence.marked_words["target"][0]] == "duck"


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("a cat cries\t3\n", "index out of range"),
        ("a cat cries\t-1\n", "index out of range"),
        ("a cat cries\tx\n", "index out of range"),
        ("a cat cries\t\n", "missing annotation"),
        ("a cat cries\t1 2\n", "missing annotation"),
        ("a cat cries\t2\t\t0\n", "missing annotation"),
        ("a cat cries\t2\t1\n", "wrong column count"),
        ("a cat cries\n", "wrong column count"),
    ],
)
def test_a_malformed_line_is_refused_or_counted(bad: str, reason: str, sample: ReaderSample) -> None:
    sample.assert_malformed(GOOD + bad + GOOD, reason, line=2, n_examples=2)


@pytest.mark.parametrize("name", ["agr.0", "agr.19", "refl.8"])
def test_real_agreement_files(name: str) -> None:
    path = shared(f"data/opensesame/{name}")
    corpus = read(path)
    assert (len(corpus), corpus.format, corpus.skipped) == (1000, "open_sesame", ())
    targets = AUXILIARIES if name.startswith("agr") else {"himself", "herself", "themselves"}
    for sentence, line in zip(corpus.sentences, path.read_text().splitlines(), strict=True):
        columns = line.split("\t")
        assert sentence.words[sentence.marked_words["target"][0]] in targets
        for role, cell in zip(("antecedent", "distractor"), columns[2:], strict=True):
            assert sentence.marked_words[role] == tuple(int(number) for number in cell.split())
    assert_offsets_match(corpus)


@pytest.mark.parametrize(
    ("name", "kind"), [("aux.gen", "auxiliary"), ("sbjn.test", "noun"), ("sbjn-join.gen_apost", "noun")]
)
def test_real_target_files(name: str, kind: str) -> None:
    corpus = read(shared(f"data/opensesame/{name}"))
    assert (len(corpus), corpus.skipped) == (2000, ())
    animals = {"ant", "bear", "bee", "bird", "cat", "dog", "duck", "fish", "horse", "lion", "tiger", "wolf", "worm"}
    nouns = animals | {noun + "s" for noun in animals} | {"wolves", "fish"}
    for sentence in corpus.sentences:
        assert sentence.words[sentence.marked_words["target"][0]] in (AUXILIARIES if kind == "auxiliary" else nouns)
    assert_offsets_match(corpus)


def test_other_files_of_the_directory_are_ignored(tmp_path: Path) -> None:
    sample = ReaderSample(tmp_path, "open_sesame", "agr.5")
    sample.write(GOOD)
    sample.write("terms", "LICENSE")
    sample.write("our dogs can move\t2\n", "aux.gen")
    corpus = read(tmp_path)
    assert (corpus.format, [example.source for example in corpus]) == ("open_sesame", ["agr.5", "aux.gen"])


def test_published_files_of_a_design_have_factors() -> None:
    for source, condition in {"agr.0": "A0", "agr.13": "A3", "agr.9": "A2", "refl.6": "R6"}.items():
        assert published_factors(source) == {"condition": condition, "cell": source}
    assert published_factors("aux.gen") == {}


def test_examples_have_the_factors_of_their_file(sample: ReaderSample) -> None:
    assert sample.read(GOOD)[0].factors == {"condition": "A1", "cell": "agr.5"}
