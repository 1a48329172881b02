"""How good is it, and how sure is that? One number an example, so that every interval is a bootstrap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from bertology.corpus.bio import decode
from bertology.maths.resampling import bootstrap_ratio
from pretraining.partners.examples import Example, batches
from pretraining.partners.loop import logits_of

Logits = NDArray[np.float32]


@dataclass(frozen=True)
class Counts:
    """For each item what was right, and of how much: 1 of 1 for a class, 2 TP of TP + FP and TP + FN for names."""

    right: NDArray[np.float64]
    of: NDArray[np.float64]

    @property
    def value(self) -> float:
        """Accuracy, or micro F1 of names; 0 where there is nothing to be right about."""
        return float(self.right.sum() / self.of.sum()) if self.of.sum() else 0.0


@dataclass(frozen=True)
class Figure:
    """A share between 0 and 1 with the 95 % interval of a bootstrap over n items."""

    value: float
    low: float
    high: float
    n: int


def figure(counts: Counts) -> Figure:
    """The value of these counts with its interval."""
    value, low, high, _ = bootstrap_ratio(counts.right, counts.of, seed=0)
    return Figure(float(value), float(low), float(high), len(counts.right))


@torch.inference_mode()
def predict(model: nn.Module, examples: Sequence[Example], size: int = 64) -> list[Logits]:
    """The logits of each example: (class) of a classifier, (word, class) of a tagger at each word's first piece."""
    model.eval()
    found: list[Logits] = [np.empty(0, np.float32)] * len(examples)
    for batch in batches(examples, size):
        logits = logits_of(model, batch).float().cpu().numpy()
        for row, place in enumerate(batch.places):
            found[place] = logits[row] if logits.ndim == 2 else logits[row, examples[place].words]
    return found


def count(examples: Sequence[Example], logits: Sequence[Logits], labels: Sequence[str], *, tags: bool) -> Counts:
    """Right classes of a classifier, or right names (same words, same kind) of a tagger."""
    answers = [one.argmax(-1) for one in logits]
    if not tags:
        right = [float(answer == example.labels[0]) for answer, example in zip(answers, examples, strict=True)]
        return Counts(np.array(right), np.ones(len(right)))
    gold = [[labels[int(place)] for place in example.labels[example.words]] for example in examples]
    return count_names(gold, [[labels[int(place)] for place in one] for one in answers])


def count_names(gold: Sequence[Sequence[str]], tags: Sequence[Sequence[str]]) -> Counts:
    """Names found by tags; an I that continues nothing begins a name, as the CoNLL script has it."""
    right: list[float] = []
    of: list[float] = []
    for wanted, given in zip(gold, tags, strict=True):
        true, found = (set(decode(some, scheme="iob1")) for some in (wanted, given))
        right.append(2.0 * len(true & found))
        of.append(float(len(true) + len(found)))
    return Counts(np.array(right), np.array(of))
