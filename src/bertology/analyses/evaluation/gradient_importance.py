"""Gradients with respect to head gates (michel2019) and highest attention weights (voita2019), per example and head."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.analyses.evaluation.evaluation import Evaluation, EvaluationBatch
from bertology.arrays import FloatArray
from bertology.encoder.attention_hook import LayerActivations
from bertology.encoder.encoder import TaskEncoder
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

TINY = 1e-20


@dataclass(frozen=True)
class HeadGradients:
    """(example, layer, head) statistics for importance measures.

    `gradient` is |∂L/∂ξ| at the gate ξ = 1, for an example's loss in nats. `absolute_by_token` sums the absolute
    contributions of its tokens instead. `max_weights` sums each token's highest attention weight on a non-special
    token. `n_tokens` is (example,).
    """

    gradient: FloatArray
    absolute_by_token: FloatArray
    max_weights: FloatArray
    n_tokens: FloatArray


def head_gradients(encoder: TaskEncoder, evaluation: Evaluation) -> HeadGradients:
    """Run one forward and backward pass over the batches.

    A gate multiplies A V, so ∂L/∂ξ is the sum of A ∂L/∂A over all weights of an attention pattern A.
    """
    shape = (len(evaluation.examples), encoder.layers, encoder.heads)
    gradient, absolute_by_token, max_weights = (np.zeros(shape) for _ in range(3))
    n_tokens = np.zeros(shape[0])
    for batch in evaluation.batches:
        effects, absolute, highest = (_sum_by_example(batch, values) for values in _row_gradients(encoder, batch))
        gradient[batch.examples] = np.abs(effects)
        absolute_by_token[batch.examples], max_weights[batch.examples] = absolute, highest
        n_tokens[batch.examples] = _sum_by_example(batch, batch.inputs.attention_mask.sum(-1))
    return HeadGradients(gradient, absolute_by_token, max_weights, n_tokens)


def normalise_layers(values: FloatArray) -> FloatArray:
    """(..., layer, head) values with each layer scaled to unit norm."""
    return values / (np.linalg.norm(values, axis=-1, keepdims=True) + TINY)


def _row_gradients(encoder: TaskEncoder, batch: EvaluationBatch) -> tuple[Tensor, Tensor, Tensor]:
    """(row, layer, head) gate gradients, sums of absolute gradients per token, and sums of highest weights."""
    layers: list[Tensor] = []
    token_mask = batch.inputs.attention_mask.bool()
    non_special = token_mask & ~_special_mask(batch, encoder)

    def collect_gradients(layer: LayerActivations) -> None:
        assert layer.gradient is not None, "the pass has an objective"
        effects = (layer.attention * layer.gradient).sum(-1) * token_mask[:, None]
        highest = (layer.attention * non_special[:, None, None]).amax(-1) * token_mask[:, None]
        layers.append(torch.stack([effects.sum(-1), effects.abs().sum(-1), highest.sum(-1)]))

    encoder.forward(batch.inputs, on_layer=collect_gradients, objective=lambda output: batch.loss(output).sum())
    effects, absolute, highest = torch.stack(layers, 2)
    return effects, absolute, highest


def _sum_by_example(batch: EvaluationBatch, values: Tensor) -> FloatArray:
    """(example, ...) sums of (row, ...) values."""
    sums = torch.zeros(len(batch.examples), *values.shape[1:], dtype=torch.float64)
    sums.index_add_(0, torch.tensor(batch.example_of_row), values.detach().double().cpu())
    return sums.numpy()


def _special_mask(batch: EvaluationBatch, encoder: TaskEncoder) -> Tensor:
    """(row, token) whether a token is [CLS], [SEP] or their equivalent."""
    tokenizer = encoder.hf_tokenizer
    special = {tokenizer.cls_token_id, tokenizer.bos_token_id, tokenizer.sep_token_id, tokenizer.eos_token_id} - {None}
    return torch.isin(batch.inputs.input_ids, torch.tensor(sorted(special), device=batch.inputs.input_ids.device))
