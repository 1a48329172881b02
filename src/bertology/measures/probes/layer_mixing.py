"""Probes on mixtures of layers: their weights, and what each further layer adds (tenney2019)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertology.encoder.encoder import Encoder
from bertology.measures.division import Division
from bertology.measures.probes.edge_cases import EDGES, Edge, edge_cases
from bertology.measures.probes.probe_material import Task, divided, held_out, task_of
from bertology.measures.probes.probe_scores import HELD, Answers, Setting
from bertology.recording.recording import Recording

Numbers = NDArray[Any]

WEIGHED = 20.0
"""The penalty of a mixture, as a multiple of one over the number of cases."""

TOLERANCE, ITERATIONS = 1e-4, 200
"""Mixtures are solved further than other probes: what a layer adds is a small difference."""

LEAST_GAIN = 0.01
"""Where all layers together add less than this to the first, the expected layer is not told."""


@dataclass(frozen=True)
class Mixed:
    """`cumulative` are the answers of probes on layers 0 to l, (level, seed, case); `weights` (seed, layer) of all."""

    cumulative: Answers
    weights: Numbers

    @property
    def scores(self) -> Numbers:
        """(seed, level) accuracy."""
        return (self.cumulative.said == self.cumulative.gold).mean(-1).T

    @property
    def gains(self) -> Numbers:
        """(seed, level from 1) what each further layer adds to the score."""
        return np.diff(self.scores, axis=1)

    @property
    def centre(self) -> Numbers:
        """(seed,) centre of gravity: the mean layer by mixing weights."""
        return self.weights @ np.arange(self.weights.shape[1])

    @property
    def expected(self) -> Numbers:
        """(seed,) expected layer: the mean layer by gains, which may be negative; NaN where there is hardly any."""
        total = self.gains.sum(1)
        sums = self.gains @ np.arange(1, self.gains.shape[1] + 1)
        return np.where(total >= LEAST_GAIN, sums / np.where(total == 0, 1, total), np.nan)

    @property
    def gains_localised(self) -> Numbers:
        """(seed,) bits by which gains differ from alike; NaN where there is hardly any."""
        return np.where(self.gains.sum(1) >= LEAST_GAIN, localisation(self.gains), np.nan)


def edge_task(
    recording: Recording, encoder: Encoder | None, division: Division, edge: Edge, minimum: int, *, purpose: str
) -> Task:
    """The spans or pairs to train on and to test on, refused where the corpus is not annotated so."""
    layers, asked = EDGES[edge].layers, f"{purpose} --task {edge}"
    recording.corpus.require(*layers, purpose=asked)
    parts = divided(recording, encoder, division, edge_cases(edge), purpose=asked, layers=layers)
    return task_of(*parts, minimum, purpose=asked, not_drawn=division.not_drawn(recording))


def mixed(task: Task, setting: Setting, *, each_scaled: bool = False) -> Mixed:
    """Probes on the mixtures of layers 0 to l, for every l, one a seed."""
    from bertology.maths.classifier import UNUSED
    from bertology.maths.scalar_mix import fit_mixtures

    held = np.stack([held_out(task.learned, HELD, seed) for seed in setting.seeds])
    labels = np.where(held, UNUSED, task.numbered(task.learned))
    penalty = WEIGHED / max(1, int((~held).sum(1).min()))
    recipe = replace(setting.recipe, penalties=(penalty,), tolerance=TOLERANCE, iterations=ITERATIONS)
    said: list[Numbers] = []
    found = None
    for level in range(len(task.learned.features)):
        known, new = (part.features[: level + 1] for part in (task.learned, task.tested))
        found = fit_mixtures(
            known, labels, len(task.labels), recipe, seeds=setting.seeds, each_scaled=each_scaled, lower=found
        )
        said.append(found.predict(new))
    gold = np.tile(task.numbered(task.tested), (len(setting.seeds), 1))
    assert found is not None  # there is at least the layer of embeddings
    return Mixed(Answers(np.stack(said), gold), found.weights)


def localisation(shares: Numbers) -> Numbers:
    """(seed,) bits by which (seed, layer) shares differ from alike: 0 spread evenly, log2 of the layers in one."""
    kept = np.clip(shares, 0, None)
    kept = kept / np.maximum(kept.sum(-1, keepdims=True), 1e-12)
    return np.log2(shares.shape[-1]) + np.where(kept > 0, kept * np.log2(np.maximum(kept, 1e-12)), 0).sum(-1)
