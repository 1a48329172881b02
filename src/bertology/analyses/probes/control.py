"""How much of a probe's accuracy is the probe's own: selectivity by layer and by size (hewitt2019control)?"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.probes.token import word_task
from bertology.encoder.encoder import Encoder
from bertology.measures.division import Division, random_form
from bertology.measures.probes.options import Seed, Seeds, Share, Train, TrainLimit
from bertology.measures.probes.probe_material import WORD_SITE, Task
from bertology.measures.probes.probe_scores import (
    Setting,
    accuracy,
    answers,
    by_type,
    majority,
    selectivity,
    setting_of,
)
from bertology.measures.probes.word_labels import Label
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.shapes import Matrix

ACCURACY, CONTROL, SELECTIVITY = "accuracy", "control accuracy", "selectivity"


@analysis(
    question="How much of a probe's accuracy is the probe's own?",
    special="seen by the model; only words are probed, each by the mean of its pieces",
    cites=("hewitt2019control",),
    sites=(WORD_SITE,),
    version=3,
)
def control(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    label: Annotated[Label, "what to tell of a word"] = "upos",
    probes: Annotated[str, "probes to compare: linear, rank:N, mlp:N, mlp:N:N, with commas between"] = (
        "rank:10,linear,mlp:10,mlp:50"
    ),
    minimum: Annotated[int, "a label counts from this many words in training"] = 10,
    train: Train = "",
    train_limit: TrainLimit = 0,
    share: Share = 0.7,
    seeds: Seeds = 3,
    seed: Seed = 0,
) -> Matrix:
    """Accuracy less accuracy on a control task, -1 to 1, by layer and probe; 0 where all could be memorised.

    In the control task every form of a word (in train and test alike) is given one label at random, in the proportions
    of the labels in training: it can be learned by memorising forms alone. Forms that training does not have can only
    be guessed. A probe that does well on the words' own labels and badly on control labels tells what the states hold;
    one that does well on both may have memorised. Rank and units are the paper's `maximum_rank` and hidden sizes;
    it sweeps {2, 4, 10, 45, 1000} of both. Its probes are trained with Adam for at most 40 epochs, their rate halved
    whenever the loss on the development set rises; here by L-BFGS on all examples at once, stopped (or, for linear
    ones, penalised) by held-out documents. Intervals are over test sentences and seeds.
    """
    division = Division(train, train_limit, share, seed)
    names = [name.strip() for name in probes.split(",") if name.strip()]
    settings = {name: setting_of(name, seeds, seed) for name in names or ["linear"]}
    task = word_task(recording, encoder, division, label, minimum, purpose="probes/control")
    measures = _columns(task, settings, seed)
    shape = measures[ACCURACY].shape
    baselines = {
        name: {ACCURACY: accuracy(task, rule, seed)[0].everywhere(shape)}
        for name, rule in (("majority", majority(task)), ("most frequent label of the word", by_type(task)))
    }
    baselines["majority"][CONTROL] = baselines["majority"][ACCURACY]
    baselines["memorised"] = {SELECTIVITY: Estimates.exact(np.zeros(shape))}
    if randomised is not None:
        fresh = word_task(randomised, random_form(encoder), division, label, minimum, purpose="probes/control")
        baselines["random weights"] = _columns(fresh, settings, seed)
    return Matrix(
        measures=measures,
        baselines=baselines,
        units={
            ACCURACY: f"share of words, 0 to 1 ({task.sizes})",
            CONTROL: "share of words, 0 to 1, labels drawn for each form",
            SELECTIVITY: "accuracy less control accuracy, -1 to 1",
        },
        rows_named=tuple(f"layer {layer}" for layer in range(shape[0])),
        columns_named=tuple(settings),
    )


def _columns(task: Task, settings: dict[str, Setting], seed: int) -> dict[str, Estimates]:
    """(layer, probe) of each measure."""
    found: dict[str, list[Estimates]] = {ACCURACY: [], CONTROL: [], SELECTIVITY: []}
    for setting in settings.values():
        told, other = answers(task, setting)
        assert other is not None
        found[ACCURACY].append(accuracy(task, told, seed))
        found[CONTROL].append(accuracy(task, other, seed))
        found[SELECTIVITY].append(selectivity(task, told, other, seed))
    return {name: _side_by_side(columns) for name, columns in found.items()}


def _side_by_side(columns: list[Estimates]) -> Estimates:
    fields = {name: np.stack([getattr(one, name) for one in columns], 1) for name in ("value", "low", "high", "n")}
    return Estimates(**fields)
