"""Which layers does a model need, and must they come in their order? Left out, exchanged, repeated, cut off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.measures.causes.options import TagLayer, Task
from bertology.measures.work import Work
from bertology.results.estimate import Estimates
from bertology.results.shapes import LayerCurve

Order = tuple[int, ...]

WAYS: Mapping[str, str] = {
    "skip": "without the layer",
    "swap": "the layer and the one above it exchanged",
    "repeat": "the layer run twice",
    "drop": "without the layer and all above it",
}


@analysis(
    question="Which layers does a model need for its task, and must they come in their order?",
    special="as the model has them",
    cites=("kovaleva2019",),
)
def layers(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    way: Annotated[
        Literal["all", "skip", "swap", "repeat", "drop"],
        "leave a layer out, exchange it with the one above, run it twice, or drop it and all above it; or all of these",
    ] = "all",
    task: Task = "auto",
    layer: TagLayer = "",
    items: Annotated[int, "use so many items; 0: all"] = 100,
    seed: Annotated[int, "seed of hidden pieces and of the bootstrap"] = 0,
) -> LayerCurve:
    """Change of the score (-1 to 1) and of the loss (nats) when layers are moved: 0 where it does nothing.

    A whole layer is moved, attention and feed-forward network with their LayerNorms, and what comes after it reads what
    comes before it; nothing learns again. (causes/heads with `--by layer` takes away a layer's attention alone, as
    kovaleva2019 do.) The score is the task's: accuracy, F1 of names or answers, of hidden pieces (15 % of all) how many
    are found. Intervals resample items, the same before and after. To drop the first layer and all above it is to read
    the embeddings; the last layer has none above it to be exchanged with.
    """
    # Naming an analysis must not import torch.
    from bertology.measures.causes.ablation import LayerChange, ablation
    from bertology.measures.causes.examination import examine
    from bertology.measures.causes.paired_change import LOSS, SCORE, ChangeReport, paired_change

    examination = examine(encoder, corpus, task=task, layer=layer, items=items, seed=seed)
    orders = [(one, place, order) for one in WAYS if way in ("all", one) for place, order in _orders(one, encoder)]
    changes = [LayerChange(order) for _, _, order in orders]
    whole, *changed = ablation(encoder, examination).judge(examination, changes, work)
    report = ChangeReport(examination, whole)
    measures: dict[str, Estimates] = {}
    units: dict[str, str] = {}
    beside: dict[str, dict[str, Estimates]] = {}
    for one in dict.fromkeys(name for name, _, _ in orders):
        own = [number for number, (name, _, _) in enumerate(orders) if name == one]
        found = paired_change(whole, [changed[number] for number in own], seed=seed)
        places = [orders[number][1] for number in own]
        for kind, estimates in ((SCORE, found.score), (LOSS, found.loss)):
            name = f"{one}: {kind}"
            measures[name] = _at(places, estimates, encoder.layers)
            units[name] = f"{report.units()[kind]}, {WAYS[one]}"
            for chance, baseline in report.baselines((encoder.layers,)).items():
                if kind in baseline:
                    beside.setdefault(chance, {})[name] = baseline[kind]
    return LayerCurve(measures=measures, baselines=beside, units=units, first=1)


def _orders(way: str, encoder: Encoder) -> list[tuple[int, Order]]:
    """Each layer that can be moved in this way, and the layers that are then run."""
    every = tuple(range(encoder.layers))
    return [(place, _moved(way, place, every)) for place in (every[:-1] if way == "swap" else every)]


def _moved(way: str, place: int, every: Order) -> Order:
    match way:
        case "skip":
            return every[:place] + every[place + 1 :]
        case "swap":
            return (*every[:place], place + 1, place, *every[place + 2 :])
        case "repeat":
            return every[: place + 1] + every[place:]
        case _:
            return every[:place]


def _at(places: Sequence[int], estimates: Estimates, layers: int) -> Estimates:
    """The estimates at their layers; NaN at those that cannot be moved in this way."""
    value, low, high = (np.full(layers, np.nan) for _ in range(3))
    n = np.zeros(layers, np.int64)
    value[places], low[places], high[places], n[places] = estimates.value, estimates.low, estimates.high, estimates.n
    return Estimates(value=value, low=low, high=high, n=n)
