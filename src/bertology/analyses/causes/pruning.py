"""How many heads can go, and in which order (michel2019, section 4)?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.measures.causes.options import Legacy, Scale, TagLayer, Task
from bertology.measures.work import Work
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined, over_sentences_and_seeds, reaching_unseen
from bertology.results.shapes import Curve

if TYPE_CHECKING:
    from bertology.encoder.huggingface import HuggingFaceEncoder
    from bertology.encoder.pruning import Heads
    from bertology.measures.causes.examination import Examination, Marks

RANDOM = "random"
CHANGE, LESS_RANDOM, NO_CHANGE = ", change", " less random", "no change"
SIZE = 8
"""Items of a step of retraining."""


@analysis(
    question="How many heads can go, and in which order, before the answers suffer?",
    special="as the model has them: a removed head's output is 0 at every piece",
    cites=("michel2019", "voita2019"),
    version=2,
)
def pruning(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    task: Task = "auto",
    layer: TagLayer = "",
    items: Annotated[int, "use so many items, 0 for all: half to choose heads by, half to report on"] = 80,
    order: Annotated[str, "by what heads are ordered, with commas between"] = (
        "gradient,confidence,relevance,ablation,random"
    ),
    step: Annotated[float, "the share of all heads that is removed from point to point"] = 0.1,
    again: Annotated[bool, "measure importance again at every point, in what is left, instead of once"] = False,
    metric: Annotated[Literal["score", "loss"], "the score of the task, or the loss in nats"] = "score",
    scale: Scale = "layer",
    legacy: Legacy = False,
    cost: Annotated[
        Literal["change", "loss", "score"],
        "by what ablation orders: how much a removal changes the loss of an item, either way; the loss it adds; the "
        "score it costs",
    ] = "change",
    retrain: Annotated[int, "so many steps of learning after pruning, on the half that heads are chosen by"] = 0,
    seeds: Annotated[int, "so many random orders"] = 3,
    seed: Annotated[int, "seed of the halves, hidden pieces, random orders, learning and bootstrap"] = 0,
) -> Curve:
    """Score of a model without its least important heads, 0 to 1, or its loss in nats, by how many heads are left.

    Heads are ordered by each measure of causes/importance on one half of the items, from the least important, and by
    chance; the score is that of the other half. A removed head's output is 0. Importance is measured once, as in the
    paper, or at every point (`again`; by ablation that is greedy search). With `retrain` the model learns on after each
    removal, always from its first weights: the point with all heads left has learnt on as well. `ablation` is by how
    much removing a head alone changes the loss of an item (`cost`). By the loss it adds, heads go first without which
    the loss is lower; where a model is surer than it should be these are the ones that matter most, because anything
    that makes it less sure helps its loss.

    Intervals resample the items, and of the random orders the orders, too. `change` is a score less that of the whole
    model, `less random` less that of the random orders. Both are of the same items, and their intervals resample the
    pairs: two scores are compared by these, as their own intervals hold what makes an item hard for both. Where heads
    are gone and none of n answers turned, that of another item still may: intervals reach at least 3/n to either side.
    """
    # Naming an analysis must not import torch.
    from bertology.measures.causes import head_orders as orders
    from bertology.measures.causes.pruning_curves import estimated, removed_at_random, removed_by, steps_of

    methods = orders.methods_named(order, (*orders.METHODS, RANDOM))
    model, asked = orders.examined(encoder, corpus, task=task, layer=layer, items=items, seed=seed)
    choosing, reporting = orders.halves(model, asked, seed=seed)
    shape = model.layers, model.heads
    counts = steps_of(shape[0] * shape[1], step)
    runs: dict[str, list[list[Heads]]] = {}
    for method in methods:

        def measured(without: Heads, method: str = method) -> Any:
            found = orders.importance_by(
                method, model, choosing, work, without=without, legacy=legacy, scaled=scale == "layer", cost=cost
            )
            return found.mean

        if method == RANDOM:
            runs[method] = [removed_at_random(shape, counts, seed + number) for number in range(seeds)]
        else:
            runs[method] = [removed_by(measured, shape, counts, again=again)]
    flat = [removed for some in runs.values() for run in some for removed in run]
    if retrain:
        marks = _retrained(model, choosing, reporting, flat, work, retrain, seed)
        whole = marks[0]
    else:
        whole, *marks = orders.judged(model, reporting, flat, work)
    following = iter(marks)
    found = {name: [[next(following) for _ in run] for run in some] for name, some in runs.items()}
    loss = metric == "loss"
    measures = {name: estimated(some, loss=loss, seed=seed) for name, some in found.items()}
    changes = paired(found, whole, loss=loss, seed=seed)
    unit, apart = ("nats", "nats") if loss else (f"{asked.measure}, 0 to 1", f"{asked.measure}, -1 to 1")
    nothing = Estimates.exact(np.zeros(len(counts)))
    return Curve(
        along="heads left",
        points=shape[0] * shape[1] - np.array(counts, np.float64),
        measures=measures | changes,
        baselines=_baselines(whole, reporting, loss, measures, seed) | {NO_CHANGE: dict.fromkeys(changes, nothing)},
        units={name: f"{unit}, heads removed by {name}" for name in measures}
        | dict.fromkeys(changes, f"{apart}, of the same items"),
    )


def paired(
    found: Mapping[str, Sequence[Sequence[Marks]]], whole: Marks, *, loss: bool, seed: int
) -> dict[str, Estimates]:
    """Each order's marks beside those of the whole model, and those of every other order beside the random ones."""
    beside = {f"{name}{CHANGE}": (runs, [[whole] * len(runs[0])]) for name, runs in found.items()}
    if RANDOM in found:
        others = {name: runs for name, runs in found.items() if name != RANDOM}
        beside |= {f"{name}{LESS_RANDOM}": (runs, found[RANDOM]) for name, runs in others.items()}
    return {name: _beyond(*pair, loss=loss, seed=seed) for name, pair in beside.items()}


