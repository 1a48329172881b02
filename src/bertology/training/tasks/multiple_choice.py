"""Task `choice`: one of several options, each encoded after the passage and the question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.arrays import IntArray
from bertology.corpus.example import Example
from bertology.encoder.encoder import ModelOutput
from bertology.encoder.tokens import TokenisedInput
from bertology.estimates.metrics import Counts, MetricEstimates, bootstrap_score
from bertology.lazy import torch
from bertology.training.encoded_examples import (
    EncodedDataset,
    EncodedExample,
    TokeniseFunction,
    TrainingBatch,
    ids_and_types,
    pad_rows,
)
from bertology.training.tasks.task import MAJORITY_CLASS
from bertology.training.trainable_model import TrainableModel

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.task_heads import TaskHeadName


@dataclass(frozen=True)
class MultipleChoice:
    """The index of the correct option."""

    labels: tuple[str, ...] = ()
    name: str = "choice"
    task_head: TaskHeadName = "choice"
    metric: str = "accuracy"

    def encode(self, examples: Sequence[Example], tokenise: TokeniseFunction, *, max_length: int) -> EncodedDataset:
        """A passage that is too long loses its end; an example without room for any of it is skipped."""
        used: list[Example] = []
        encoded: list[EncodedExample] = []
        n_truncated = 0
        for example in examples:
            options = [_truncate_passage(tokens, max_length) for tokens in tokenise(example.text_inputs)]
            n_truncated += any(is_truncated for _, _, is_truncated in options)
            if any(not len(ids) for ids, _, _ in options):
                continue
            ids, types = pad_rows([ids for ids, _, _ in options]), pad_rows([types for _, types, _ in options])
            encoded.append(EncodedExample(ids, types, np.array([int(example.label or 0)]), example_index=len(used)))
            used.append(example)
        return EncodedDataset(used, encoded, n_truncated)

    def loss(self, model: TrainableModel, batch: TrainingBatch) -> Tensor:
        """Mean cross-entropy of the correct option."""
        return self.example_losses(model.forward(batch.inputs), batch).mean()

    def example_losses(self, output: ModelOutput, batch: TrainingBatch) -> Tensor:
        """Cross-entropy of the correct option of each example."""
        logits = _option_logits(output, batch)
        return torch.nn.functional.cross_entropy(logits, batch.labels[:, 0].to(logits.device), reduction="none")

    def predict(self, model: TrainableModel, dataset: EncodedDataset) -> list[int]:
        """The most probable option of each example."""
        return self.decode(model.predict_batches(dataset.encoded), dataset)

    def decode(self, outputs: Iterable[tuple[TrainingBatch, ModelOutput]], dataset: EncodedDataset) -> list[int]:
        """The most probable option of each example."""
        predictions = [0] * len(dataset.examples)
        for batch, output in outputs:
            for index, option in zip(batch.indices, _option_logits(output, batch).argmax(-1).tolist(), strict=True):
                predictions[index] = option
        return predictions

    def count_correct(self, examples: Sequence[Example], predictions: Sequence[int]) -> Counts:
        """1 for each correct option."""
        correct = [
            float(str(predicted) == example.label) for example, predicted in zip(examples, predictions, strict=True)
        ]
        return Counts(np.array(correct), np.ones(len(correct)))

    def metrics(self, examples: Sequence[Example], predictions: Sequence[int]) -> MetricEstimates:
        """Accuracy."""
        return {"accuracy": bootstrap_score(self.count_correct(examples, predictions))}

    def baseline_predictions(
        self, train_examples: Sequence[Example], examples: Sequence[Example]
    ) -> Mapping[str, list[int]]:
        """The option index that is correct most often in the training examples."""
        majority = Counter(int(example.label or 0) for example in train_examples).most_common(1)[0][0]
        return {MAJORITY_CLASS: [majority] * len(examples)}


def _option_logits(output: ModelOutput, batch: TrainingBatch) -> Tensor:
    """(example, option) logits; -inf for options an example does not have."""
    logits = output.logits["choice"].float().reshape(batch.inputs.input_ids.shape[:2])
    return logits.masked_fill(batch.inputs.attention_mask[..., 0].to(logits.device) == 0, float("-inf"))


def _truncate_passage(tokens: TokenisedInput, max_length: int) -> tuple[IntArray, IntArray, bool]:
    """Ids and types with the end of the passage cut to fit, and whether it was; empty if cutting is not enough."""
    ids, types = ids_and_types(tokens)
    excess = len(ids) - max_length
    if excess <= 0:
        return ids, types, False
    passage = np.flatnonzero(tokens.segment_ids == 0)
    if excess >= len(passage):
        return ids[:0], types[:0], True
    cut = passage[len(passage) - excess :]
    return np.delete(ids, cut), np.delete(types, cut), True
