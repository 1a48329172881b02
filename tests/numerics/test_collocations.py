"""Planted collocations are detected; frequent words that are adjacent by chance are not."""

from __future__ import annotations

import math

import pytest

from bertology.numerics.collocations import collocations


def test_planted_collocations_are_detected() -> None:
    sentences = [["we", "saw", "new", "york", "today"]] * 6 + [["the", "a", "the", "b"], ["a", "the", "b", "the"]] * 20
    assert collocations(sentences, min_npmi=0.95) >= {("new", "york")}
    assert ("the", "a") not in collocations(sentences, min_npmi=0.95)
    assert collocations([["new", "york"]] * 4) == frozenset()


def test_npmi_agrees_with_a_calculation_by_hand() -> None:
    sentences = [["x", "y"]] * 6 + [["x", "z"]] * 2 + [["w", "y"]] * 2
    npmi = math.log(0.6 / (0.8 * 0.8)) / -math.log(0.6)
    assert npmi < 0
    assert ("x", "y") in collocations(sentences, min_npmi=npmi - 1e-9)
    assert ("x", "y") not in collocations(sentences, min_npmi=npmi + 1e-9)


@pytest.mark.parametrize("sentences", [[], [[]], [["alone"]]])
def test_texts_without_pairs_have_no_collocations(sentences: list[list[str]]) -> None:
    assert collocations(sentences) == frozenset()
