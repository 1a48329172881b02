"""Train a model with gated heads: L0 gates that learn which heads to keep, or a fixed set of kept heads.

Training batches are those of the evaluation, and the loop is that of fine-tuning. The given model is not changed.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from bertology.analyses.evaluation.evaluation import Evaluation, EvaluationBatch, with_perturbed_examples
from bertology.analyses.evaluation.head_ranking import keep_heads
from bertology.arrays import BoolArray, FloatArray, IntArray
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import TaskEncoder
from bertology.numerics.hard_concrete import HardConcrete
from bertology.progress import ProgressCallback
from bertology.training.encoded_examples import EncodedExample, TrainingBatch
from bertology.training.loop import TrainingConfig, resolve_config, train

DISTRIBUTION = HardConcrete()
PENALTY_WARMUP_FRACTION = 2 / 3
"""Fraction of the steps over which the penalty rises.

With the full penalty from the start, all gates close before the loss can distinguish heads, and a broken model says
nothing about any one of them.
"""


@dataclass(frozen=True)
class GateTrainingConfig:
    """Hyperparameters of gate training.

    `l0_penalty` is in nats per gate that is expected to be non-zero. `learning_rate` is that of the gates; with
    `train_weights` the model is trained as well, at the rate that fine-tuning would choose.
    """

    l0_penalty: float
    steps: int
    batch_size: int
    initial_log_alpha: float
    learning_rate: float
    train_weights: bool
    seed: int


@dataclass(frozen=True)
class TrainedGates:
    """(layer, head) log alpha of the trained gates, and the model with only the heads they keep."""

    log_alpha: FloatArray
    encoder: TaskEncoder

    @property
    def kept_heads(self) -> BoolArray:
        """(layer, head) whether the gate is more likely 1 than 0."""
        return DISTRIBUTION.is_open(torch.from_numpy(self.log_alpha)).numpy()

    @property
    def open_probability(self) -> FloatArray:
        """(layer, head) the probability that the gate is not 0."""
        return DISTRIBUTION.p_nonzero(torch.from_numpy(self.log_alpha)).numpy()


class _GatedModel(nn.Module):
    """A model and its gates; log alpha is a vector, because the loop applies no weight decay to vectors."""

    def __init__(self, model: Any, log_alpha: Tensor | None, *, frozen: bool) -> None:
        super().__init__()
        self.model = model
        self.log_alpha = None if log_alpha is None else nn.Parameter(log_alpha)
        self.frozen = frozen

    def train(self, mode: bool = True) -> _GatedModel:
        """Training mode, without dropout if the weights are frozen: it would only add noise to the gates."""
        super().train(mode)
        if self.frozen:
            self.model.eval()
        return self


def train_gates(
    encoder: TaskEncoder, evaluation: Evaluation, config: GateTrainingConfig, progress: ProgressCallback
) -> TrainedGates:
    """Train gates on loss plus penalty; each step samples one gate per head for all examples."""
    copied = _copy(encoder, frozen=not config.train_weights)
    shape = encoder.layers, encoder.heads
    initial = torch.full((shape[0] * shape[1],), config.initial_log_alpha, device=encoder.device)
    module = _GatedModel(copied.model, initial, frozen=not config.train_weights)
    assert module.log_alpha is not None, "the module was built with gates"
    log_alpha = module.log_alpha
    steps = count(1)

    def loss(batch: EvaluationBatch) -> Tensor:
        penalty = config.l0_penalty * min(1.0, next(steps) / (PENALTY_WARMUP_FRACTION * config.steps))
        scale = DISTRIBUTION.sample(log_alpha).view(shape)
        task_loss = batch.loss(copied.with_gates(Gates(scale=scale)).forward(batch.inputs)).mean()
        return task_loss + penalty * DISTRIBUTION.p_nonzero(log_alpha).sum()

    _train(module, encoder, evaluation, loss, config, progress)
    trained = TrainedGates(log_alpha.detach().double().cpu().view(shape).numpy(), copied)
    return replace(trained, encoder=keep_heads(copied, trained.kept_heads))


def retrain_model(
    encoder: TaskEncoder,
    evaluation: Evaluation,
    kept_heads: BoolArray,
    *,
    steps: int,
    batch_size: int,
    seed: int,
    progress: ProgressCallback,
) -> TaskEncoder:
    """The model trained further with only the kept heads."""
    copied = keep_heads(_copy(encoder, frozen=False), kept_heads)
    module = _GatedModel(copied.model, None, frozen=False)
    config = GateTrainingConfig(0.0, steps, batch_size, 0.0, 0.0, True, seed)

    def loss(batch: EvaluationBatch) -> Tensor:
        return batch.loss(copied.forward(batch.inputs)).mean()

    _train(module, encoder, evaluation, loss, config, progress)
    return copied


def _train(
    module: _GatedModel,
    encoder: TaskEncoder,
    evaluation: Evaluation,
    loss: Callable[[EvaluationBatch], Tensor],
    config: GateTrainingConfig,
    progress: ProgressCallback,
) -> None:
    batches = _training_batches(encoder, evaluation, config.batch_size, config.seed)
    model_rate = resolve_config(TrainingConfig(), width=encoder.width, device=encoder.device).learning_rate or 0.0
    training_config = TrainingConfig(
        seed=config.seed,
        epochs=-(-config.steps // len(batches)),
        batch_size=1,
        learning_rate=model_rate if config.train_weights else config.learning_rate,
        patience=None,
        dtype="float32",
    )
    lr_multipliers = {"log_alpha": config.learning_rate / model_rate} if config.train_weights else {}

    def batch_loss(batch: TrainingBatch) -> Tensor:
        return loss(batches[batch.indices[0]])

    # The loop iterates over examples: each placeholder stands for one evaluation batch, with a batch size of 1.
    zero = np.zeros(1, np.int64)
    placeholders = [EncodedExample(zero, zero, zero) for _ in batches]
    train(
        module,
        batch_loss,
        placeholders,
        None,
        training_config,
        lr_multipliers=lr_multipliers,
        max_steps=config.steps,
        progress=progress,
    )


def _training_batches(
    encoder: TaskEncoder, evaluation: Evaluation, batch_size: int, seed: int
) -> list[EvaluationBatch]:
    """The examples in batches of the training size; the seed determines the masked tokens."""
    examples = list({id(example): example for example in evaluation.examples}.values())
    chunks = (examples[start : start + batch_size] for start in range(0, len(examples), batch_size))
    return [
        batch for chunk in chunks for batch in with_perturbed_examples(encoder, evaluation, chunk, seed=seed).batches
    ]


def _copy(encoder: TaskEncoder, *, frozen: bool) -> TaskEncoder:
    model = copy.deepcopy(encoder.model)
    model.requires_grad_(not frozen)
    return encoder.with_model(model)


def permuted_head_sets(head_sets: Sequence[BoolArray], permutation: IntArray) -> list[BoolArray]:
    """Random sets of the same sizes: the heads of every set exchanged by one permutation of all heads.

    Sets that overlap still overlap as much, so that their mean score varies as it would if no head differed from any
    other.
    """
    return [heads.ravel()[permutation].reshape(heads.shape) for heads in head_sets]