def _beyond(these: Sequence[Sequence[Marks]], others: Sequence[Sequence[Marks]], *, loss: bool, seed: int) -> Estimates:
    """(point,) how far (run, point) marks lie above others of the same items; a single run is beside each of many."""
    from bertology.measures.causes.paired_change import share

    def parts(marks: Marks) -> NDArray[np.float64]:
        return np.stack([marks.losses, np.ones_like(marks.losses)] if loss else [marks.counts.right, marks.counts.of])

    def difference(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        right, of = sums[..., 0], sums[..., 1]
        return np.asarray(share(right, of)[..., 0] - share(right, of)[..., 1])

    found: list[Estimates] = []
    apart: list[bool] = []
    for point in range(len(these[0])):
        times = range(max(len(these), len(others)))
        marks = [[runs[number % len(runs)][point] for runs in (these, others)] for number in times]
        # (run, item, these and others, right and of)
        pairs = np.moveaxis(np.array([[parts(one) for one in pair] for pair in marks]), -1, 1)
        apart.append(any(not np.array_equal(own.losses, other.losses) for own, other in marks))
        found.append(over_sentences_and_seeds(pairs, difference, seed=seed))
    return joined(found) if loss else reaching_unseen(joined(found), np.array(apart))


def _baselines(
    whole: Marks, reporting: Examination, loss: bool, measures: dict[str, Estimates], seed: int
) -> dict[str, dict[str, Estimates]]:
    """The whole model, and the answer that is right most often."""
    from bertology.finetuning.metrics import estimate
    from bertology.measures.causes.pruning_curves import estimated

    intact = estimated([[whole]], loss=loss, seed=seed)[0]
    found = {"whole model": {name: intact.everywhere(some.shape) for name, some in measures.items()}}
    if reporting.guess is not None and not loss:
        guess = estimate(reporting.guess)
        found["majority"] = {name: guess.everywhere(some.shape) for name, some in measures.items()}
    return found


def _retrained(
    model: HuggingFaceEncoder,
    choosing: Examination,
    reporting: Examination,
    removed: list[Heads],
    work: Work,
    steps: int,
    seed: int,
) -> list[Marks]:
    """The marks after learning on without each of these sets of heads; each is kept when it is finished."""
    from bertology.finetuning.division import digest
    from bertology.finetuning.metrics import Counts
    from bertology.measures.causes.examination import Marks
    from bertology.measures.causes.gate_learning import retrained

    different = {heads.tobytes(): heads for heads in removed}
    meter = work.meter(f"learning on {len(different)} times")
    found: dict[bytes, Marks] = {}
    for number, (key, heads) in enumerate(different.items()):

        def tell(done: int, total: int, before: int = number) -> None:
            meter(before * total + done, len(different) * total)

        def learn(heads: Heads = heads, tell: Any = tell) -> list[list[float]]:
            learnt = retrained(model, choosing, ~heads, steps=steps, size=SIZE, seed=seed, tell=tell)
            marks = reporting.marks(learnt.run)
            return [marks.losses.tolist(), marks.counts.right.tolist(), marks.counts.of.tolist()]

        about = {"analysis": "causes/pruning", "format": 1, "model": model.fingerprint, "task": choosing.task}
        about |= {"choosing": digest(choosing.items), "reporting": digest(reporting.items), "steps": steps}
        about |= {"removed": np.flatnonzero(heads).tolist(), "seed": seed, "size": SIZE}
        losses, right, of = (np.array(some) for some in work.kept(about, learn))
        found[key] = Marks(losses, Counts(right, of))
    return [found[heads.tobytes()] for heads in removed]
