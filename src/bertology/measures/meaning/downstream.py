"""Small models on frozen features: the same for every feature, chosen from the same grid by what a seed holds out.

| task | linear | another |
|---|---|---|
| token | each word's vector | `bilstm-crf`: an LSTM in each direction under a conditional random field |
| sentence | the mean over the words | `cnn`: filters over 3, 4 and 5 words, the largest answer of each |
| pair | u, v, |u - v| and u * v of the two means u and v | |

Features are standardised over all items that may be learnt from, whatever the size: without labels, alike for all.
Linear models choose among four penalties by the score on what is held out, the others between two rates and among ten
moments of training by the loss on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.corpus.corpus import Item
from bertology.errors import Refusal
from bertology.measures.meaning.frozen_vectors import Vectors
from bertology.measures.meaning.lessons import Draw, Lesson

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.maths.stacked_training import Network, Sequences

Learner = Literal["linear", "bilstm-crf", "cnn"]
Floats = NDArray[np.float32]

KNOWN: dict[str, tuple[Learner, ...]] = {
    "token": ("linear", "bilstm-crf"),
    "sentence": ("linear", "cnn"),
    "pair": ("linear",),
}
SETTINGS: dict[Learner, dict[str, Any]] = {
    "linear": {
        "penalties": [1.0, 20.0, 400.0],
        "flat": 10.0,
        "tolerance": 1e-5,
        "chosen by": "score",
        "standardised over": "all",
    },
    "bilstm-crf": {"rates": [2e-3, 1e-2], "units": 32, "passes": 10, "steps": [60, 400], "longest": 512},
    "cnn": {"rates": [1e-3, 5e-3], "filters": 32, "passes": 10, "steps": [60, 400], "longest": 200},
}
"""All that decides what is learnt besides the features and the items: part of what finished work is kept under.

Penalties are multiples of one over the number of examples; `flat` leaves hardly more than how frequent each label is.
Steps are as many batches of 16 as make these passes over the items, within bounds. Words after the `longest` are not
seen.
"""


def learners_named(text: str, task: str) -> Sequence[Learner]:
    """Learners from their names, commas between them, refused where the task has none such."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    found = [learner for name in names for learner in KNOWN[task] if learner == name]
    if not names or len(found) < len(names) or len(set(found)) < len(found):
        raise Refusal(
            f"--learners was given {text!r} for the task {task}",
            f"one or more of: {', '.join(KNOWN[task])}",
            "Give these with commas between them",
        )
    return found  # pyright: ignore[reportReturnType]  # comparing with a string widens the literal


@dataclass(frozen=True)
class Laid:
    """What learners see of one feature: rows of numbers, of which item i has those from `ends[i - 1]` to `ends[i]`."""

    rows: Floats
    ends: NDArray[np.int64]

    def of(self, places: Sequence[int]) -> NDArray[np.int64]:
        """The rows of the items at these places."""
        return np.concatenate([np.arange(self.ends[place - 1] if place else 0, self.ends[place]) for place in places])


def laid_out(lesson: Lesson, vectors: Vectors) -> Laid:
    """Words end to end for tags, else one row an item; those learnt from come first."""
    if lesson.task.name == "token":
        return Laid(np.concatenate(vectors.of), np.cumsum([len(one) for one in vectors.of]))
    means = vectors.means()
    if lesson.task.name == "pair":
        first, second = means[::2], means[1::2]
        means = np.concatenate([first, second, np.abs(first - second), first * second], -1)
    return Laid(means, np.arange(1, len(means) + 1))


def answers(lesson: Lesson, vectors: Vectors, learner: Learner, size: int) -> list[list[Any]]:
    """What a model of each seed that learnt from `size` items says of every item judged: a label, or one a word."""
    said = _linear(lesson, vectors, size) if learner == "linear" else _network(lesson, vectors, learner, size)
    return [_told(lesson, lesson.judged, own) for own in said]


def _told(lesson: Lesson, items: Sequence[Item], numbers: NDArray[np.int64]) -> list[Any]:
    """The labels with these numbers, of words those of each item apart."""
    labels = [lesson.task.labels[number] for number in numbers.tolist()]
    if lesson.task.name != "token":
        return labels
    ends = np.cumsum([len(item.parts[0]) for item in items]).tolist()
    return [labels[start:end] for start, end in pairwise([0, *ends])]


