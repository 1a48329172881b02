"""`geometry/tensor_products`: planted roles beat other schemes, noise gives the mean vector; paths of trees."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import planted
from bertology.analyses import registry
from bertology.analyses.run import Subject, run
from bertology.corpus.corpus import Corpus, of_sentences, read_text
from bertology.corpus.sentence import ROOT, sentence
from bertology.errors import Refusal
from bertology.measures.geometry.role_schemes import SCHEMES, numbered, random_paths, tree_paths
from bertology.recording.entry import Entry
from bertology.results.shapes import LayerCurve

NAME = "geometry/tensor_products"
WIDTH = 3
TREES = ((ROOT, 0, 1, 2), (1, ROOT, 1, 2), (3, 0, 0, ROOT), (2, 2, ROOT, 2))


def test_paths_are_turns_in_a_binary_tree() -> None:
    # ((the dog) (saw (a cat)))
    assert tree_paths([1, 2, ROOT, 4, 2]) == [(0, 0), (0, 1), (1, 0), (1, 1, 0), (1, 1, 1)]
    assert tree_paths([ROOT]) == [()]
    assert tree_paths([ROOT, 0, ROOT, 2]) == [(0, 0), (0, 1), (1, 0), (1, 1)]  # two parts, one after the other
    for words in (1, 2, 9):
        paths = random_paths(words, 3)
        assert len(set(paths)) == words and sum(0.5 ** len(path) for path in paths) == 1  # a binary tree


def test_paths_are_leaves_of_one_binary_tree() -> None:
    for heads in TREES:
        assert sum(0.5 ** len(path) for path in tree_paths(heads)) == 1


def test_rare_roles_are_replaced_by_the_nearest() -> None:
    seen = [[(place,)] for place in range(4) for _ in range(6)]
    number = numbered("left to right", seen)
    assert [number((place,)) for place in (0, 3, 4, 100)] == [0, 3, 3, 3]
    number = numbered("tree", [[()], [(0,)], [(1, 0)]] * 6)
    assert number((1, 0, 1)) == number((1, 0)) and number((1, 1)) == number(()) != number((0,))
    number = numbered("bidirectional", [[(0, 5)], [(5, 0)], [(-1,)]] * 6)
    assert number((1, 4)) == number((0, 5)) and number((-1,)) != number((5, 0))


def corpus_of(count: int) -> Corpus:
    random = np.random.default_rng(0)
    made = [
        replace(sentence([f"w{word}" for word in random.integers(8, size=4)]), heads=TREES[int(random.integers(4))])
        for _ in range(count)
    ]
    return of_sentences(made, name="planted")


def vector(name: str, entry: Entry) -> planted.Floats:
    """The sum over words of a random map for each role of the scheme, of a random vector for each word."""
    total = np.zeros(WIDTH)
    for filler, role in zip(entry.pieces.ids.tolist(), SCHEMES[name](entry), strict=True):
        key = int.from_bytes(hashlib.sha256(repr(role).encode()).digest()[:4], "little")
        matrix = np.random.default_rng(key).normal(size=(100, WIDTH))
        total += np.random.default_rng(filler).normal(size=100) @ matrix / 10
    return total


def curve(hidden: Callable[[Entry], planted.Floats], **options: object) -> LayerCurve:
    recording = planted.recording_of(corpus_of(500), [[planted.uniform]], hidden)
    data = run(registry.get(NAME), Subject(recording=recording), {"rate": 0.01, "epochs": 40, **options}).data
    assert isinstance(data, LayerCurve)
    return data


def test_planted_roles_rebuild_the_vector() -> None:
    planted_schemes = ("bag of words", "left to right", "tree")

    def hidden(entry: Entry) -> planted.Floats:
        return np.stack([np.tile(vector(name, entry), (len(entry.pieces), 1)) for name in planted_schemes])

    found = curve(hidden)
    worst = found.baselines["mean vector"]["tree"].value
    errors = {name: estimates.value / worst for name, estimates in found.measures.items()}
    assert errors["bag of words"][0] < 0.1  # what every scheme can do
    assert errors["left to right"][1] < 0.1 and errors["right to left"][1] < 0.1  # all have four words
    assert errors["bag of words"][1] > 0.3
    assert errors["tree"][2] < 0.5 * min(errors["bag of words"][2], errors["left to right"][2])
    assert found.baselines["random tree"]["tree"].value[2] / worst[2] > 2 * errors["tree"][2]


def test_noise_cannot_be_rebuilt() -> None:
    def hidden(entry: Entry) -> planted.Floats:
        return np.random.default_rng([entry.item, 7]).normal(size=(1, len(entry.pieces), WIDTH))

    found = curve(hidden, epochs=15)
    worst = found.baselines["mean vector"]["tree"].value[0]
    for name, estimates in found.measures.items():
        assert estimates.value[0] > 0.9 * worst, name
        assert estimates.value[0] < 1.5 * worst, name  # the best epoch on what is held out


def test_too_few_sentences_and_no_trees_are_refused() -> None:
    recording = planted.recording_of(corpus_of(2), [[planted.uniform]], lambda e: np.zeros((1, len(e.pieces), 2)))
    with pytest.raises(Refusal, match="too few sentences"):
        run(registry.get(NAME), Subject(recording=recording))
    from bertology.encoder.load import load

    with pytest.raises(Refusal, match="heads"):
        run(registry.get(NAME), Subject(read_text("No tree."), load("tiny")))
