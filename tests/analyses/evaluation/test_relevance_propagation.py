"""Relevance is conserved, follows the rules computed by hand, and leaves the model unchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import planted_heads
from bertology.analyses.evaluation.evaluation import prepare_evaluation
from bertology.analyses.evaluation.relevance_propagation import (
    EPSILON,
    detach_attention,
    head_relevance,
    lrp_rules,
    predicted_scores,
)
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import ModelOutput, TaskEncoder
from bertology.encoder.huggingface import wrap
from bertology.encoder.load import load
from planted_heads import PLANTED


def double_precision(name: str) -> TaskEncoder:
    encoder = load(name)
    assert isinstance(encoder, TaskEncoder)
    return wrap(encoder.model.double(), encoder.hf_tokenizer, name)


def input_relevance(network: nn.Module, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """The relevance of the inputs, and the sum of the outputs."""
    inputs = inputs.clone().requires_grad_()
    with lrp_rules(network):
        output = network(inputs).sum()
        (gradient,) = torch.autograd.grad(output, inputs)
    return inputs.detach() * gradient, output.detach()


def test_the_epsilon_rule_agrees_with_a_calculation_by_hand() -> None:
    torch.manual_seed(0)
    first, second = nn.Linear(4, 3).double(), nn.Linear(3, 1).double()
    inputs = torch.randn(1, 4, dtype=torch.float64)
    hidden = first(inputs)
    activation = nn.functional.gelu(hidden)
    output = second(activation)
    with torch.no_grad():
        # From the top: each input's share of each sum, epsilon in the denominator; GELU passes relevance on.
        relevance = (output / (output + EPSILON * output.sign()) * second.weight * activation)[0]
        expected = torch.zeros(4, dtype=torch.float64)
        for neuron in range(3):
            share = first.weight[neuron] * inputs[0] / (hidden[0, neuron] + EPSILON * hidden[0, neuron].sign())
            expected += share * relevance[neuron]
    network = nn.Sequential(first, nn.GELU(), second)
    torch.testing.assert_close(input_relevance(network, inputs)[0][0], expected)
    torch.testing.assert_close(network(inputs), output)


def test_without_biases_all_relevance_reaches_the_inputs() -> None:
    torch.manual_seed(1)
    norm = nn.LayerNorm(6, bias=False)
    network = nn.Sequential(nn.Linear(5, 6, bias=False), nn.Tanh(), norm, nn.Linear(6, 2, bias=False)).double()
    relevance, output = input_relevance(network, torch.randn(3, 5, dtype=torch.float64))
    torch.testing.assert_close(relevance.sum(), output, atol=1e-3, rtol=1e-3)


def test_relevance_of_embeddings_and_biases_sums_to_the_prediction() -> None:
    encoder = double_precision("tiny")
    with torch.no_grad():
        for name, weights in encoder.model.named_parameters():
            # Attention of an untrained model is almost uniform, and relevance that it received would not be missed.
            weights.mul_(20 if ".query.w" in name or ".key.w" in name or ".value.w" in name else 1)
    batch = prepare_evaluation(encoder, load_corpus("english", limit=6), task="mlm").batches[0]
    biases = [weights for name, weights in encoder.model.named_parameters() if name.endswith("bias")]
    with lrp_rules(encoder.model):
        output: ModelOutput = encoder.forward(batch.inputs, on_layer=detach_attention, hidden=True)
        prediction = predicted_scores(output, batch, "mlm", encoder.mask_token_id)
        sources: list[Any] = [output.hidden_states[0], *biases]
        gradients = torch.autograd.grad(prediction, sources, materialize_grads=True)
    relevance = sum(float((source * g).sum().detach()) for source, g in zip(sources, gradients, strict=True))
    assert relevance == pytest.approx(float(prediction.detach()), rel=1e-3)
    assert abs(float(prediction.detach())) > 1


def test_all_relevance_of_a_layer_goes_to_the_planted_head() -> None:
    encoder, corpus = planted_heads.single_head()
    relevance = head_relevance(encoder, prepare_evaluation(encoder, corpus))
    np.testing.assert_allclose(relevance[:, PLANTED[0], PLANTED[1]], 1, atol=1e-5)
    # Nothing reads the output of heads in other layers.
    assert np.isnan(relevance[:, 0]).all() and np.isnan(relevance[:, 2]).all()


def test_shares_of_a_layer_sum_to_one_and_the_model_is_unchanged() -> None:
    encoder = load("tiny")
    assert isinstance(encoder, TaskEncoder)
    evaluation = prepare_evaluation(encoder, load_corpus("english", limit=8))
    before = evaluation.scores(encoder.forward).losses
    relevance = head_relevance(encoder, evaluation)
    np.testing.assert_allclose(relevance.sum(-1), 1)
    np.testing.assert_array_equal(evaluation.scores(encoder.forward).losses, before)
    assert all(weights.grad is None for weights in encoder.model.parameters())
