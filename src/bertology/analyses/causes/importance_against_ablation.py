"""Which cheap measure of a head's importance foretells what its removal costs (michel2019, voita2019)?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.measures.causes.options import TagLayer, Task
from bertology.measures.work import Work
from bertology.results.estimate import Estimate, Estimates
from bertology.results.sampling import joined
from bertology.results.shapes import Table

if TYPE_CHECKING:
    from bertology.measures.causes.head_orders import Importance

Floats = NDArray[np.float64]

CHANGE, WITHIN, LOSS, SCORE = "change", "change within layers", "loss", "score"
UNITS = {
    CHANGE: "rank correlation over all heads with how much a removal changes the loss of an item, -1 to 1",
    WITHIN: "the same within a layer, mean over layers, -1 to 1",
    LOSS: "rank correlation over all heads with the loss that a removal adds, -1 to 1",
    SCORE: "rank correlation over all heads with the score that a removal costs, -1 to 1",
}
SHUFFLES = 1000


@analysis(
    question="Which cheap measure of a head's importance foretells what its removal costs?",
    special="special tokens are sources of attention, and targets for everything but confidence",
    cites=("michel2019", "voita2019", "bach2015"),
)
def importance_against_ablation(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    task: Task = "auto",
    layer: TagLayer = "",
    items: Annotated[int, "use so many items, 0 for all: half for the measures, half for the removal"] = 100,
    seed: Annotated[int, "seed of the halves, of the hidden pieces, of the bootstrap and of the shuffles"] = 0,
) -> Table:
    """Spearman's correlation over heads of importance with the cost of a removal: 1 the same order, 0 none.

    Importance (see causes/importance) is measured on one half of the items, and every head removed alone on the other,
    so that the two have no accident in common; intervals resample the items of both. The cost is the mean over items of
    how much their loss changes, whichever way, which is what a gradient without its sign is an estimate of (`change`),
    or of what it grows by (`loss`), or the score lost. Gradients are in nats, scaled by layer as the paper has it, and
    by piece as its code has it. `ablation` is the removal itself on the first half (without signs for `change`): what
    could be foretold at best from so few items. Where a model is sure, one item that a removal turns from right to
    wrong outweighs fifty that it does not, so that the order by `loss` is not settled by a hundred items; scores change
    by whole items, and most heads change none: their order is mostly ties. `shuffled` has heads in any order, and its
    interval is that of chance.
    """
    # Naming an analysis must not import torch.
    from bertology.measures.causes import head_orders as orders
    from bertology.measures.causes.importance import sums

    model, asked = orders.examined(encoder, corpus, task=task, layer=layer, items=items, seed=seed)
    choosing, reporting = orders.halves(model, asked, seed=seed)
    none = np.zeros((model.layers, model.heads), np.bool_)
    found = sums(model, choosing)
    rows: dict[str, Importance] = {
        "gradient": orders.gradient(found, legacy=False, scaled=False),
        "gradient, scaled by layer": orders.gradient(found, legacy=False, scaled=True),
        "gradient by piece, scaled by layer": orders.gradient(found, legacy=True, scaled=True),
        "confidence": orders.confidence(found),
        "relevance": orders.relevance(model, choosing),
    }
    removal = orders.removal(model, choosing, work, without=none)
    loss = orders.removal(model, reporting, work, without=none)
    score = orders.removal(model, reporting, work, without=none, of_score=True)
    costs = {CHANGE: loss.sizes, WITHIN: loss.sizes, LOSS: loss, SCORE: score}
    drawn = {name: (one.mean, one.resampled(seed)) for name, one in rows.items()}
    best = {name: (one.mean, one.resampled(seed)) for name, one in ((LOSS, removal), (CHANGE, removal.sizes))}
    n = len(choosing.items) + len(reporting.items)
    measures: dict[str, Estimates] = {}
    for name, against in costs.items():
        cost = against.mean, against.resampled(seed + 1)
        every = [*drawn.values(), best[CHANGE if name in (CHANGE, WITHIN) else LOSS]]
        measures[name] = joined([_correlation(*one, *cost, n, within=name == WITHIN) for one in every])
    return Table(
        measures=measures,
        baselines={"shuffled": {name: _chance(none.shape, name, len(rows) + 1, seed) for name in measures}},
        units=UNITS,
        rows_named=(*rows, orders.ABLATION),
    )


def _correlation(whole: Floats, drawn: Floats, cost: Floats, drawn_cost: Floats, n: int, *, within: bool) -> Estimate:
    from bertology.measures.causes.head_orders import agreement

    value = float(agreement(whole[None], cost[None], within=within)[0])
    if not np.isfinite(value):
        return Estimate(np.nan, np.nan, np.nan, 0)
    resampled = agreement(drawn, drawn_cost, within=within)
    low, high = np.nanpercentile(resampled, [2.5, 97.5]) if np.isfinite(resampled).any() else (np.nan, np.nan)
    return Estimate(value, min(float(low), value), max(float(high), value), n)


def _chance(shape: tuple[int, ...], name: str, rows: int, seed: int) -> Estimates:
    """What any order of heads would reach: 0, and between which numbers 95 in 100 of them lie."""
    from bertology.measures.causes.head_orders import agreement

    generator = np.random.default_rng(seed)
    count = int(np.prod(shape))
    places = np.broadcast_to(np.arange(count, dtype=np.float64), (SHUFFLES, count))
    first, second = (generator.permuted(places, axis=1).reshape(SHUFFLES, *shape) for _ in range(2))
    found = agreement(first, second, within=name == WITHIN)
    low, high = np.nanpercentile(found, [2.5, 97.5]) if np.isfinite(found).any() else (np.nan, np.nan)
    return Estimate(0.0, min(float(low), 0.0), max(float(high), 0.0), SHUFFLES).everywhere((rows,))
