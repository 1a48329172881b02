"""Relevance is conserved, follows the rules computed by hand, and leaves the model unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import ndtr, softmax
from torch import Tensor, nn

import planted_heads
import tiny_models
from bertology.analyses.evaluation.evaluation import prepare_evaluation
from bertology.analyses.evaluation.relevance_propagation import (
    EPSILON,
    detach_attention,
    head_relevance,
    lrp_rules,
    predicted_scores,
)
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import as_corpus, load_corpus
from bertology.encoder.encoder import ModelInputs, ModelOutput, TaskEncoder
from bertology.encoder.families import is_embedding
from bertology.encoder.huggingface import wrap
from bertology.encoder.load import load
from planted_heads import PLANTED

# GPT-2's variant computes in single precision only.
VARIANTS = [name for name in tiny_models.VARIANTS if not name.startswith("gpt2")]


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


@pytest.mark.parametrize("kind", ["ForSequenceClassification", "language model"])
@pytest.mark.parametrize("name", [*tiny_models.FAMILIES, *VARIANTS])
def test_relevance_is_conserved_in_every_family(name: str, kind: str) -> None:
    """Also where activations are functions (RoBERTa, MPNet, DeBERTa) and where states are multiplied (ModernBERT)."""
    language_model = "LMHeadModel" if name == "gpt2" else "ForMaskedLM"
    model = tiny_models.model(name, language_model if kind == "language model" else kind)
    encoder = tiny_models.wrap_model(model.double(), name)
    batch = tiny_models.batch(encoder.tokenise(tiny_models.inputs()[:3]))
    biases = [
        weights
        for name, weights in model.named_parameters()
        if name.endswith("bias") and not is_embedding(model.config.model_type, name)
    ]
    with lrp_rules(model):
        output = encoder.forward(batch, on_layer=detach_attention, hidden=True)
        (logits,) = output.logits.values()
        prediction = (logits if logits.ndim == 2 else logits[:, 1]).amax(-1).sum()
        sources: list[Any] = [output.hidden_states[0], *biases]
        gradients = torch.autograd.grad(prediction, sources, materialize_grads=True)
    relevance = sum(float((source * g).sum().detach()) for source, g in zip(sources, gradients, strict=True))
    assert relevance == pytest.approx(float(prediction.detach()), rel=3e-4)


Signal = NDArray[np.float64]


class PlainLRP:
    """Relevance propagation in a classifier, one text at a time, written out from the rules in NumPy."""

    def __init__(self, model: Any, heads: int) -> None:
        self.weights = {name: weights.detach().double().numpy() for name, weights in model.named_parameters()}
        self.heads, self.epsilon = heads, 1e-5

    def linear(self, name: str, before: Signal) -> Signal:
        return before @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def through_linear(self, name: str, before: Signal, relevance: Signal) -> Signal:
        """r_i = sum over j of W_ji x_i r_j / (z_j + epsilon), the sign of epsilon being that of z_j."""
        after, weight = self.linear(name, before), self.weights[f"{name}.weight"]
        received = np.zeros_like(before)
        for token in range(len(before)):
            for j in range(len(weight)):
                z = after[token, j]
                received[token] += (
                    weight[j]
                    * before[token]
                    / (z + (self.epsilon if z >= 0 else -self.epsilon))
                    * (relevance[token, j])
                )
        return received

    def norm(self, name: str, before: Signal) -> Signal:
        centred = before - before.mean(-1, keepdims=True)
        std = np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-12)
        return centred / std * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]

    def through_norm(self, name: str, before: Signal, relevance: Signal) -> Signal:
        """A linear map y_j = sum over i of (1[i = j] - 1 / n) w_j x_i / std + b_j, std being constant."""
        after, n = self.norm(name, before), before.shape[-1]
        received = np.zeros_like(before)
        for token in range(len(before)):
            std = np.sqrt(before[token].var() + 1e-12)
            matrix = (np.eye(n) - 1 / n) * self.weights[f"{name}.weight"][:, None] / std
            received[token] = (matrix * before[token] * (relevance[token] / after[token])[:, None]).sum(0)
        return received

    def split(self, value: Signal) -> Signal:
        """(head, token, size) of (token, width)."""
        return value.reshape(len(value), self.heads, -1).transpose(1, 0, 2)

    def merge(self, value: Signal) -> Signal:
        return value.transpose(1, 0, 2).reshape(value.shape[1], -1)

    def head_relevance(self, states: Signal, base: str, layers: int, classifier: tuple[str, str]) -> Signal:
        """(layer, head) relevance for the highest logit; states are the output of the embeddings."""
        pooler, output = classifier
        trace: list[dict[str, Signal]] = []
        for layer in range(layers):
            path = f"{base}.encoder.layer.{layer}"
            query, key, value = (
                self.split(self.linear(f"{path}.attention.self.{part}", states)) for part in ("query", "key", "value")
            )
            attention = softmax(query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1]), -1)
            outputs = self.merge(attention @ value)
            first_sum = states + self.linear(f"{path}.attention.output.dense", outputs)
            middle = self.norm(f"{path}.attention.output.LayerNorm", first_sum)
            inner = self.linear(f"{path}.intermediate.dense", middle)
            active = inner * ndtr(inner)
            second_sum = middle + self.linear(f"{path}.output.dense", active)
            trace.append(
                {"in": states, "A": attention, "v": value, "o": outputs, "sum1": first_sum, "mid": middle,
                 "active": active, "sum2": second_sum}
            )  # fmt: skip
            states = self.norm(f"{path}.output.LayerNorm", second_sum)
        first = states[:1]
        pooled = np.tanh(self.linear(pooler, first))
        logits = self.linear(output, pooled)
        relevance = np.where(logits == logits.max(), logits, 0.0)
        relevance = self.through_linear(pooler, first, self.through_linear(output, pooled, relevance))
        relevance = np.concatenate([relevance, np.zeros_like(states[1:])])
        by_head = np.zeros((layers, self.heads))
        for layer in reversed(range(layers)):
            path, at = f"{base}.encoder.layer.{layer}", trace[layer]
            relevance = self.through_norm(f"{path}.output.LayerNorm", at["sum2"], relevance)
            to_block = relevance * (at["sum2"] - at["mid"]) / at["sum2"]
            to_active = self.through_linear(f"{path}.output.dense", at["active"], to_block)
            relevance = relevance * at["mid"] / at["sum2"] + self.through_linear(
                f"{path}.intermediate.dense", at["mid"], to_active
            )
            relevance = self.through_norm(f"{path}.attention.output.LayerNorm", at["sum1"], relevance)
            to_block = relevance * (at["sum1"] - at["in"]) / at["sum1"]
            to_outputs = self.split(self.through_linear(f"{path}.attention.output.dense", at["o"], to_block))
            by_head[layer] = to_outputs.sum((1, 2))
            # An output is the sum of A_ft v_t over tokens t; each receives its part.
            to_values = np.zeros_like(at["v"])
            for head, source in np.ndindex(to_outputs.shape[:2]):
                parts = at["A"][head, source][:, None] * at["v"][head]
                to_values[head] += parts / parts.sum(0) * to_outputs[head, source]
            relevance = relevance * at["in"] / at["sum1"] + self.through_linear(
                f"{path}.attention.self.value", at["in"], self.merge(to_values)
            )
        return by_head


@pytest.mark.parametrize(
    ("name", "classifier"),
    [
        ("bert", ("bert.pooler.dense", "classifier")),
        ("roberta", ("classifier.dense", "classifier.out_proj")),
    ],
)
def test_head_relevance_agrees_with_rules_written_out(name: str, classifier: tuple[str, str]) -> None:
    encoder = tiny_models.wrap_model(tiny_models.model(name, "ForSequenceClassification").double(), name)
    corpus = as_corpus(tiny_models.TEXTS[:4])
    examples = tuple(replace(example, label=encoder.labels[0]) for example in corpus)
    evaluation = prepare_evaluation(encoder, Corpus(examples, name="texts"))
    (batch,) = evaluation.batches
    actual = head_relevance(encoder, evaluation)
    plain = PlainLRP(encoder.model, encoder.heads)
    assert len(set(batch.inputs.attention_mask.sum(1).tolist())) > 1, "some rows are padded"
    for row, index in enumerate(batch.examples):
        n = int(batch.inputs.attention_mask[row].sum())
        ids, types = (t[row : row + 1, :n] for t in (batch.inputs.input_ids, batch.inputs.token_type_ids))
        alone = ModelInputs(ids, types, torch.ones_like(ids))
        with torch.no_grad():
            embeddings = encoder.forward(alone, hidden=True).hidden_states[0][0].numpy()
        expected = np.abs(plain.head_relevance(embeddings, name, encoder.layers, classifier))
        np.testing.assert_allclose(actual[index], expected / expected.sum(-1, keepdims=True), atol=1e-8, rtol=1e-6)


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
