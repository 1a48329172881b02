"""Words that keep each other company are found; frequent words that meet by chance are not."""

from __future__ import annotations

import math

import pytest

from bertology.numerics.collocations import collocations


def test_planted_collocations_are_found() -> None:
    sentences = [["we", "saw", "new", "york", "today"]] * 6 + [["the", "a", "the", "b"], ["a", "the", "b", "the"]] * 20
    assert collocations(sentences, min_npmi=0.95) >= {("new", "york")}
    assert ("the", "a") not in collocations(sentences, min_npmi=0.95)
    assert collocations([["new", "york"]] * 4) == frozenset()


def test_the_association_by_hand() -> None:
    sentences = [["x", "y"]] * 6 + [["x", "z"]] * 2 + [["w", "y"]] * 2
    association = math.log(0.6 / (0.8 * 0.8)) / -math.log(0.6)
    assert association < 0
    assert ("x", "y") in collocations(sentences, min_npmi=association - 1e-9)
    assert ("x", "y") not in collocations(sentences, min_npmi=association + 1e-9)


@pytest.mark.parametrize("sentences", [[], [[]], [["alone"]]])
def test_nothing_gives_nothing(sentences: list[list[str]]) -> None:
    assert collocations(sentences) == frozenset()
