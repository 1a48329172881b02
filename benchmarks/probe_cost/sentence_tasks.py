"""Sentence tasks x all layers x five seeds: bertology's batched classifiers compared with scikit-learn's in a loop.

Both have the same standardised features, the same examples (each seed holds out another 15 % of the training set) and
the same penalty. Bertology's stop at the tolerance of the probes (equal accuracy) and at a lower one (nearly equal
loss), scikit-learn's at its default. Recording is not timed. The table also has the test accuracies and the relative
excess of bertology's penalised loss over scikit-learn's.

Then both fit the four penalties of the probes. Bertology averages them by their likelihood on the held-out examples,
the loop selects the one with the highest likelihood.
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
from sklearn.linear_model import LogisticRegression  # imported here, so that its import is not timed
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

Array = NDArray[Any]
Result = TypeVar("Result")

TARGET = 5.0
TOLERANCES = (LINEAR_TOLERANCE, 1e-4)
ROUNDS = 2
SEEDS = 5
L2_MULTIPLIER = 20.0
NAME_WIDTH = 24


@dataclass(frozen=True)
class ProbeData:
    """(layer, sentence, width) features, (seed, sentence) training and validation labels, and test labels."""

    train_features: Array
    test_features: Array
    train_labels: Array
    validation_labels: Array
    test_labels: Array
    n_classes: int

    @property
    def penalty(self) -> float:
        """The L2 penalty of the mean loss: twenty times scikit-learn's default, which is too weak here."""
        return L2_MULTIPLIER / self.n_train

    @property
    def penalties(self) -> tuple[float, ...]:
        """The penalties of the probes."""
        return (*(weight / self.n_train for weight in L2_MULTIPLIERS), PRIOR_ONLY_L2)

    @property
    def n_train(self) -> int:
        """The number of training sentences of a seed."""
        return int((self.train_labels[0] != UNUSED_LABEL).sum())


@dataclass(frozen=True)
class FittedClassifiers:
    """(layer, seed) test accuracies, and the weights and biases for standardised features."""

    accuracy: Array
    weights: Array
    bias: Array

    def losses(self, data: ProbeData) -> Array:
        """(layer, seed) penalised training loss in double precision."""
        losses = np.zeros(self.accuracy.shape)
        for layer, features in enumerate(data.train_features.astype(np.float64)):
            x = (features - features.mean(0)) / features.std(0)
            for seed, labels in enumerate(data.train_labels):
                used = np.flatnonzero(labels != UNUSED_LABEL)
                log_probabilities: Array = log_softmax(
                    x[used] @ self.weights[layer, seed].T + self.bias[layer, seed], 1
                )
                squared = np.square(self.weights[layer, seed], dtype=np.float64).sum()
                losses[layer, seed] = -log_probabilities[np.arange(len(used)), labels[used]].mean()
                losses[layer, seed] += data.penalty / 2 * squared
        return losses


def compare(encoder: Encoder, corpus: str, tasks: Sequence[str], limit: int, threads: int) -> None:
    """Print a line for each task and the total time."""
    with threadpool_limits(threads):
        _compare(encoder, corpus, tasks, limit)


def _compare(encoder: Encoder, corpus: str, tasks: Sequence[str], limit: int) -> None:
    print(f"\nsentence: {encoder.name}, {encoder.layers + 1} layers, {SEEDS} seeds")
    sides = "".join(
        f"{f'bertology {tolerance:.0e}':>16}{'ratio':>6}{'accuracy':>10}{'loss':>9}" for tolerance in TOLERANCES
    )
    print(f"{'task':<{NAME_WIDTH}}{'sentences':>10}{'classes':>8}{'sklearn':>9}{'accuracy':>10}{sides}")
    total = dict.fromkeys((0.0, *TOLERANCES), 0.0)
    data_by_task: dict[str, ProbeData] = {}
    for name in tasks or list(probing_tasks()):
        try:
            data = data_by_task[name] = _probe_data(encoder, f"tasks:{name}:{corpus}", limit)
        except Refusal as refusal:
            print(f"{name:<{NAME_WIDTH}}skipped: {refusal.problem}")
            continue
        # Alternating, and the better of two times each: other load on the machine affects all equally.
        methods = {0.0: _fit_sklearn} | {
            tolerance: partial(_fit_bertology, tolerance=tolerance) for tolerance in TOLERANCES
        }
        runs = [{key: _time(partial(method, data)) for key, method in methods.items()} for _ in range(ROUNDS)]
        seconds = {key: min(run[key][0].cpu for run in runs) for key in methods}
        sklearn = runs[0][0.0][1]
        line = f"{name:<{NAME_WIDTH}}{data.train_features.shape[1]:>10}{data.n_classes:>8}{seconds[0.0]:>9.2f}"
        line += f"{sklearn.accuracy.mean():>10.4f}"
        for tolerance in TOLERANCES:
            bertology = runs[0][tolerance][1]
            excess = (bertology.losses(data) / sklearn.losses(data) - 1).mean()
            line += f"{seconds[tolerance]:>16.2f}{seconds[0.0] / seconds[tolerance]:>6.1f}"
            line += f"{bertology.accuracy.mean():>10.4f}{excess:>9.0e}"
        print(line, flush=True)
        total = {key: total[key] + time for key, time in seconds.items()}
    for tolerance in TOLERANCES:
        ratio = total[0.0] / max(total[tolerance], 1e-9)
        print(f"target: at least {TARGET:.0f} x less processor time; with {tolerance:.0e} {ratio:.1f} x over all tasks")
    _compare_penalty_selection(data_by_task)


