"""Do layers rediscover the classical pipeline: which task is solved at which layer (tenney2019)?"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.division import Division, random_form
from bertology.measures.probes.edge_cases import EDGES, Edge
from bertology.measures.probes.layer_mixing import Mixed, Numbers, edge_task, localisation, mixed
from bertology.measures.probes.options import Seed, Share, Train, TrainLimit
from bertology.measures.probes.probe_material import WORD_SITE, Task
from bertology.measures.probes.probe_scores import Answers, Setting, accuracy, by_type, majority, setting_of
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimate, Estimates
from bertology.results.sampling import joined, over_seeds
from bertology.results.shapes import Table
from bertology.results.spread import BY_SEED

FIRST, ALL, EXPECTED, CENTRE = "accuracy of layer 0", "accuracy of all layers", "expected layer", "centre of gravity"
BY_GAIN, BY_WEIGHT = "localisation of gains", "localisation of weights"


@analysis(
    question="Do layers rediscover the classical pipeline: which task is solved at which layer?",
    special="seen by the model; a span is the mean of its words, a word the mean of its pieces",
    cites=("tenney2019",),
    sites=(WORD_SITE,),
    version=2,
)
def pipeline(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    probe: Annotated[str, "linear, rank:N, mlp:N or mlp:N:N, with N units"] = "linear",
    each_scaled: Annotated[bool, "scale every layer alike before mixing, so that long vectors weigh no more"] = False,
    minimum: Annotated[int, "a label counts from this many cases in training"] = 10,
    train: Train = "",
    train_limit: TrainLimit = 0,
    share: Share = 0.7,
    seeds: Annotated[int, "how many probes, each with its own held-out documents"] = 3,
    seed: Seed = 0,
) -> Table:
    """The layer at which each task is solved, 0 to the number of layers, for every task the corpus is annotated for.

    `expected layer` is the mean layer weighted by what each adds to a probe on a mixture of all layers up to it; gains
    may be negative, and where they come to less than 0.01 in all it is not told. `centre of gravity` is the mean layer
    by the weights of the mixture of all layers. `localisation` is the divergence in bits of gains (the negative ones
    left out), or of weights, from all layers alike: 0 spread evenly, log2 of the layers all in one. See probes/edge for
    the probes. Baselines: the most frequent label, and that of the word; every layer alike; the model with random
    weights. Intervals go from the lowest seed to the highest, those of accuracies are over test sentences and seeds.
    """
    setting, division = setting_of(probe, seeds, seed), Division(train, train_limit, share, seed)
    tasks, refused = _tasks(recording, encoder, division, minimum)
    if not tasks:
        raise next(iter(refused.values()))
    found: dict[Edge, Mixed] = {name: mixed(task, setting, each_scaled=each_scaled) for name, task in tasks.items()}
    layers = len(next(iter(tasks.values())).learned.features)
    baselines = {
        "majority": _rules(tasks, seed, typed=False),
        "most frequent label of the word": _rules(tasks, seed, typed=True),
        "every layer alike": _alike(layers, len(tasks)),
    }
    if randomised is not None:
        fresh, _ = _tasks(randomised, random_form(encoder), division, minimum)
        own: dict[Edge, Mixed] = {name: mixed(fresh[name], setting, each_scaled=each_scaled) for name in tasks}
        baselines["random weights"] = _measures(fresh, own, setting, seed)
    return Table(
        measures=_measures(tasks, found, setting, seed),
        baselines=baselines,
        units={
            FIRST: "share of cases, 0 to 1",
            ALL: "share of cases, 0 to 1",
            EXPECTED: f"layer, 1 to {layers - 1} (beyond where gains are negative); {BY_SEED}",
            CENTRE: f"layer, 0 to {layers - 1}; {BY_SEED}",
            BY_GAIN: f"bits, 0 for all layers alike; {BY_SEED}",
            BY_WEIGHT: f"bits, 0 for all layers alike; {BY_SEED}",
        },
        rows_named=tuple(tasks),
        notes={name: f"{EDGES[name].about}: {task.sizes}" for name, task in tasks.items()},
    )


def _tasks(
    recording: Recording, encoder: Encoder | None, division: Division, minimum: int
) -> tuple[dict[Edge, Task], dict[str, Refusal]]:
    """The tasks that the corpus has enough cases of, and why not the others."""
    found: dict[Edge, Task] = {}
    refused: dict[str, Refusal] = {}
    for edge in EDGES:
        try:
            found[edge] = edge_task(recording, encoder, division, edge, minimum, purpose="probes/pipeline")
        except Refusal as refusal:
            refused[edge] = refusal
    return found, refused


def _measures(tasks: dict[Edge, Task], found: dict[Edge, Mixed], setting: Setting, seed: int) -> dict[str, Estimates]:
    def at(name: Edge, level: int) -> Estimate:
        given = found[name].cumulative
        one = Answers(given.said[level : level + 1] if level >= 0 else given.said[-1:], given.gold)
        return accuracy(tasks[name], one, seed)[0]

    return {
        FIRST: joined([at(name, 0) for name in found]),
        ALL: joined([at(name, -1) for name in found]),
        EXPECTED: joined([_seeds(one.expected) for one in found.values()]),
        CENTRE: joined([_seeds(one.centre) for one in found.values()]),
        BY_GAIN: joined([_seeds(one.gains_localised) for one in found.values()]),
        BY_WEIGHT: joined([_seeds(localisation(one.weights)) for one in found.values()]),
    }


def _seeds(values: Numbers) -> Estimates:
    """Over the seeds that have a value."""
    known = values[np.isfinite(values)]
    return over_seeds(known) if len(known) else over_seeds(np.full(1, np.nan)).model_copy(update={"n": np.array(0)})


def _rules(tasks: dict[Edge, Task], seed: int, *, typed: bool) -> dict[str, Estimates]:
    each = [accuracy(task, by_type(task) if typed else majority(task), seed)[0] for task in tasks.values()]
    return {FIRST: joined(each), ALL: joined(each)}


def _alike(layers: int, tasks: int) -> dict[str, Estimates]:
    return {
        EXPECTED: Estimates.exact(np.full(tasks, layers / 2)),
        CENTRE: Estimates.exact(np.full(tasks, (layers - 1) / 2)),
        BY_GAIN: Estimates.exact(np.zeros(tasks)),
        BY_WEIGHT: Estimates.exact(np.zeros(tasks)),
    }
