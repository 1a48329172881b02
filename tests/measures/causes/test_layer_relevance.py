"""Relevance is conserved, follows the rules written out by hand, and leaves the model as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import planted_heads
from bertology.corpus.builtin import corpus_named
from bertology.encoder.encoder import Output
from bertology.encoder.huggingface import HuggingFaceEncoder, wrap
from bertology.encoder.load import load
from bertology.measures.causes.examination import Examination, examine
from bertology.measures.causes.layer_relevance import (
    EPSILON,
    hand_nothing_to_maps,
    head_relevance,
    predicted,
    relevance_rules,
)
from planted_heads import PLANTED


def double(name: str) -> HuggingFaceEncoder:
    encoder = load(name)
    assert isinstance(encoder, HuggingFaceEncoder)
    return wrap(encoder.model.double(), encoder.tokenizer, name)


def shares(network: nn.Module, given: Tensor) -> tuple[Tensor, Tensor]:
    """The relevance of the input, and the sum of the output."""
    given = given.clone().requires_grad_()
    with relevance_rules(network):
        value = network(given).sum()
        (slope,) = torch.autograd.grad(value, given)
    return given.detach() * slope, value.detach()


def test_the_epsilon_rule_written_out() -> None:
    torch.manual_seed(0)
    first, second = nn.Linear(4, 3).double(), nn.Linear(3, 1).double()
    given = torch.randn(1, 4, dtype=torch.float64)
    middle = first(given)
    active = nn.functional.gelu(middle)
    found = second(active)
    with torch.no_grad():
        # From the top: each input's share of each sum, epsilon in the denominator; GELU hands on what it gets.
        relevance = (found / (found + EPSILON * found.sign()) * second.weight * active)[0]
        own = torch.zeros(4, dtype=torch.float64)
        for neuron in range(3):
            share = first.weight[neuron] * given[0] / (middle[0, neuron] + EPSILON * middle[0, neuron].sign())
            own += share * relevance[neuron]
    network = nn.Sequential(first, nn.GELU(), second)
    torch.testing.assert_close(shares(network, given)[0][0], own)
    torch.testing.assert_close(network(given), found)


def test_without_biases_all_relevance_arrives() -> None:
    torch.manual_seed(1)
    norm = nn.LayerNorm(6, bias=False)
    network = nn.Sequential(nn.Linear(5, 6, bias=False), nn.Tanh(), norm, nn.Linear(6, 2, bias=False)).double()
    worth, value = shares(network, torch.randn(3, 5, dtype=torch.float64))
    torch.testing.assert_close(worth.sum(), value, atol=1e-3, rtol=1e-3)


def test_what_a_model_predicts_is_the_sum_of_what_inputs_and_biases_are_worth() -> None:
    encoder = double("tiny")
    with torch.no_grad():
        for name, weights in encoder.model.named_parameters():
            # Maps of a model that has not learnt are all but uniform: what they got would not be missed.
            weights.mul_(20 if ".query.w" in name or ".key.w" in name or ".value.w" in name else 1)
    sheet = examine(encoder, corpus_named("english", limit=6), task="mlm").sheets[0]
    biases = [weights for name, weights in encoder.model.named_parameters() if name.endswith("bias")]
    with relevance_rules(encoder.model):
        output: Output = encoder.run(sheet.shown, on_layer=hand_nothing_to_maps, hidden=True)
        value = predicted(output, sheet, "mlm", encoder.mask_id)
        parts: list[Any] = [output.hidden[0], *biases]
        slopes = torch.autograd.grad(value, parts, materialize_grads=True)
    worth = sum(float((part * slope).sum().detach()) for part, slope in zip(parts, slopes, strict=True))
    assert worth == pytest.approx(float(value.detach()), rel=1e-3)
    assert abs(float(value.detach())) > 1


def asked(encoder: HuggingFaceEncoder, corpus: Any) -> Examination:
    return examine(encoder, corpus)


def test_all_relevance_of_a_layer_goes_to_the_planted_head() -> None:
    encoder, corpus = planted_heads.one_head()
    found = head_relevance(encoder, asked(encoder, corpus))
    np.testing.assert_allclose(found[:, PLANTED[0], PLANTED[1]], 1, atol=1e-5)
    # The heads of other layers bring nothing that is read.
    assert np.isnan(found[:, 0]).all() and np.isnan(found[:, 2]).all()


def test_shares_of_a_layer_add_up_to_one_and_the_model_is_as_it_was() -> None:
    encoder = load("tiny")
    assert isinstance(encoder, HuggingFaceEncoder)
    examination = asked(encoder, corpus_named("english", limit=8))
    before = examination.marks(encoder.run).losses
    found = head_relevance(encoder, examination)
    np.testing.assert_allclose(found.sum(-1), 1)
    np.testing.assert_array_equal(examination.marks(encoder.run).losses, before)
    assert all(weights.grad is None for weights in encoder.model.parameters())
