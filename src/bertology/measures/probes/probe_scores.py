"""Fit probes on all layers, seeds and labellings at once, and score what they answer on the test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertology.errors import Refusal
from bertology.measures.probes.control_labels import random_labels
from bertology.measures.probes.probe_material import Task, held_out
from bertology.results.estimate import Estimates
from bertology.results.sampling import over_sentences_and_seeds

if TYPE_CHECKING:
    from bertology.maths.classifier import Classifiers, Form, Recipe

Numbers = NDArray[Any]

WEIGHED = (1.0, 20.0, 400.0)
"""Penalties as multiples of one over the number of cases, the first being the usual prior of logistic regression."""

FLAT = 10.0
"""A penalty that leaves hardly more than how frequent each label is: for states that tell nothing."""

TOLERANCE = 1e-3
ITERATIONS = PATIENCE = 100
"""Held-out documents can be unlike the others: their loss may rise for dozens of steps before it falls."""

SOLVED, STEPS = 2e-4, 300
"""The tolerance of linear probes, at which their answers no longer change much, and more iterations than they take."""

FORMS: dict[str, tuple[Form, int, int]] = {
    "linear": ("linear", 0, 0),
    "rank": ("rank", 1, 1),
    "bilinear": ("bilinear", 1, 1),
    "mlp": ("mlp", 1, 2),
}
"""Each form by its name, and how many sizes it is given: at least, at most."""

HELD = 0.15
"""The share of the training documents that a probe holds out; another seed holds out others."""


@dataclass(frozen=True)
class Setting:
    """How probes are fitted: what they are, and the seeds of their first weights, held-out part and control labels."""

    recipe: Recipe
    seeds: tuple[int, ...]


def recipe_named(text: str) -> Recipe:
    """From linear, rank:10, mlp:50, mlp:50:50 or bilinear:20."""
    from bertology.maths.classifier import Recipe

    name, *sizes = text.strip().split(":")
    numbers = tuple(int(size) for size in sizes if size.isdigit() and int(size) > 0)
    form, fewest, most = FORMS.get(name, ("linear", 0, -1))
    if len(numbers) != len(sizes) or not fewest <= len(numbers) <= most:
        raise Refusal(
            f"There is no probe called {text!r}",
            "linear, rank:N, mlp:N, mlp:N:N or bilinear:N, N being a number of units",
            "Give one of these with --probe",
        )
    if form == "linear":
        return Recipe(form, iterations=STEPS, tolerance=SOLVED)
    return Recipe(form, numbers, iterations=ITERATIONS, patience=PATIENCE, tolerance=TOLERANCE)


def setting_of(probe: str, seeds: int, seed: int) -> Setting:
    """The setting of the options that all probes share."""
    return Setting(recipe_named(probe), tuple(range(seed, seed + seeds)))


def fitted(
    features: Numbers, labels: Numbers, held: NDArray[np.bool_], classes: int, recipe: Recipe, seeds: tuple[int, ...]
) -> Classifiers:
    """Classifiers of (layer, case, width), one for each row of (problem, case) labels; `held` is (problem, case).

    Linear ones mix three penalties that weigh less the more cases there are, and one that leaves nothing but the
    frequencies, by how likely each makes what is held out; others have the lightest and are kept where they were best.
    """
    from bertology.maths.classifier import UNUSED, fit

    cases = max(1, int((~held).sum(1).min()))
    own = tuple(min(FLAT, weight / cases) for weight in WEIGHED)
    penalties = (*own, FLAT) if recipe.form == "linear" else own[:1]
    return fit(
        features,
        np.where(held, UNUSED, labels),
        classes,
        replace(recipe, penalties=penalties),
        held=np.where(held, labels, UNUSED),
        seeds=seeds,
    )


@dataclass(frozen=True)
class Answers:
    """What probes say of the test: `said` is (layer, seed, case) and `gold` (seed, case), places of labels."""

    said: Numbers
    gold: Numbers


def control_of(task: Task, types: Numbers, seeds: Sequence[int]) -> Numbers:
    """(seed, case) control labels of the types, in the proportions of the labels in training."""
    return np.stack([random_labels(types, seed, task.edges) for seed in seeds])


def answers(task: Task, setting: Setting, *, control: bool = True) -> tuple[Answers, Answers | None]:
    """What probes answer that have learned the labels, and those that have learned control labels."""
    seeds = setting.seeds
    known = np.tile(task.numbered(task.learned), (len(seeds), 1))
    gold = np.tile(task.numbered(task.tested), (len(seeds), 1))
    if control:
        known = np.concatenate([known, control_of(task, task.learned.type, seeds)])
        gold = np.concatenate([gold, control_of(task, task.tested.type, seeds)])
    held = np.stack([held_out(task.learned, HELD, seed) for seed in seeds])
    kinds = len(known) // len(seeds)
    found = fitted(
        task.learned.features, known, np.tile(held, (kinds, 1)), len(task.labels), setting.recipe, seeds * kinds
    )
    said = found.predict(task.tested.features)
    count = len(seeds)
    other = Answers(said[:, count:], gold[count:]) if control else None
    return Answers(said[:, :count], gold[:count]), other


def accuracy(task: Task, given: Answers, seed: int) -> Estimates:
    """(layer,) the share of cases that are right."""
    return over_sentences_and_seeds(_hits(task, given), _share, seed=seed)


def selectivity(task: Task, given: Answers, control: Answers, seed: int) -> Estimates:
    """(layer,) the accuracy less that on control labels, on the same sentences and seeds."""
    ours, theirs = _hits(task, given), _hits(task, control)
    both = np.concatenate([ours[..., :1] - theirs[..., :1], ours[..., 1:]], -1)
    return over_sentences_and_seeds(both, _share, seed=seed)


def macro_f1(task: Task, given: Answers, seed: int) -> Estimates:
    """(layer,) the mean over labels of F1, over those labels that the test has."""
    layers, runs, _ = given.said.shape
    sentences = len(task.tested.entries)
    sums = np.zeros((runs, sentences, layers, len(task.labels), 2))
    places = np.broadcast_to(task.tested.entry, given.gold.shape)
    which = np.broadcast_to(np.arange(runs)[:, None], given.gold.shape)
    for layer in range(layers):
        own, said = sums[:, :, layer], given.said[layer]
        right = given.gold == said
        for labels, kept, side in ((given.gold, right, 0), (given.gold, True, 1), (said, True, 1)):
            cells = np.ravel_multi_index((which, places, labels), (runs, sentences, len(task.labels)))
            times = (1 + (side == 0)) * np.broadcast_to(kept, labels.shape).astype(np.float64)
            counted = np.bincount(cells.ravel(), times.ravel(), minlength=runs * sentences * len(task.labels))
            own[..., side] += counted.reshape(runs, sentences, len(task.labels))
    there = np.isin(np.arange(len(task.labels)), given.gold)
    sums = sums[:, np.isin(np.arange(sentences), task.tested.entry)][..., there, :]
    return over_sentences_and_seeds(sums, _mean_f1, seed=seed)


def majority(task: Task) -> Answers:
    """The label that is most frequent in training, always."""
    gold = task.numbered(task.tested)[None]
    return Answers(np.zeros((1, *gold.shape), np.int64), gold)


def by_type(task: Task) -> Answers:
    """The label that is most frequent in training for the type, that of all cases for a type not seen there."""
    seen: dict[str, Counter[int]] = {}
    for type, number in zip(task.learned.type.tolist(), task.numbered(task.learned).tolist(), strict=True):
        seen.setdefault(type, Counter())[number] += 1
    best = {type: min(counts, key=lambda one: (-counts[one], one)) for type, counts in seen.items()}
    said = np.array([best.get(type, 0) for type in task.tested.type.tolist()], np.int64)
    return Answers(said[None, None], task.numbered(task.tested)[None])


def everywhere(one: Estimates, layers: int) -> Estimates:
    """The estimate of a rule that sees no layer, beside every layer."""
    return one[0].everywhere((layers,))


def _hits(task: Task, given: Answers) -> Numbers:
    """(seed, sentence, layer, 2): right cases and cases, of the sentences that have any."""
    layers, runs, _ = given.said.shape
    sentences = len(task.tested.entries)
    sums = np.zeros((runs, sentences, layers, 2))
    right = (given.said == given.gold).astype(np.float64).transpose(1, 2, 0)
    for run in range(runs):
        np.add.at(sums[run, ..., 0], task.tested.entry, right[run])
    sums[..., 1] = np.bincount(task.tested.entry, minlength=sentences)[:, None]
    return sums[:, sums[0, :, 0, 1] > 0]


def _share(sums: Numbers) -> Numbers:
    return sums[..., 0] / np.maximum(sums[..., 1], 1)


def _mean_f1(sums: Numbers) -> Numbers:
    return (sums[..., 0] / np.maximum(sums[..., 1], 1)).mean(-1)
