"""The curve that every probe of one label tells: how well, how selectively and in how few bits each layer tells it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.measures.probes.code_lengths import online
from bertology.measures.probes.probe_material import Task
from bertology.measures.probes.probe_scores import (
    Answers,
    Setting,
    accuracy,
    answers,
    by_type,
    everywhere,
    macro_f1,
    majority,
    selectivity,
)
from bertology.results.estimate import Estimates
from bertology.results.sampling import over_seeds
from bertology.results.shapes import LayerCurve
from bertology.results.spread import BY_SEED

ACCURACY, F1, SELECTIVITY, COMPRESSION = "accuracy", "macro F1", "selectivity", "compression"


def probe_curve(task: Task, fresh: Task | None, setting: Setting, *, seed: int, cases: str, type: str) -> LayerCurve:
    """Accuracy, macro-averaged F1, selectivity and compression by layer, with all their baselines.

    `fresh` is the same task on the model with random weights; `cases` names what is labelled, `type` what a control
    label belongs to.
    """
    told, control = answers(task, setting)
    assert control is not None
    measures = _scored(task, told, seed)
    measures[SELECTIVITY] = selectivity(task, told, control, seed)
    bits, counted = online(task, setting)
    measures[COMPRESSION] = compression(task, bits[0], counted)
    layers = len(told.said)
    baselines: dict[str, dict[str, Estimates]] = {}
    for name, rule in (("majority", majority(task)), (f"most frequent label of the {type}", by_type(task))):
        baselines[name] = {key: everywhere(one, layers) for key, one in _scored(task, rule, seed).items()}
    baselines["control labels"] = {
        ACCURACY: accuracy(task, control, seed),
        COMPRESSION: compression(task, bits[1], counted),
        SELECTIVITY: Estimates.exact(np.zeros(layers)),
    }
    baselines["label frequencies"] = {COMPRESSION: Estimates.exact(np.full(layers, by_frequency(task)))}
    if fresh is not None:
        baselines["random weights"] = _of_fresh(fresh, setting, seed)
    return LayerCurve(measures=measures, baselines=baselines, units=_units(task, cases, type))


def compression(task: Task, bits: NDArray[Any], counted: NDArray[Any]) -> Estimates:
    """(layer,) how many times shorter than the uniform code (seed, layer) bits of so many labels are."""
    return over_seeds(counted[:, None] * np.log2(len(task.labels)) / bits)


def _scored(task: Task, given: Answers, seed: int) -> dict[str, Estimates]:
    return {ACCURACY: accuracy(task, given, seed), F1: macro_f1(task, given, seed)}


def _of_fresh(task: Task, setting: Setting, seed: int) -> dict[str, Estimates]:
    told, control = answers(task, setting)
    assert control is not None
    return _scored(task, told, seed) | {SELECTIVITY: selectivity(task, told, control, seed)}


def by_frequency(task: Task) -> float:
    """The compression of a code that knows how frequent each label is, and nothing of the states."""
    shares = np.diff([0.0, *task.edges, 1.0])
    return float(np.log2(len(shares)) / -(shares * np.log2(shares)).sum())


def _units(task: Task, cases: str, type: str) -> dict[str, str]:
    return {
        ACCURACY: f"share of {cases}, 0 to 1 ({task.sizes})",
        F1: f"mean over labels, 0 to 1, of {cases}",
        SELECTIVITY: f"accuracy less that on labels drawn for each {type}, 0 for one that could be memorised"
        f"{task.not_drawn}",
        COMPRESSION: "bits of the uniform code over bits of the online code, 1 where the states tell nothing"
        f"{task.not_drawn}; {BY_SEED}",
    }
