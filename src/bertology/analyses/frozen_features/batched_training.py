"""Train many small sequence networks at once: the same architecture with different examples, seeds and learning rates.

The first axis of every parameter is the model, so that one matrix product serves all models. Each model samples batches
from its own training examples, has its own learning rate, and keeps the parameters with the lowest validation loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor

Parameters = dict[str, "Tensor"]

N_VALIDATIONS = 10
"""Number of validations during training."""

BATCH_SIZE, EVALUATION_BATCH_SIZE = 16, 64
ADAM_BETAS = (0.9, 0.999)


@dataclass(frozen=True)
class PackedSequences:
    """Sequences of vectors, concatenated after one row of zeros for padding: (1 + words, width); no length is 0."""

    vectors: Tensor
    lengths: Tensor

    @property
    def starts(self) -> Tensor:
        """(sequence,) the row of each sequence's first vector."""
        return 1 + self.lengths.cumsum(0) - self.lengths

    def rows(self, indices: Tensor) -> tuple[Tensor, Tensor]:
        """(..., step) the rows of these sequences, 0 for padding, and the mask of steps without padding."""
        lengths = self.lengths[indices]
        step = torch.arange(int(lengths.max()))
        step_mask = step < lengths[..., None]
        return torch.where(step_mask, self.starts[indices][..., None] + step, 0), step_mask


class BatchedNetwork(Protocol):
    """A network; the first axis of all parameters, inputs and outputs is the model."""

    def init(self, width: int, seed: int) -> Parameters:
        """Initial parameters of one model."""
        ...

    def losses(
        self, parameters: Parameters, x: Tensor, step_mask: Tensor, labels: Tensor, noise: torch.Generator | None
    ) -> Tensor:
        """(model, batch) losses of (model, batch, step, width) sequences; with `noise`, under dropout.

        Labels are (model, batch), or (model, batch, step) for sequence labelling.
        """
        ...

    def predict(self, parameters: Parameters, x: Tensor, step_mask: Tensor) -> Tensor:
        """Predicted labels: (model, batch), or (model, batch, step) for sequence labelling."""
        ...

    @property
    def is_sequence_labelling(self) -> bool:
        """Whether every step has a label."""
        ...


@dataclass(frozen=True)
class TrainSpec:
    """Train and validation sequences (indices), seed and learning rate of one model."""

    train: Sequence[int]
    validation: Sequence[int]
    seed: int
    learning_rate: float


def train_networks(
    network: BatchedNetwork, sequences: PackedSequences, labels: Tensor, specs: Sequence[TrainSpec], steps: int
) -> tuple[Parameters, Tensor]:
    """The parameters of each model with the lowest validation loss, and (model,) this loss.

    Adam (Kingma & Ba 2015) with batches of 16 and a learning rate that decays linearly to 0.
    """
    width = sequences.vectors.shape[1]
    initial = [network.init(width, spec.seed) for spec in specs]
    parameters = {name: torch.stack([model[name] for model in initial]).requires_grad_() for name in initial[0]}
    first, second = ({name: torch.zeros_like(value) for name, value in parameters.items()} for _ in range(2))
    rates = torch.tensor([spec.learning_rate for spec in specs])
    noise = torch.Generator().manual_seed(specs[0].seed)
    batches = [_random_batches(spec) for spec in specs]
    best_loss = torch.full((len(specs),), torch.inf)
    best = {name: value.detach().clone() for name, value in parameters.items()}
    validation_steps = {round(steps * (number + 1) / N_VALIDATIONS) for number in range(N_VALIDATIONS)}
    for step in range(1, steps + 1):
        indices = torch.tensor([next(batch) for batch in batches])
        loss = _losses(network, parameters, sequences, labels, indices, noise).mean(1)
        gradients = torch.autograd.grad(loss.sum(), list(parameters.values()))
        with torch.no_grad():
            rate = rates * (1 - (step - 1) / steps)
            for (name, value), gradient in zip(parameters.items(), gradients, strict=True):
                value -= _expand_over_models(rate, value) * _adam_direction(first[name], second[name], gradient, step)
        if step in validation_steps:
            validation_loss = _validation_losses(network, parameters, sequences, labels, specs)
            improved = validation_loss < best_loss
            best_loss = torch.minimum(validation_loss, best_loss)
            for name, value in parameters.items():
                best[name] = torch.where(_expand_over_models(improved, value), value.detach(), best[name])
    return best, best_loss


