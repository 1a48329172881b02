"""Tasks `sentence` and `pair`: one class per text or pair of texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bertology.corpus.example import Example
from bertology.encoder.encoder import ModelOutput
from bertology.estimates.metrics import Counts, MetricEstimates, bootstrap_score, count_correct_labels, macro_f1_and_mcc
from bertology.lazy import torch
from bertology.training.encoded_examples import (
    IGNORE_INDEX,
    EncodedDataset,
    TokeniseFunction,
    TrainingBatch,
    encode_classification,
)
from bertology.training.tasks.task import MAJORITY_CLASS
from bertology.training.trainable_model import TrainableModel

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.task_heads import TaskHeadName


@dataclass(frozen=True)
class TextClassification:
    """One class per example, predicted by the model's classification head."""

    name: str
    labels: tuple[str, ...]
    task_head: TaskHeadName = "label"
    metric: str = "accuracy"

    def encode(self, examples: Sequence[Example], tokenise: TokeniseFunction, *, max_length: int) -> EncodedDataset:
        """A text that is too long keeps its end; a pair that is too long is skipped."""
        return encode_classification(examples, tokenise, self.labels, max_length=max_length)

    def loss(self, model: TrainableModel, batch: TrainingBatch) -> Tensor:
        """Mean cross-entropy of the class."""
        logits = model.forward(batch.inputs).logits["label"].float()
        labels = batch.labels[:, 0].to(logits.device)
        return torch.nn.functional.cross_entropy(logits, labels, ignore_index=IGNORE_INDEX)

    def example_losses(self, output: ModelOutput, batch: TrainingBatch) -> Tensor:
        """Cross-entropy of the class of each example."""
        logits = output.logits["label"].float()
        labels = batch.labels[:, 0].to(logits.device)
        return torch.nn.functional.cross_entropy(logits, labels, ignore_index=IGNORE_INDEX, reduction="none")

    def predict(self, model: TrainableModel, dataset: EncodedDataset) -> list[str]:
        """The most probable class of each example."""
        return self.decode(model.predict_batches(dataset.encoded), dataset)

    def decode(self, outputs: Iterable[tuple[TrainingBatch, ModelOutput]], dataset: EncodedDataset) -> list[str]:
        """The most probable class of each example."""
        predictions = [""] * len(dataset.examples)
        for batch, output in outputs:
            for index, label_id in zip(batch.indices, output.logits["label"].argmax(-1).tolist(), strict=True):
                predictions[index] = self.labels[label_id]
        return predictions

    def count_correct(self, examples: Sequence[Example], predictions: Sequence[str]) -> Counts:
        """1 for each correct class."""
        correct = [float(predicted == example.label) for example, predicted in zip(examples, predictions, strict=True)]
        return Counts(np.array(correct), np.ones(len(correct)))

    def metrics(self, examples: Sequence[Example], predictions: Sequence[str]) -> MetricEstimates:
        """Accuracy, macro F1 and Matthews' correlation."""
        gold, predicted = [[str(example.label)] for example in examples], [[label] for label in predictions]
        return {"accuracy": bootstrap_score(count_correct_labels(gold, predicted)), **macro_f1_and_mcc(gold, predicted)}

    def baseline_predictions(
        self, train_examples: Sequence[Example], examples: Sequence[Example]
    ) -> Mapping[str, list[str]]:
        """The most frequent class of the training examples."""
        majority = Counter(str(example.label) for example in train_examples).most_common(1)[0][0]
        return {MAJORITY_CLASS: [majority] * len(examples)}
