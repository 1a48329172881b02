"""Protocols of supervised tasks: encoding of examples, loss, predictions and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from bertology.corpus.example import Example
from bertology.encoder.encoder import ModelOutput
from bertology.estimates.metrics import Counts, MetricEstimates
from bertology.training.encoded_examples import EncodedDataset, TokeniseFunction, TrainingBatch
from bertology.training.trainable_model import TrainableModel

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.task_heads import TaskHeadName

MAJORITY_CLASS = "majority class"
"""Name of the baseline that always predicts the most frequent label."""


class Task(Protocol):
    """A supervised task with one prediction per example, of a type that only the task knows."""

    @property
    def name(self) -> str:
        """Name on the command line."""
        ...

    @property
    def task_head(self) -> TaskHeadName:
        """Task head of the model."""
        ...

    @property
    def metric(self) -> str:
        """Metric that selects the best epoch."""
        ...

    @property
    def labels(self) -> tuple[str, ...]:
        """Classes of the task head, by index; empty if it has none."""
        ...

    def encode(self, examples: Sequence[Example], tokenise: TokeniseFunction, *, max_length: int) -> EncodedDataset:
        """Encode examples as token ids with labels."""
        ...

    def loss(self, model: TrainableModel, batch: TrainingBatch) -> Tensor:
        """Mean cross-entropy of a batch, in nats."""
        ...

    def predict(self, model: TrainableModel, dataset: EncodedDataset) -> list[Any]:
        """The model's prediction for each example."""
        ...

    def count_correct(self, examples: Sequence[Example], predictions: Sequence[Any]) -> Counts:
        """Correct and total of `metric` for each example."""
        ...

    def metrics(self, examples: Sequence[Example], predictions: Sequence[Any]) -> MetricEstimates:
        """All metrics with their intervals."""
        ...

    def baseline_predictions(
        self, train_examples: Sequence[Example], examples: Sequence[Example]
    ) -> Mapping[str, list[Any]]:
        """Predictions without a model, by the name of the baseline."""
        ...


class ScorableTask(Task, Protocol):
    """A task predicted by the model's own task head, so that the output of any forward pass can be scored."""

    def example_losses(self, output: ModelOutput, batch: TrainingBatch) -> Tensor:
        """(example,) cross-entropy of each encoded example, in nats."""
        ...

    def decode(self, outputs: Iterable[tuple[TrainingBatch, ModelOutput]], dataset: EncodedDataset) -> list[Any]:
        """The prediction for each example, from the outputs for all its encodings."""
        ...