def _compare_penalty_selection(data_by_task: dict[str, ProbeData]) -> None:
    """The same comparison with four penalties."""
    ours = f"{f'bertology {LINEAR_TOLERANCE:.0e}':>16}{'ratio':>6}{'accuracy':>10}"
    print(f"\n{'four penalties':<{NAME_WIDTH}}{'sklearn':>9}{'accuracy':>10}{ours}")
    total = np.zeros(2)
    for name, data in data_by_task.items():
        (sklearn_time, sklearn), (bertology_time, bertology) = (
            _time(partial(method, data)) for method in (_sklearn_accuracies, _bertology_accuracies)
        )
        print(f"{name:<{NAME_WIDTH}}{sklearn_time.cpu:>9.2f}{sklearn.mean():>10.4f}", end="")
        print(
            f"{bertology_time.cpu:>16.2f}{sklearn_time.cpu / bertology_time.cpu:>6.1f}{bertology.mean():>10.4f}",
            flush=True,
        )
        total += sklearn_time.cpu, bertology_time.cpu
    print(f"with {LINEAR_TOLERANCE:.0e} {total[0] / max(total[1], 1e-9):.1f} x over all tasks")


def _time(run: Callable[[], Result]) -> tuple[Time, Result]:
    results: list[Result] = []
    return measure_time(lambda: results.append(run())), results[0]


def _probe_data(encoder: Encoder, name: str, limit: int) -> ProbeData:
    corpus = load_corpus(name, limit=limit or None)
    recording = record(encoder, corpus, ("hidden",))
    sources = [corpus[recorded.example_index].source for recorded in recording.inputs]
    train_test = [
        sentence_examples(
            recording, [index for index, source in enumerate(sources) if (source == "test") == test], "mean"
        )
        for test in (False, True)
    ]
    names = sorted(set(train_test[0].labels.tolist()))
    label_ids = [np.array([names.index(label) for label in part.labels.tolist()]) for part in train_test]
    generator = np.random.default_rng(0)
    is_held_out = generator.random((SEEDS, len(label_ids[0]))) < 0.15
    train, validation = (np.where(is_unused, UNUSED_LABEL, label_ids[0]) for is_unused in (is_held_out, ~is_held_out))
    return ProbeData(train_test[0].features, train_test[1].features, train, validation, label_ids[1], len(names))


def _fit_bertology(data: ProbeData, *, tolerance: float) -> FittedClassifiers:
    config = ClassifierConfig(l2_penalties=(data.penalty,), max_iterations=LINEAR_MAX_ITERATIONS, tolerance=tolerance)
    classifiers = fit_classifiers(data.train_features, data.train_labels, data.n_classes, config)
    accuracy = (classifiers.predict(data.test_features) == data.test_labels).mean(-1)
    return FittedClassifiers(
        accuracy, classifiers.weights.numpy(), classifiers.parameters[..., -data.n_classes :].numpy()
    )


def _bertology_accuracies(data: ProbeData) -> Array:
    """(layer, seed) accuracies."""
    config = ClassifierConfig(
        l2_penalties=data.penalties, max_iterations=LINEAR_MAX_ITERATIONS, tolerance=LINEAR_TOLERANCE
    )
    classifiers = fit_classifiers(
        data.train_features, data.train_labels, data.n_classes, config, validation_labels=data.validation_labels
    )
    return (classifiers.predict(data.test_features) == data.test_labels).mean(-1)


def _regression(x: Array, labels: Array, penalty: float, n_classes: int) -> Any:
    """One classifier of scikit-learn."""
    # With two classes bertology penalises two opposite weight vectors, each half of the one that scikit-learn has.
    model = LogisticRegression(C=(2 if n_classes == 2 else 1) / (penalty * len(x)), max_iter=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(x, labels)


def _standardised(data: ProbeData) -> Iterator[tuple[int, Array, Array]]:
    """Each layer with its standardised training and test features."""
    for layer, (train, test) in enumerate(zip(data.train_features, data.test_features, strict=True)):
        mean, std = train.mean(0), train.std(0)
        yield layer, (train - mean) / std, (test - mean) / std


def _sklearn_accuracies(data: ProbeData) -> Array:
    """(layer, seed) accuracies with the penalty of the highest validation likelihood."""
    accuracy = np.zeros((len(data.train_features), SEEDS))
    for layer, train, test in _standardised(data):
        for seed, (labels, validation) in enumerate(zip(data.train_labels, data.validation_labels, strict=True)):
            used, held_out = labels != UNUSED_LABEL, validation != UNUSED_LABEL
            models = [_regression(train[used], labels[used], penalty, data.n_classes) for penalty in data.penalties]
            log_probabilities = [np.log(model.predict_proba(train[held_out]) + 1e-30) for model in models]
            likelihoods = [each[np.arange(held_out.sum()), validation[held_out]].sum() for each in log_probabilities]
            accuracy[layer, seed] = (models[int(np.argmax(likelihoods))].predict(test) == data.test_labels).mean()
    return accuracy


def _fit_sklearn(data: ProbeData) -> FittedClassifiers:
    layers, _, width = data.train_features.shape
    accuracy = np.zeros((layers, SEEDS))
    weights = np.zeros((layers, SEEDS, data.n_classes, width))
    bias = np.zeros((layers, SEEDS, data.n_classes))
    for layer, train, test in _standardised(data):
        for seed, labels in enumerate(data.train_labels):
            used = labels != UNUSED_LABEL
            model = _regression(train[used], labels[used], data.penalty, data.n_classes)
            accuracy[layer, seed] = (model.predict(test) == data.test_labels).mean()
            halves = np.array([[-0.5], [0.5]]) if data.n_classes == 2 else 1.0
            weights[layer, seed], bias[layer, seed] = halves * model.coef_, np.ravel(halves * model.intercept_)
    return FittedClassifiers(accuracy, weights, bias)