def _linear(lesson: Lesson, vectors: Vectors, size: int) -> list[NDArray[np.int64]]:
    """All seeds and penalties are fitted together; each seed takes its best penalty."""
    from bertology.maths.classifier import UNUSED, Recipe, fit_each

    laid, settings = laid_out(lesson, vectors), SETTINGS["linear"]
    trained = [laid.of(draw.trained[:size]) for draw in lesson.draws]
    gold = lesson.golds[0]
    known = np.full((len(lesson.draws), len(gold)), UNUSED, np.int64)
    for number, own in enumerate(trained):
        known[number, own] = gold[own]
    fewest = min(map(len, trained))
    best = [(-np.inf, -np.inf)] * len(lesson.draws)
    chosen: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * len(lesson.draws)
    penalties = [min(settings["flat"], weight / fewest) for weight in settings["penalties"]]
    recipe = Recipe(penalties=(*penalties, settings["flat"]), tolerance=settings["tolerance"])
    for found in fit_each(laid.rows[: len(gold)][None], known, len(lesson.task.labels), recipe):
        said = found.predict(laid.rows[len(gold) :][None])[0]
        for number, draw in enumerate(lesson.draws):
            rows = laid.of(draw.held)
            watched = _watched(lesson, draw, found.log_chances(laid.rows[rows][None])[0, number], gold[rows])
            if watched > best[number]:
                best[number], chosen[number] = watched, said[number]
    return chosen


def _watched(lesson: Lesson, draw: Draw, logs: NDArray[np.float32], gold: NDArray[np.int64]) -> tuple[float, float]:
    """How good a model is on what a seed holds out: by the score, of equal scores by the chance of the labels."""
    items = [lesson.learnt[place] for place in draw.held]
    counts = lesson.task.counts(items, _told(lesson, items, logs.argmax(-1)))
    return counts.value, float(logs[np.arange(len(gold)), gold].mean())


def _network(lesson: Lesson, vectors: Vectors, learner: Learner, size: int) -> list[NDArray[np.int64]]:
    """All seeds and rates are trained together; each seed takes the rate with the least loss on what it holds out."""
    import torch

    from bertology.maths.stacked_training import Lot, train
    from bertology.maths.stacked_training import answers as said

    settings = SETTINGS[learner]
    given = _sequences(lesson, vectors, settings["longest"])
    network = _made(learner, lesson, settings)
    rates: list[float] = settings["rates"]
    lots = [Lot(draw.trained[:size], draw.held, draw.seed, rate) for draw in lesson.draws for rate in rates]
    low, high = settings["steps"]
    steps = min(high, max(low, settings["passes"] * size // 16))
    parameters, loss = train(network, given, _labels(lesson, given, network.by_step), lots, steps)
    best = loss.reshape(-1, len(rates)).argmin(1) + len(rates) * torch.arange(len(lesson.draws))
    chosen = {name: value[best] for name, value in parameters.items()}
    places = range(len(lesson.learnt), len(lesson.learnt) + len(lesson.judged))
    found = said(network, chosen, given, places)
    return list((torch.cat(found, 1) if network.by_step else torch.stack(found, 1)).numpy())


def _made(learner: Learner, lesson: Lesson, settings: dict[str, Any]) -> Network:
    from bertology.maths.sequence_tagger import SequenceTagger
    from bertology.maths.text_convolution import TextConvolution

    labels = len(lesson.task.labels)
    if learner == "cnn":
        return TextConvolution(labels, settings["filters"])
    return SequenceTagger(labels, settings["units"])


def _sequences(lesson: Lesson, vectors: Vectors, longest: int) -> Sequences:
    """Every item's words, standardised over those learnt from."""
    import torch

    from bertology.maths.stacked_training import Sequences

    if lesson.task.name == "token" and max(map(len, vectors.of)) > longest:
        raise Refusal(
            f"A sentence has {max(map(len, vectors.of))} words", f"at most {longest} for bilstm-crf", "Use linear"
        )
    texts = [rows[:longest] for rows in vectors.of]
    seen = np.concatenate(texts[: len(lesson.learnt)])
    mean, spread = seen.mean(0), seen.std(0)
    spread = np.where(spread <= 1e-6 * np.maximum(np.abs(mean), 1e-6), 1, spread)
    rows = np.concatenate([np.zeros((1, vectors.width), np.float32), (np.concatenate(texts) - mean) / spread])
    lengths = torch.tensor([len(text) for text in texts])
    return Sequences(torch.from_numpy(rows.astype(np.float32)), lengths)


def _labels(lesson: Lesson, given: Sequences, by_step: bool) -> Tensor:
    """The labels as networks see them; those of items judged, which nothing is learnt from, are 0."""
    import torch

    gold = torch.from_numpy(lesson.golds[0])
    if not by_step:
        return torch.cat([gold, torch.zeros(len(lesson.judged), dtype=torch.long)])
    labels = torch.zeros(len(given.vectors), dtype=torch.long)
    labels[1 : 1 + len(gold)] = gold
    return labels
