"""Variational codes of labels, by classifiers with a distribution over weights (louizos2017, voita2020).

The code length is the divergence of the weights from their prior plus the expected cross-entropy. Every input unit has
a factor z with the normal-Jeffreys prior, which can switch it off; weights and biases have the prior N(0, 1). Many
problems are fitted at once by Adam, on full batches.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bertology.arrays import Array, FloatArray
from bertology.lazy import torch
from bertology.numerics.batched_classifier import CHUNK_CELLS, mean_and_std, standardise

if TYPE_CHECKING:
    from torch import Tensor

# Approximation of the divergence by Molchanov, Ashukha & Vetrov (2017).
KL_SCALE, KL_SHIFT, KL_SLOPE = 0.63576, 1.87320, 1.48695
INITIAL_LOG_VARIANCE = -5.0
FINAL_SAMPLES = 8


@dataclass(frozen=True)
class VariationalConfig:
    """Sizes of hidden ReLU layers (none: linear), and Adam's steps and learning rate, which decays to zero."""

    hidden_sizes: tuple[int, ...] = ()
    steps: int = 300
    learning_rate: float = 0.1


class CodeLength(NamedTuple):
    """(group, problem) nats of the weights, and of the labels given the weights."""

    weight_nats: FloatArray
    label_nats: FloatArray


def variational_code_lengths(
    features: Array, labels: Array, classes: int, config: VariationalConfig, *, seeds: tuple[int, ...]
) -> CodeLength:
    """Variational codes of (problem, example) labels given (group, example, feature), with one seed per problem."""
    max_width = max(classes, *config.hidden_sizes, features.shape[-1] // 8, 1)
    chunk_size = max(1, CHUNK_CELLS // max(1, labels.size * max_width))
    chunks = [
        _fit_chunk(features[start : start + chunk_size], labels, classes, config, seeds)
        for start in range(0, len(features), chunk_size)
    ]
    return CodeLength(*(np.concatenate(nats) for nats in zip(*chunks, strict=True)))


def _fit_chunk(
    features: Array, labels: Array, classes: int, config: VariationalConfig, seeds: tuple[int, ...]
) -> CodeLength:
    x = standardise(features, *mean_and_std(features))
    gold = torch.from_numpy(np.asarray(labels, np.int64))
    generator = torch.Generator().manual_seed(seeds[0])
    sizes = [x.shape[-1], *config.hidden_sizes, classes]
    layers = [
        _VariationalLayer(len(x), seeds, n_in, n_out, is_first=index == 0)
        for index, (n_in, n_out) in enumerate(pairwise(sizes))
    ]
    parameters = [parameter for layer in layers for parameter in layer.parameters]
    optimiser = torch.optim.Adam(parameters, lr=config.learning_rate)
    for step in range(config.steps):
        for group in optimiser.param_groups:
            group["lr"] = config.learning_rate * min(1.0, 2 * (1 - step / config.steps))
        optimiser.zero_grad()
        weight_nats, label_nats = _code_terms(layers, x, gold, generator)
        ((weight_nats + label_nats).sum() / gold.shape[1]).backward()
        optimiser.step()
    with torch.inference_mode():
        samples = [_code_terms(layers, x, gold, generator) for _ in range(FINAL_SAMPLES)]
    weight_nats, label_nats = samples[0][0], torch.stack([label_nats for _, label_nats in samples]).mean(0)
    return CodeLength(weight_nats.double().numpy(), label_nats.double().numpy())


def _code_terms(
    layers: list[_VariationalLayer], x: Tensor, gold: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """(group, problem) divergence of the weights, and cross-entropy under one sample of the weights."""
    hidden = x
    for index, layer in enumerate(layers):
        hidden = layer.sample(hidden.relu() if index else hidden, generator)
    labels = gold[None, :, None].expand(len(x), -1, 1, -1)
    label_nats = -hidden.log_softmax(2).gather(2, labels).squeeze(2).sum(-1)
    return sum((layer.divergence() for layer in layers), torch.zeros_like(label_nats)), label_nats


class _VariationalLayer:
    """Means and log-variances of (out, in) weights, biases and input factors, for every group and problem."""

    def __init__(
        self, groups: int, seeds: tuple[int, ...], in_features: int, out_features: int, *, is_first: bool
    ) -> None:
        self.is_first = is_first
        initial = [
            torch.randn(out_features, in_features, generator=torch.Generator().manual_seed(seed))
            * (2 / in_features) ** 0.5
            for seed in seeds
        ]
        self.weights = torch.stack(initial).expand(groups, -1, -1, -1).clone().requires_grad_()
        self.bias = torch.zeros(groups, len(seeds), out_features, requires_grad=True)
        self.factor = torch.ones(groups, len(seeds), in_features, requires_grad=True)
        means = self.weights, self.bias, self.factor
        log_variances = [torch.full(mean.shape, INITIAL_LOG_VARIANCE, requires_grad=True) for mean in means]
        self.weight_log_variance, self.bias_log_variance, self.factor_log_variance = log_variances
        self.parameters = [*means, *log_variances]

    def sample(self, x: Tensor, generator: torch.Generator) -> Tensor:
        """(group, problem, out, example) outputs; factors are sampled once per problem, outputs once per example."""
        factor_noise = torch.randn(self.factor.shape, generator=generator)
        factor = self.factor + factor_noise * (self.factor_log_variance / 2).exp()
        weights = self.weights * factor[:, :, None]
        variances = self.weight_log_variance.exp() * factor.square()[:, :, None]
        mean = self._product(weights, x)
        variance = self._product(variances, x.square()) + self.bias_log_variance.exp()[..., None]
        noise = torch.randn(mean.shape, generator=generator)
        return mean + self.bias[..., None] + noise * variance.clamp(min=1e-12).sqrt()

    def _product(self, weights: Tensor, x: Tensor) -> Tensor:
        if not self.is_first:
            return weights @ x
        return (weights.flatten(1, 2) @ x.transpose(1, 2)).unflatten(1, weights.shape[1:3])

    def divergence(self) -> Tensor:
        """(group, problem) divergence from the prior, in nats."""
        ratio = self.factor_log_variance - self.factor.square().clamp(min=1e-12).log()
        factors = (
            KL_SCALE * torch.sigmoid(KL_SHIFT + KL_SLOPE * ratio) - torch.nn.functional.softplus(-ratio) / 2 - KL_SCALE
        )
        normal = [
            (log_variance.exp() + mean.square() - log_variance - 1).flatten(2).sum(-1) / 2
            for mean, log_variance in ((self.weights, self.weight_log_variance), (self.bias, self.bias_log_variance))
        ]
        return normal[0] + normal[1] - factors.sum(-1)
