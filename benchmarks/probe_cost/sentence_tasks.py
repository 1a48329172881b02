"""Sentence tasks x all layers x five seeds: our classifiers, all at once, against scikit-learn's in a loop.

Both sides have the same standardised features, the same examples (each seed leaves out another 15 % of training), the
same penalty; ours stop at the tolerance that probes have, scikit-learn at its own. Recording is not counted. Accuracies
on the test are told beside the times.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression  # here, so that its import is in no time

from bertology.analyses.probes.sentence import sentence_examples
from bertology.corpus.builtin import corpus_named
from bertology.corpus.sentence_tasks import tasks
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.maths.classifier import UNUSED, Recipe, fit
from bertology.recording.recorder import record
from timing import Time, measured

Numbers = NDArray[Any]

MARK = 5.0
SEEDS = 5
STRENGTH = 20.0
WIDTH = 24


@dataclass(frozen=True)
class Material:
    """(layer, sentence, width) to train and test on; labels: (seed, sentence) with some left out, and (sentence,)."""

    known: Numbers
    new: Numbers
    labels: Numbers
    gold: Numbers
    classes: int

    @property
    def penalty(self) -> float:
        """Of the mean loss: twenty times the usual prior of logistic regression, which is too weak here."""
        return STRENGTH / int((self.labels[0] != UNUSED).sum())


def compare(encoder: Encoder, corpus: str, chosen: Sequence[str], limit: int) -> None:
    """Print a line for each task and what all of them took together."""
    print(f"\nsentence: {encoder.name}, {encoder.layers + 1} layers, {SEEDS} seeds, one thread")
    print(f"{'task':<{WIDTH}}{'sentences':>10}{'classes':>8}{'ours':>9}{'sklearn':>9}{'ratio':>7}   accuracy of both")
    total = [0.0, 0.0]
    for name in chosen or list(tasks()):
        try:
            material = _material(encoder, f"tasks:{name}:{corpus}", limit)
        except Refusal as refusal:
            print(f"{name:<{WIDTH}}not made: {refusal.found}")
            continue
        (ours, right), (theirs, theirs_right) = (
            _timed(lambda m=material: _ours(m)),
            _timed(lambda m=material: _sklearn(m)),
        )
        total = [total[0] + ours.cpu, total[1] + theirs.cpu]
        print(
            f"{name:<{WIDTH}}{material.known.shape[1]:>10}{material.classes:>8}{ours.cpu:>9.2f}{theirs.cpu:>9.2f}"
            f"{theirs.cpu / ours.cpu:>7.1f}   {right.mean():.4f} {theirs_right.mean():.4f}",
            flush=True,
        )
    print(
        f"mark: at least {MARK:.0f} x less processor time; here {total[1] / max(total[0], 1e-9):.1f} x over all tasks"
    )


def _timed(run: Any) -> tuple[Time, Numbers]:
    kept: list[Numbers] = []
    return measured(lambda: kept.append(run())), kept[0]


def _material(encoder: Encoder, name: str, limit: int) -> Material:
    corpus = corpus_named(name, limit=limit or None)
    recording = record(encoder, corpus, ("hidden",))
    sources = [corpus[entry.item].source for entry in recording.entries]
    parts = [
        sentence_examples(recording, [p for p, source in enumerate(sources) if (source == "test") == test], "mean")
        for test in (False, True)
    ]
    names = sorted(set(parts[0].label.tolist()))
    numbers = [np.array([names.index(label) for label in part.label.tolist()]) for part in parts]
    generator = np.random.default_rng(0)
    left_out = generator.random((SEEDS, len(numbers[0]))) < 0.15
    return Material(
        parts[0].features, parts[1].features, np.where(left_out, UNUSED, numbers[0]), numbers[1], len(names)
    )


def _ours(material: Material) -> Numbers:
    """(layer, seed) accuracy."""
    recipe = Recipe(penalties=(material.penalty,), tolerance=1e-3)
    found = fit(material.known, material.labels, material.classes, recipe)
    return (found.predict(material.new) == material.gold).mean(-1)


def _sklearn(material: Material) -> Numbers:
    right = np.zeros((len(material.known), SEEDS))
    for layer, (known, new) in enumerate(zip(material.known, material.new, strict=True)):
        mean, spread = known.mean(0), known.std(0)
        for seed, labels in enumerate(material.labels):
            used = labels != UNUSED
            # Of two classes ours penalise both weight vectors, which are opposite halves of the one there is here.
            model: Any = LogisticRegression(C=(2 if material.classes == 2 else 1) / STRENGTH, max_iter=1000)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(((known - mean) / spread)[used], labels[used])
            right[layer, seed] = (model.predict((new - mean) / spread) == material.gold).mean()
    return right
