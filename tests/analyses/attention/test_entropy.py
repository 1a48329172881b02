"""Planted heads have the entropy of their definition."""

from __future__ import annotations

import numpy as np
from scipy.stats import entropy as scipy_entropy

import planted
from bertology.analyses.attention.entropy import entropy, entropy_site
from bertology.encoder.tokens import SpecialToken
from bertology.results.shapes import HeadGrid

TEXTS = ("a b c", "d e f g h", ("i j", "k l m n"), "o", "p q r s t u v")


def measure(*heads: planted.HeadAttention) -> HeadGrid:
    recording = planted.make_recording(planted.make_corpus(*TEXTS), [list(heads)]).with_sites([entropy_site])
    grid = entropy(recording, None)
    assert isinstance(grid, HeadGrid)
    return grid


def test_uniform_heads_have_log_n() -> None:
    grid = measure(planted.uniform_head)
    lengths = [len(recorded_input.tokens) for recorded_input in planted.recorded_inputs(planted.make_corpus(*TEXTS))]
    np.testing.assert_allclose(grid.measures["entropy"].value, np.mean(np.log(lengths)), rtol=1e-6)
    for name in ("entropy", "entropy of [CLS]", "entropy (no special tokens)"):
        expected = grid.baselines["uniform attention"][name]
        np.testing.assert_allclose(grid.measures[name].value, expected.value, rtol=1e-5)


def test_a_head_with_one_target_has_no_entropy() -> None:
    grid = measure(planted.offset_head(-1), planted.special_head(SpecialToken.CLS))
    np.testing.assert_allclose(grid.measures["entropy"].value, 0, atol=1e-6)
    np.testing.assert_allclose(grid.measures["entropy of [CLS]"].value, 0, atol=1e-6)


def test_the_entropy_is_the_mean_over_rows() -> None:
    head = planted.random_head(1)
    grid = measure(head)
    recorded_inputs = planted.recorded_inputs(planted.make_corpus(*TEXTS))
    rows = [np.asarray(scipy_entropy(head(recorded_input), axis=1)) for recorded_input in recorded_inputs]
    np.testing.assert_allclose(grid.measures["entropy"].value[0, 0], np.mean([r.mean() for r in rows]), rtol=1e-5)
    np.testing.assert_allclose(grid.measures["entropy of [CLS]"].value[0, 0], np.mean([r[0] for r in rows]), rtol=1e-5)
    non_special: list[float] = []
    for recorded_input in recorded_inputs:
        mask = recorded_input.tokens.special_kinds == SpecialToken.NONE
        non_special.append(float(np.mean(scipy_entropy(head(recorded_input)[mask][:, mask], axis=1))))
    np.testing.assert_allclose(
        grid.measures["entropy (no special tokens)"].value[0, 0], np.mean(non_special), rtol=1e-5
    )


def test_rows_with_only_special_targets_have_no_entropy_without_special_tokens() -> None:
    grid = measure(planted.special_head(SpecialToken.SEP), planted.offset_head(-1))
    assert grid.measures["entropy (no special tokens)"].n[0, 0] == 0
    assert np.isnan(grid.measures["entropy (no special tokens)"].value[0, 0])
    # The first word attends only to [CLS] and does not count; the others attend to one word.
    np.testing.assert_allclose(grid.measures["entropy (no special tokens)"].value[0, 1], 0, atol=1e-6)
    assert grid.measures["entropy (no special tokens)"].n[0, 1] == len([text for text in TEXTS if text != "o"])
