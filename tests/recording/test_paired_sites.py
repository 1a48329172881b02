"""Paired sites compare the attention of two encoders as it is in each of them, on tokens or word by word."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from tests.recording.material import mixed, tiny

from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.paired_sites import ComparedPositions, PairedSite, have_same_tokens
from bertology.recording.recorder import record
from bertology.recording.recording import Recording


def _compare(first: torch.Tensor, second: torch.Tensor, positions: ComparedPositions) -> torch.Tensor:
    """The highest difference, of all pairs of positions and of pairs of words."""
    differences: list[torch.Tensor] = []
    for mask in (positions.token_mask, positions.non_special_mask):
        pairs = (mask[:, None, :, None] & mask[:, None, None, :]).expand_as(first)
        differences.append((first - second).abs().where(pairs, 0.0).amax((-2, -1)))
    return torch.stack(differences, -1)


SITE = PairedSite("difference", ("positions",), "highest difference", _compare, ("all", "words"))


def test_both_encoders_are_compared_on_the_same_tokens() -> None:
    corpus, other = mixed(5), load("random:tiny@3")
    site = SITE.bind(other)
    compared = record(tiny(), corpus, [site])[site]
    first, second = (record(encoder, corpus, ["attention"]) for encoder in (tiny(), other))
    for index, values in enumerate(SITE.compare_recordings(first, second)):
        expected = np.abs(first["attention"][index] - second["attention"][index]).max((-2, -1))
        np.testing.assert_allclose(values[..., 0], expected, atol=1e-6)
        np.testing.assert_allclose(compared[index], values, atol=1e-5)
        assert (values[..., 0] > 5e-4).all() and (values[..., 1] <= values[..., 0]).all()


def test_word_by_word_an_encoder_has_no_difference_from_itself() -> None:
    site = SITE.bind(tiny(), "words")
    for values in record(tiny(), mixed(3), [site])[site]:
        np.testing.assert_allclose(values, 0, atol=1e-6)
    # Stored recordings have these names.
    assert SITE.bind(tiny()).name == f"difference.{tiny().fingerprint[:16]}"
    assert site.name == f"{SITE.bind(tiny()).name}.words"


def test_tokens_are_the_same_if_their_texts_and_numbers_are() -> None:
    recording = record(tiny(), mixed(2), ["attention"])

    def with_tokens(**fields: Any) -> Recording:
        last = recording.inputs[-1]
        return replace(recording, inputs=(recording.inputs[0], replace(last, tokens=replace(last.tokens, **fields))))

    tokens = recording.inputs[-1].tokens
    assert have_same_tokens(recording, with_tokens())
    assert not have_same_tokens(recording, with_tokens(ids=tokens.ids + 1))
    assert not have_same_tokens(recording, with_tokens(tokens=("other", *tokens.tokens[1:])))


def test_encoders_of_another_size_are_refused() -> None:
    first, second = (
        Recording.from_arrays([["[CLS]", "ran"]], attention=[np.full((2, heads, 2, 2), 0.5, np.float32)])
        for heads in (3, 4)
    )
    with pytest.raises(Refusal, match=r"2 layers of 3 heads.*2 layers of 4 heads.*same number of layers and heads"):
        SITE.compare_recordings(first, second)[0]
