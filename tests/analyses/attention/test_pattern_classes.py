"""Planted heads have their class by rule and by CNN; short patterns have none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, confusion_matrix

import planted
from bertology.analyses.attention.pattern_classes import AGREEMENT, KAPPA, cohen_kappa, pattern_classes
from bertology.analyses.attention_patterns.site import MIN_TOKENS, pattern_class_site
from bertology.analyses.attention_patterns.synthetic import PATTERN_CLASSES, synthetic_attention
from bertology.encoder.tokens import SpecialToken
from bertology.recording.sites import resolve_sites
from bertology.results.shapes import HeadGrid, Table

LONG = tuple(" ".join(f"w{number}{index}" for index in range(9 + 3 * number)) for number in range(6))
PAIRS = tuple((text, text.replace("w", "v")) for text in LONG)


def synthetic_head(pattern_class: str, seed: int) -> planted.HeadAttention:
    """A head with synthetic patterns, a different one for each sentence."""

    def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        rng = np.random.default_rng([seed, *recorded_input.tokens.ids.tolist()])
        return synthetic_attention(pattern_class, len(recorded_input.tokens), 0.2, rng)

    return head


def within_segment(recorded_input: planted.RecordedInput) -> planted.FloatArray:
    """A head that attends to all tokens of the same sentence, including the [SEP] after it."""
    segment = np.maximum.accumulate(np.maximum(recorded_input.tokens.segment_ids, 0))
    same_segment = (segment[:, None] == segment[None, :]).astype(float)
    return same_segment / same_segment.sum(1, keepdims=True)


def run(texts: Sequence[str | tuple[str, str]], layers: list[list[planted.HeadAttention]], **options: Any) -> Any:
    sites = resolve_sites(pattern_classes.sites(pattern_classes.resolve_options(options)))
    recording = planted.make_recording(planted.make_corpus(*texts), layers).with_sites(sites)
    return pattern_classes(recording, None, **options)


@pytest.mark.parametrize("classifier", ["rule", "cnn"])
def test_planted_heads_have_their_class(classifier: str) -> None:
    heads = [synthetic_head(pattern_class, number) for number, pattern_class in enumerate(PATTERN_CLASSES)]
    grid = run(LONG, [heads, heads[::-1]], show="heads", pattern_classifier=classifier)
    assert isinstance(grid, HeadGrid)
    for number, pattern_class in enumerate(PATTERN_CLASSES):
        proportions = grid.measures[pattern_class].value
        assert proportions[0, number] >= 0.8
        assert proportions[1, len(PATTERN_CLASSES) - 1 - number] >= 0.8
        np.testing.assert_allclose(sum(grid.measures[name].value for name in PATTERN_CLASSES), 1)


def test_proportions_by_layer_and_over_all_layers() -> None:
    table = run(
        LONG, [[synthetic_head("vertical", 1), planted.uniform_head], [planted.offset_head(-1), planted.offset_head(1)]]
    )
    assert isinstance(table, Table)
    assert table.row_names == ("layer 1", "layer 2", "all layers")
    np.testing.assert_allclose(table.measures["vertical"].value, [0.5, 0, 0.25])
    np.testing.assert_allclose(table.measures["diagonal"].value, [0, 1, 0.5])
    np.testing.assert_allclose(table.measures["heterogeneous"].value, [0.5, 0, 0.25])
    np.testing.assert_allclose(table.baselines["uniform attention"]["heterogeneous"].value, 1)
    kappa = table.measures[KAPPA][2]
    assert [kappa.value, kappa.low, kappa.high] == pytest.approx([1, 1, 1])
    assert np.isnan(table.measures[KAPPA].value[1])  # one class only: kappa is undefined


def test_agreement_and_kappa_equal_a_direct_computation() -> None:
    """A head whose class depends on the sentence, and one that only the CNN recognises."""
    pattern_weights = [0.42, 0.5]

    def head(number: int) -> planted.HeadAttention:
        def attend(recorded_input: planted.RecordedInput) -> planted.FloatArray:
            pattern = (
                planted.special_head(SpecialToken.CLS)(recorded_input)
                if len(recorded_input.tokens) % 2
                else planted.offset_head(-1)(recorded_input)
            )
            return pattern_weights[number] * pattern + (1 - pattern_weights[number]) * planted.random_head(number)(
                recorded_input
            )

        return attend

    heads = [head(0), head(1)]
    by_rule, by_cnn = (
        run(LONG, [heads], show="heads", pattern_classifier=classifier) for classifier in ("rule", "cnn")
    )
    chance = sum(by_rule.measures[name].value * by_cnn.measures[name].value for name in PATTERN_CLASSES)
    np.testing.assert_allclose(by_rule.baselines["chance"][AGREEMENT].value, chance)
    table = run(LONG, [heads])
    site = pattern_class_site()
    result = planted.make_recording(planted.make_corpus(*LONG), [heads]).with_sites([site]).stack(site)
    labels = result.argmax(-1).reshape(-1, 2)
    assert len(np.unique(labels[:, 0])) > 1 and (labels[:, 0] != labels[:, 1]).any()
    assert table.measures[KAPPA].value[1] == pytest.approx(cohen_kappa_score(labels[:, 0], labels[:, 1]))
    low, high = table.measures[KAPPA].low[1], table.measures[KAPPA].high[1]
    assert low < table.measures[KAPPA].value[1] < high < 1


def test_sentences_of_a_pair_are_blocks() -> None:
    for classifier in ("rule", "cnn"):
        grid = run(PAIRS, [[within_segment, planted.uniform_head]], show="heads", pattern_classifier=classifier)
        assert grid.measures["block"].value[0].tolist() == [1, 0]


def test_attention_to_separators_is_vertical_only_with_special_tokens() -> None:
    heads: list[planted.HeadAttention] = [
        lambda recorded_input: (
            0.7 * planted.special_head(SpecialToken.SEP)(recorded_input) + 0.3 * planted.offset_head(-1)(recorded_input)
        )
    ]
    included = run(LONG, [heads], show="heads")
    assert included.measures["vertical"].value[0, 0] + included.measures["vertical and diagonal"].value[0, 0] == 1
    excluded = run(LONG, [heads], show="heads", special_tokens="exclude")
    assert excluded.measures["diagonal"].value[0, 0] == 1


def test_short_patterns_are_not_classified() -> None:
    short = " ".join("abcde"[: MIN_TOKENS - 3])
    grid = run((short, *LONG), [[planted.offset_head(1)]], show="heads")
    assert grid.measures["diagonal"].n[0, 0] == len(LONG)
    only_short = run((short,), [[planted.offset_head(1), planted.uniform_head]])
    assert (only_short.measures[KAPPA].n == 0).all()
    assert np.isnan(only_short.measures["diagonal"].value).all()


def test_kappa_equals_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=200)
    second = np.where(rng.random(200) < 0.6, first, rng.integers(4, size=200))
    joint = confusion_matrix(first, second)
    assert cohen_kappa(joint) == pytest.approx(cohen_kappa_score(first, second))
    np.testing.assert_allclose(cohen_kappa(np.stack([joint, 7.0 * joint])), cohen_kappa_score(first, second))


def test_kappa_is_1_for_full_agreement_0_for_chance_and_undefined_for_a_single_class() -> None:
    assert cohen_kappa(np.diag([3.0, 4.0])) == pytest.approx(1)
    assert cohen_kappa(np.full((3, 3), 2.0)) == pytest.approx(0)
    assert np.isnan(cohen_kappa(np.array([[5.0, 0.0], [0.0, 0.0]])))
