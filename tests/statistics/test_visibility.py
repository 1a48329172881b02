"""Visibility follows the attention mask: weights rounded to 0 change no baseline and no mean."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import planted
import tiny_models
from bertology.analyses import registry
from bertology.analyses.attention.sinks.analysis import SINKS, STATISTICS, sink_site
from bertology.analyses.run import RunInputs, run_analysis
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.encoder import TaskEncoder
from bertology.encoder.token_batch import TokenBatch
from bertology.recording.recorder import record
from bertology.recording.sites import ReducedSite
from bertology.statistics.visibility import visibility_mask

CORPUS = planted.make_corpus("The keys to the cabinet are on the table.", "A dog!", ("She walked.", "It rains."))
SHARP = 300.0


def _count_pairs(layer: LayerActivations, batch: TokenBatch, _: Any) -> Tensor:
    """(batch, head, 2): number of visible pairs of tokens, and of pairs whose weight contradicts the mask."""
    visible = visibility_mask(layer, batch)
    has_weight = (layer.attention > 0) & batch.token_mask[:, None, :, None]
    return torch.stack([visible.sum((-1, -2)), (visible != has_weight).sum((-1, -2))], -1).float()


PAIR_COUNTS = ReducedSite("test.visible", ("count",), "visible pairs", _count_pairs, needs_values=True)


@pytest.mark.parametrize("family", tiny_models.FAMILIES)
def test_visible_tokens_have_positive_weights_if_no_weight_is_tiny(family: str) -> None:
    counts = record(tiny_models.encoder(family), CORPUS, [PAIR_COUNTS]).stack(PAIR_COUNTS)
    n_visible, n_different = np.moveaxis(counts, -1, 0)
    assert (n_visible > 0).all() and not n_different.any()


@cache
def sharpened_model(sharpness: float) -> TaskEncoder:
    """A BERT with the queries of the first layer multiplied; value vectors and visibility are unchanged."""
    bert = tiny_models.model("bert", "ForMaskedLM")
    query = bert.bert.encoder.layer[0].attention.self.query
    with torch.no_grad():
        query.weight *= sharpness
        query.bias *= sharpness
    return tiny_models.wrap_model(bert, "bert")


def test_sharp_heads_have_weights_of_zero() -> None:
    counts = record(sharpened_model(SHARP), CORPUS, [PAIR_COUNTS]).stack(PAIR_COUNTS)[:, 0]
    n_visible, n_different = np.moveaxis(counts, -1, 0)
    assert (n_different > n_visible / 2).all()


def uniform_baselines(name: str, sharpness: float) -> dict[str, Any]:
    """The uniform-attention baseline of the first layer by measure."""
    inputs = RunInputs(encoder=sharpened_model(sharpness), corpus=CORPUS, random_baseline=False)
    data: Any = run_analysis(registry.get(name), inputs).data
    return {measure: estimates.value[0] for measure, estimates in data.baselines["uniform attention"].items()}


@pytest.mark.parametrize("name", ["norms", "mixing_ratio", "sinks", "effective_attention"])
def test_uniform_attention_does_not_depend_on_the_weights(name: str) -> None:
    smooth, sharp = (uniform_baselines(f"attention/{name}", sharpness) for sharpness in (1.0, SHARP))
    assert smooth.keys() == sharp.keys() and smooth
    for measure, values in smooth.items():
        np.testing.assert_allclose(sharp[measure], values, rtol=1e-5, err_msg=measure)


def test_attention_received_is_a_mean_over_all_rows_that_see_the_token() -> None:
    recording = record(sharpened_model(SHARP), CORPUS, [sink_site, "attention"])
    statistic = STATISTICS.index("highest attention to one token")
    received = recording.stack(sink_site)[:, 0, :, list(SINKS).index("cls"), statistic]
    expected = [attention[0, :, :, 0].mean(-1) for attention in recording["attention"]]  # [CLS] is first and visible
    np.testing.assert_allclose(received, expected, rtol=1e-5)
