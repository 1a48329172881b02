"""Sentence tasks x all layers x five seeds: our classifiers, all at once, against scikit-learn's in a loop.

Both sides have the same standardised features, the same examples (each seed leaves out another 15 % of training), the
same penalty. Ours stop at the tolerance that probes have (equal accuracy) and at a closer one (nearly equal loss),
scikit-learn at its own. Recording is not counted. Beside the times are the accuracies on the test and how much the
penalised loss that they reach is above scikit-learn's, as a share of it.

Then both sides fit the four penalties that probes have. Ours mix them by how likely each makes what the seed leaves
out, scikit-learn's side takes the one that makes it likeliest.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.linear_model import LogisticRegression  # here, so that its import is in no time
from threadpoolctl import threadpool_limits

from bertology.analyses.probes.sentence import sentence_examples
from bertology.analyses.probing.fitting import L2_MULTIPLIERS, LINEAR_MAX_ITERATIONS, LINEAR_TOLERANCE, PRIOR_ONLY_L2
from bertology.corpus.probing_tasks import probing_tasks
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.numerics.batched_classifier import UNUSED_LABEL, ClassifierConfig, fit_classifiers
from bertology.recording.recorder import record
from timing import Time, measure_time

Numbers = NDArray[Any]
Found = TypeVar("Found")

TARGET = 5.0
TOLERANCES = (LINEAR_TOLERANCE, 1e-4)
ROUNDS = 2
SEEDS = 5
STRENGTH = 20.0
WIDTH = 24


@dataclass(frozen=True)
class Material:
    """(layer, sentence, width) to train and test on; (seed, sentence) labels learned, and left out; those to test."""

    known: Numbers
    new: Numbers
    labels: Numbers
    held: Numbers
    gold: Numbers
    classes: int

    @property
    def penalty(self) -> float:
        """Of the mean loss: twenty times the usual prior of logistic regression, which is too weak here."""
        return STRENGTH / self.learned

    @property
    def penalties(self) -> tuple[float, ...]:
        """What probes choose from."""
        return (*(weight / self.learned for weight in L2_MULTIPLIERS), PRIOR_ONLY_L2)

    @property
    def learned(self) -> int:
        """How many sentences a seed learns from."""
        return int((self.labels[0] != UNUSED_LABEL).sum())


@dataclass(frozen=True)
class Fitted:
    """What a side found: (layer, seed) accuracy on the test, and weights and bias by class on standardised features."""

    right: Numbers
    weights: Numbers
    bias: Numbers

    def losses(self, material: Material) -> Numbers:
        """(layer, seed) penalised loss on what was learned from, in double precision."""
        found = np.zeros(self.right.shape)
        for layer, known in enumerate(material.known.astype(np.float64)):
            x = (known - known.mean(0)) / known.std(0)
            for seed, labels in enumerate(material.labels):
                used = np.flatnonzero(labels != UNUSED_LABEL)
                logs: Numbers = log_softmax(x[used] @ self.weights[layer, seed].T + self.bias[layer, seed], 1)
                squared = np.square(self.weights[layer, seed], dtype=np.float64).sum()
                found[layer, seed] = -logs[np.arange(len(used)), labels[used]].mean()
                found[layer, seed] += material.penalty / 2 * squared
        return found


def compare(encoder: Encoder, corpus: str, chosen: Sequence[str], limit: int, threads: int) -> None:
    """Print a line for each task and what all of them took together."""
    with threadpool_limits(threads):
        _compare(encoder, corpus, chosen, limit)


def _compare(encoder: Encoder, corpus: str, chosen: Sequence[str], limit: int) -> None:
    print(f"\nsentence: {encoder.name}, {encoder.layers + 1} layers, {SEEDS} seeds")
    sides = "".join(f"{f'ours {tolerance:.0e}':>13}{'ratio':>6}{'accuracy':>10}{'loss':>9}" for tolerance in TOLERANCES)
    print(f"{'task':<{WIDTH}}{'sentences':>10}{'classes':>8}{'sklearn':>9}{'accuracy':>10}{sides}")
    total = dict.fromkeys((0.0, *TOLERANCES), 0.0)
    made: dict[str, Material] = {}
    for name in chosen or list(probing_tasks()):
        try:
            material = made[name] = _material(encoder, f"tasks:{name}:{corpus}", limit)
        except Refusal as refusal:
            print(f"{name:<{WIDTH}}not made: {refusal.problem}")
            continue
        # In turn, and each side the better of two times: what others do on the machine disturbs all alike.
        sides = {0.0: _sklearn} | {tolerance: partial(_ours, tolerance=tolerance) for tolerance in TOLERANCES}
        runs = [{key: _timed(partial(side, material)) for key, side in sides.items()} for _ in range(ROUNDS)]
        seconds = {key: min(run[key][0].cpu for run in runs) for key in sides}
        theirs = runs[0][0.0][1]
        line = f"{name:<{WIDTH}}{material.known.shape[1]:>10}{material.classes:>8}{seconds[0.0]:>9.2f}"
        line += f"{theirs.right.mean():>10.4f}"
        for tolerance in TOLERANCES:
            own = runs[0][tolerance][1]
            above = (own.losses(material) / theirs.losses(material) - 1).mean()
            line += f"{seconds[tolerance]:>13.2f}{seconds[0.0] / seconds[tolerance]:>6.1f}"
            line += f"{own.right.mean():>10.4f}{above:>9.0e}"
        print(line, flush=True)
        total = {key: total[key] + taken for key, taken in seconds.items()}
    for tolerance in TOLERANCES:
        times = total[0.0] / max(total[tolerance], 1e-9)
        print(f"target: at least {TARGET:.0f} x less processor time; with {tolerance:.0e} {times:.1f} x over all tasks")
    _compare_choosing(made)


def _compare_choosing(made: dict[str, Material]) -> None:
    """The same with four penalties."""
    ours = f"{f'ours {LINEAR_TOLERANCE:.0e}':>13}{'ratio':>6}{'accuracy':>10}"
    print(f"\n{'four penalties':<{WIDTH}}{'sklearn':>9}{'accuracy':>10}{ours}")
    total = np.zeros(2)
    for name, material in made.items():
        (theirs, those), (taken, own) = (
            _timed(partial(side, material)) for side in (_sklearn_choosing, _ours_choosing)
        )
        print(f"{name:<{WIDTH}}{theirs.cpu:>9.2f}{those.mean():>10.4f}", end="")
        print(f"{taken.cpu:>13.2f}{theirs.cpu / taken.cpu:>6.1f}{own.mean():>10.4f}", flush=True)
        total += theirs.cpu, taken.cpu
    print(f"with {LINEAR_TOLERANCE:.0e} {total[0] / max(total[1], 1e-9):.1f} x over all tasks")


def _timed(run: Callable[[], Found]) -> tuple[Time, Found]:
    kept: list[Found] = []
    return measure_time(lambda: kept.append(run())), kept[0]


def _material(encoder: Encoder, name: str, limit: int) -> Material:
    corpus = load_corpus(name, limit=limit or None)
    recording = record(encoder, corpus, ("hidden",))
    sources = [corpus[entry.example_index].source for entry in recording.inputs]
    parts = [
        sentence_examples(recording, [p for p, source in enumerate(sources) if (source == "test") == test], "mean")
        for test in (False, True)
    ]
    names = sorted(set(parts[0].labels.tolist()))
    numbers = [np.array([names.index(label) for label in part.labels.tolist()]) for part in parts]
    generator = np.random.default_rng(0)
    left_out = generator.random((SEEDS, len(numbers[0]))) < 0.15
    learned, held = (np.where(without, UNUSED_LABEL, numbers[0]) for without in (left_out, ~left_out))
    return Material(parts[0].features, parts[1].features, learned, held, numbers[1], len(names))


def _ours(material: Material, *, tolerance: float) -> Fitted:
    recipe = ClassifierConfig(
        l2_penalties=(material.penalty,), max_iterations=LINEAR_MAX_ITERATIONS, tolerance=tolerance
    )
    found = fit_classifiers(material.known, material.labels, material.classes, recipe)
    right = (found.predict(material.new) == material.gold).mean(-1)
    return Fitted(right, found.weights.numpy(), found.parameters[..., -material.classes :].numpy())


def _ours_choosing(material: Material) -> Numbers:
    """(layer, seed) accuracies."""
    recipe = ClassifierConfig(
        l2_penalties=material.penalties, max_iterations=LINEAR_MAX_ITERATIONS, tolerance=LINEAR_TOLERANCE
    )
    found = fit_classifiers(material.known, material.labels, material.classes, recipe, validation_labels=material.held)
    return (found.predict(material.new) == material.gold).mean(-1)


def _regression(x: Numbers, labels: Numbers, penalty: float, classes: int) -> Any:
    """One model of scikit-learn's."""
    # Of two classes ours penalise both weight vectors, which are opposite halves of the one there is here.
    model = LogisticRegression(C=(2 if classes == 2 else 1) / (penalty * len(x)), max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(x, labels)


def _standardised(material: Material) -> Iterator[tuple[int, Numbers, Numbers]]:
    """Each layer, and its features to train and test on."""
    for layer, (known, new) in enumerate(zip(material.known, material.new, strict=True)):
        mean, spread = known.mean(0), known.std(0)
        yield layer, (known - mean) / spread, (new - mean) / spread


def _sklearn_choosing(material: Material) -> Numbers:
    """(layer, seed) accuracies of the models whose penalty makes what is left out likeliest."""
    right = np.zeros((len(material.known), SEEDS))
    for layer, known, new in _standardised(material):
        for seed, (labels, held) in enumerate(zip(material.labels, material.held, strict=True)):
            used, out = labels != UNUSED_LABEL, held != UNUSED_LABEL
            models = [_regression(known[used], labels[used], one, material.classes) for one in material.penalties]
            logs = [np.log(model.predict_proba(known[out]) + 1e-30) for model in models]
            likely = [own[np.arange(out.sum()), held[out]].sum() for own in logs]
            right[layer, seed] = (models[int(np.argmax(likely))].predict(new) == material.gold).mean()
    return right


def _sklearn(material: Material) -> Fitted:
    layers, _, width = material.known.shape
    right = np.zeros((layers, SEEDS))
    weights = np.zeros((layers, SEEDS, material.classes, width))
    bias = np.zeros((layers, SEEDS, material.classes))
    for layer, known, new in _standardised(material):
        for seed, labels in enumerate(material.labels):
            used = labels != UNUSED_LABEL
            model = _regression(known[used], labels[used], material.penalty, material.classes)
            right[layer, seed] = (model.predict(new) == material.gold).mean()
            halves = np.array([[-0.5], [0.5]]) if material.classes == 2 else 1.0
            weights[layer, seed], bias[layer, seed] = halves * model.coef_, np.ravel(halves * model.intercept_)
    return Fitted(right, weights, bias)
