"""Predictions of a partner, and counts of correct ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bertology.estimates.metrics import Counts
from bertology.training.encoded_examples import EncodedExample, iterate_batches
from bertology.training.tasks.token_classification import count_correct_spans
from pretraining.partners.loop import logits_of

Logits = NDArray[np.float32]


@torch.inference_mode()
def predict(model: nn.Module, examples: Sequence[EncodedExample], size: int = 64) -> list[Logits]:
    """The logits of each example: (class) of a classifier, (word, class) of a tagger at each word's first piece."""
    model.eval()
    found: list[Logits] = [np.empty(0, np.float32)] * len(examples)
    for batch in iterate_batches(examples, size):
        logits = logits_of(model, batch).float().cpu().numpy()
        for row, place in enumerate(batch.indices):
            found[place] = logits[row] if logits.ndim == 2 else logits[row, examples[place].labelled_positions]
    return found


def count(examples: Sequence[EncodedExample], logits: Sequence[Logits], labels: Sequence[str], *, tags: bool) -> Counts:
    """Right classes of a classifier, or right names (same words, same kind) of a tagger."""
    answers = [one.argmax(-1) for one in logits]
    if not tags:
        right = [float(answer == example.labels[0]) for answer, example in zip(answers, examples, strict=True)]
        return Counts(np.array(right), np.ones(len(right)))
    gold = [[labels[int(place)] for place in example.labels[example.labelled_positions]] for example in examples]
    return count_correct_spans(gold, [[labels[int(place)] for place in one] for one in answers])