def predict(
    network: BatchedNetwork, parameters: Parameters, sequences: PackedSequences, indices: Sequence[int]
) -> list[Tensor]:
    """Predicted labels of these sequences: (model,) each, or (model, step) for sequence labelling."""
    predictions: list[Tensor] = []
    models = len(next(iter(parameters.values())))
    for batch in torch.tensor(indices).split(EVALUATION_BATCH_SIZE):
        rows, step_mask = sequences.rows(batch.expand(models, -1))
        with torch.inference_mode():
            labels = network.predict(parameters, sequences.vectors[rows], step_mask)
        for number, index in enumerate(batch.tolist()):
            length = int(sequences.lengths[index])
            predictions.append(labels[:, number, :length] if network.is_sequence_labelling else labels[:, number])
    return predictions


def _losses(
    network: BatchedNetwork,
    parameters: Parameters,
    sequences: PackedSequences,
    labels: Tensor,
    indices: Tensor,
    noise: torch.Generator | None = None,
) -> Tensor:
    rows, step_mask = sequences.rows(indices)
    batch_labels = labels[rows] if network.is_sequence_labelling else labels[indices]
    return network.losses(parameters, sequences.vectors[rows], step_mask, batch_labels, noise)


def _validation_losses(
    network: BatchedNetwork,
    parameters: Parameters,
    sequences: PackedSequences,
    labels: Tensor,
    specs: Sequence[TrainSpec],
) -> Tensor:
    """(model,) mean validation loss; smaller validation sets are repeated to the length of the largest."""
    size = max(len(spec.validation) for spec in specs)
    indices = torch.tensor(
        [[spec.validation[number % len(spec.validation)] for number in range(size)] for spec in specs]
    )
    with torch.inference_mode():
        losses = [
            _losses(network, parameters, sequences, labels, batch) for batch in indices.split(EVALUATION_BATCH_SIZE, 1)
        ]
    return torch.cat(losses, 1).mean(1)


def _random_batches(spec: TrainSpec) -> Iterator[list[int]]:
    """An endless stream of batches; the examples are shuffled anew in every epoch."""
    generator = torch.Generator().manual_seed(spec.seed)
    waiting: list[int] = []
    while True:
        while len(waiting) < BATCH_SIZE:
            waiting += [spec.train[index] for index in torch.randperm(len(spec.train), generator=generator).tolist()]
        yield waiting[:BATCH_SIZE]
        del waiting[:BATCH_SIZE]


def _adam_direction(first: Tensor, second: Tensor, gradient: Tensor, step: int) -> Tensor:
    """The direction of one Adam step; updates the two moments in place."""
    first.lerp_(gradient, 1 - ADAM_BETAS[0])
    second.lerp_(gradient.square(), 1 - ADAM_BETAS[1])
    mean, square = (moment / (1 - decay**step) for moment, decay in zip((first, second), ADAM_BETAS, strict=True))
    return mean / (square.sqrt() + 1e-8)


def _expand_over_models(values: Tensor, like: Tensor) -> Tensor:
    """(model,) values with as many unit axes appended as `like` has after its first."""
    return values.reshape(-1, *[1] * (like.ndim - 1))


def scaled_normal(generator: torch.Generator, *shape: int) -> Tensor:
    """Normal random numbers with standard deviation 1 / sqrt(first size)."""
    return torch.randn(shape, generator=generator) * shape[0] ** -0.5


def dropout(values: Tensor, probability: float, noise: torch.Generator | None) -> Tensor:
    """Dropout with its own random generator; the values themselves if there is none."""
    if noise is None:
        return values
    return values * (torch.rand(values.shape, generator=noise) >= probability) / (1 - probability)
