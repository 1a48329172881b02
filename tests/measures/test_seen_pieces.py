"""What a piece can see is what the mask says: weights so small that they are 0 change no baseline and no mean."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

import models
import planted
from bertology.analyses import registry
from bertology.analyses.attention.sinks import NUMBERS, SINK, SINKS
from bertology.analyses.run import Subject, run
from bertology.encoder.attend import LayerActivations
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.measures.attention.seen_pieces import seen_pieces
from bertology.recording.frame import Frame
from bertology.recording.recorder import record
from bertology.recording.sites import ReducedSite

CORPUS = planted.corpus_of("The keys to the cabinet are on the table.", "A dog!", ("She walked.", "It rains."))
SHARP = 300.0


def _compared(layer: LayerActivations, frame: Frame, _: Any) -> Tensor:
    """(batch, head, 2): how many pairs of pieces are seen, and of how many the weights say something else."""
    seen = seen_pieces(layer, frame)
    weighed = (layer.attention > 0) & frame.real[:, None, :, None]
    return torch.stack([seen.sum((-1, -2)), (seen != weighed).sum((-1, -2))], -1).float()


COMPARED = ReducedSite("test.seen", ("number",), "pairs seen, by mask and by weight", _compared, vectors=True)


@pytest.mark.parametrize("family", models.FAMILIES)
def test_of_weights_that_are_not_small_it_is_those_above_0(family: str) -> None:
    seen, differing = np.moveaxis(record(models.encoder(family), CORPUS, [COMPARED]).stacked(COMPARED), -1, 0)
    assert (seen > 0).all() and not differing.any()


@cache
def model(sharpness: float) -> HuggingFaceEncoder:
    """A BERT whose first layer has its queries times this: its value vectors, and what they see, are the same."""
    made = models.model("bert", "ForMaskedLM")
    query = made.bert.encoder.layer[0].attention.self.query
    with torch.no_grad():
        query.weight *= sharpness
        query.bias *= sharpness
    return models.wrapped(made, "bert")


def test_sharp_heads_have_weights_of_0() -> None:
    seen, differing = np.moveaxis(record(model(SHARP), CORPUS, [COMPARED]).stacked(COMPARED)[:, 0], -1, 0)
    assert (differing > seen / 2).all()


def uniform(name: str, sharpness: float) -> dict[str, Any]:
    """In the first layer, by measure."""
    subject = Subject(encoder=model(sharpness), corpus=CORPUS, randomise=False)
    data: Any = run(registry.get(name), subject).data
    return {measure: even.value[0] for measure, even in data.baselines["uniform attention"].items()}


@pytest.mark.parametrize("name", ["norms", "mixing", "sinks", "effective"])
def test_uniform_attention_is_the_same_however_sharp_a_head_is(name: str) -> None:
    mild, sharp = (uniform(f"attention/{name}", sharpness) for sharpness in (1.0, SHARP))
    assert mild.keys() == sharp.keys() and mild
    for measure, even in mild.items():
        np.testing.assert_allclose(sharp[measure], even, rtol=1e-5, err_msg=measure)


def test_what_one_piece_receives_is_a_mean_over_all_rows_that_can_see_it() -> None:
    recording = record(model(SHARP), CORPUS, [SINK, "attention"])
    found = recording.stacked(SINK)[:, 0, :, list(SINKS).index("cls"), NUMBERS.index("attention, one piece")]
    expected = [maps[0, :, :, 0].mean(-1) for maps in recording["attention"]]  # [CLS] is the first, and all see it
    np.testing.assert_allclose(found, expected, rtol=1e-5)
