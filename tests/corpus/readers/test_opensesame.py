"""Open Sesame: marks on the words, counted as the files count them."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.corpus.checks import Reading, assert_surfaces
from tests.shared_data import shared

from bertology.corpus.read import read

AUXILIARIES = {"can", "could", "do", "does", "will", "would"}


@pytest.fixture
def sample(tmp_path: Path) -> Reading:
    return Reading(tmp_path, "opensesame", "agr.5")


GOOD = "the cat near your bird does cry\t5\t0 1\t3 4 \n"


def test_four_columns_mark_target_antecedent_and_distractor(sample: Reading) -> None:
    (item,) = corpus = sample.read(GOOD)
    assert dict(item.parts[0].marks) == {"target": (5,), "antecedent": (0, 1), "distractor": (3, 4)}
    assert (item.source, item.id) == ("agr.5", "agr.5-1")
    assert_surfaces(corpus)


def test_there_may_be_no_distractor(sample: Reading) -> None:
    assert sample.read("a cat does cry\t2\t0 1\t\n")[0].parts[0].marks["distractor"] == ()


def test_two_columns_mark_the_target(sample: Reading) -> None:
    assert dict(sample.read("our dogs can move\t2\n")[0].parts[0].marks) == {"target": (2,)}


def test_an_apostrophe_counts_as_a_word_of_its_own(sample: Reading) -> None:
    part = sample.read("my duck's duck with her\t4\n")[0].parts[0]
    assert part.words[part.marks["target"][0]] == "duck"


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
def test_a_broken_line_is_refused_or_counted(bad: str, reason: str, sample: Reading) -> None:
    sample.bad(GOOD + bad + GOOD, reason, line=2, kept=2)


@pytest.mark.parametrize("name", ["agr.0", "agr.19", "refl.8"])
def test_real_agreement_files(name: str) -> None:
    path = shared(f"data/opensesame/{name}")
    corpus = read(path)
    assert (len(corpus), corpus.format, corpus.skipped) == (1000, "opensesame", ())
    wanted = AUXILIARIES if name.startswith("agr") else {"himself", "herself", "themselves"}
    for part, line in zip(corpus.sentences, path.read_text().splitlines(), strict=True):
        columns = line.split("\t")
        assert part.words[part.marks["target"][0]] in wanted
        for role, cell in zip(("antecedent", "distractor"), columns[2:], strict=True):
            assert part.marks[role] == tuple(int(number) for number in cell.split())
    assert_surfaces(corpus)


@pytest.mark.parametrize(
    ("name", "kind"), [("aux.gen", "auxiliary"), ("sbjn.test", "noun"), ("sbjn-join.gen_apost", "noun")]
)
def test_real_target_files(name: str, kind: str) -> None:
    corpus = read(shared(f"data/opensesame/{name}"))
    assert (len(corpus), corpus.skipped) == (2000, ())
    animals = {"ant", "bear", "bee", "bird", "cat", "dog", "duck", "fish", "horse", "lion", "tiger", "wolf", "worm"}
    nouns = animals | {noun + "s" for noun in animals} | {"wolves", "fish"}
    for part in corpus.sentences:
        assert part.words[part.marks["target"][0]] in (AUXILIARIES if kind == "auxiliary" else nouns)
    assert_surfaces(corpus)


def test_the_folder_leaves_other_files_alone(tmp_path: Path) -> None:
    sample = Reading(tmp_path, "opensesame", "agr.5")
    sample.write(GOOD)
    sample.write("terms", "LICENSE")
    sample.write("our dogs can move\t2\n", "aux.gen")
    corpus = read(tmp_path)
    assert (corpus.format, [item.source for item in corpus]) == ("opensesame", ["agr.5", "aux.gen"])
