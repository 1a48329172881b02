"""Predictions of a fine-tuned model, and counts of correct ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bertology.estimates.metrics import Counts
from bertology.training.encoded_examples import EncodedExample, iterate_batches
from bertology.training.tasks.token_classification import count_correct_spans
from pretraining.finetuning.training import batch_logits

Logits = NDArray[np.float32]


@torch.inference_mode()
def predict(model: nn.Module, examples: Sequence[EncodedExample], batch_size: int = 64) -> list[Logits]:
    """The logits of each example: (class) of a classifier, (word, class) of a tagger at each word's first token."""
    model.eval()
    predictions: list[Logits] = [np.empty(0, np.float32)] * len(examples)
    for batch in iterate_batches(examples, batch_size):
        logits = batch_logits(model, batch).float().cpu().numpy()
        for row, index in enumerate(batch.indices):
            predictions[index] = logits[row] if logits.ndim == 2 else logits[row, examples[index].labelled_positions]
    return predictions


def count_correct(
    examples: Sequence[EncodedExample], logits: Sequence[Logits], labels: Sequence[str], *, tags: bool
) -> Counts:
    """Correct classes of a classifier, or correct entities (same span, same type) of a tagger."""
    predictions = [example_logits.argmax(-1) for example_logits in logits]
    if not tags:
        correct = [float(label == example.labels[0]) for label, example in zip(predictions, examples, strict=True)]
        return Counts(np.array(correct), np.ones(len(correct)))
    gold = [[labels[int(label)] for label in example.labels[example.labelled_positions]] for example in examples]
    return count_correct_spans(gold, [[labels[int(label)] for label in word_labels] for word_labels in predictions])
