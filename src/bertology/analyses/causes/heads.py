"""Which heads does a model need: each disabled, each layer, each layer but for one head (kovaleva2019, michel2019)?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.measures.causes.named_heads import named_heads
from bertology.measures.causes.options import TagLayer, Task
from bertology.measures.heads.head_choice import first_half
from bertology.measures.work import Work
from bertology.results.estimate import Estimates
from bertology.results.sampling import over_seeds
from bertology.results.shapes import HeadGrid, LayerCurve, Table

if TYPE_CHECKING:
    from bertology.measures.causes.examination import Marks
    from bertology.measures.causes.paired_change import ChangeReport

Masks = NDArray[np.bool_]
"""(change, layer, head): which heads are disabled."""

KEPT, ANY_HEAD = "head kept", "any head of the layer"
DRAWS = 20


@analysis(
    question="Which heads does a model need for its task, and which would it be better off without?",
    special="as the model has them; uniform attention and the mean output are over all pieces, these among them",
    cites=("kovaleva2019", "michel2019"),
    version=2,
)
def heads(
    encoder: Encoder,
    corpus: Corpus,
    work: Work,
    *,
    by: Annotated[
        Literal["head", "layer", "layer_except_one"],
        "disable each head (HeadGrid), all heads of each layer, or all but the best one of each layer (LayerCurve)",
    ] = "head",
    how: Annotated[
        Literal["uniform", "zero", "mean"],
        "a disabled head attends to all pieces alike (kovaleva2019), gives nothing (michel2019), or always its mean",
    ] = "uniform",
    sets: Annotated[str, "disable these sets of heads instead (Table): `1-3,2-4;8-11` are two sets"] = "",
    task: Task = "auto",
    layer: TagLayer = "",
    items: Annotated[int, "use so many items; 0: all"] = 100,
    seed: Annotated[int, "seed of hidden pieces, of halves, of random sets and of the bootstrap"] = 0,
) -> HeadGrid | LayerCurve | Table:
    """Change of the score (-1 to 1) and of the loss (nats) when a head is disabled: 0 where it does nothing.

    A loss that rises says that the head helps, one that falls that the model is better off without it; nothing learns
    again. The score is the task's: accuracy, F1 of names or answers, of hidden pieces (15 % of all) how many are found.
    Intervals resample items, the same before and after; p is of paired t tests, two-sided, after Holm's correction for
    all heads or layers, and an item whose loss moves by less than 0.0001 nats, which arithmetic alone may do, counts as
    unmoved; `helps` and `hurts` are 1 where that p of the loss is below 5 %. Beside each head stands the mean of its
    layer: what disabling any one of its heads does.

    With `layer_except_one` the head that is kept is chosen by the loss on one half of the items, and judged on the
    other; beside it the mean over all heads that could have been kept. Michel et al. choose it on the items that they
    report. With `sets` the baseline is as many heads of the same layers, drawn at random 20 times, from the lowest to
    the highest of them.

    Kovaleva et al. report one model each without intervals, on sets of which one item may be 0.4 points.
    """
    # Naming an analysis must not import torch.
    from bertology.measures.causes.ablation import HeadChange, ablation
    from bertology.measures.causes.examination import examine
    from bertology.measures.causes.paired_change import ChangeReport

    chosen = _parsed(sets, encoder)
    examination = examine(encoder, corpus, task=task, layer=layer, items=items, seed=seed)
    masks = _with_random_sets(chosen, seed) if len(chosen) else MASKS[by](encoder.layers, encoder.heads)
    changes = [HeadChange(mask) for mask in masks]
    whole, *changed = ablation(encoder, examination, how).judge(examination, changes, work)
    report = ChangeReport(examination, whole)
    if len(chosen):
        return _table(report, changed, [part.strip() for part in sets.split(";")], seed)
    if by == "layer_except_one":
        return _best_kept(report, changed, encoder.heads, seed)
    if by == "layer":
        return _by_layer(report, changed, seed)
    return _by_head(report, changed, (encoder.layers, encoder.heads), seed)


def _one_by_one(layers: int, heads: int) -> Masks:
    return np.eye(layers * heads, dtype=np.bool_).reshape(-1, layers, heads)


def _layer_by_layer(layers: int, heads: int) -> Masks:
    return np.broadcast_to(np.eye(layers, dtype=np.bool_)[:, :, None], (layers, layers, heads))


def _all_but_one(layers: int, heads: int) -> Masks:
    return _layer_by_layer(layers, heads).repeat(heads, 0) & ~_one_by_one(layers, heads)


MASKS = {"head": _one_by_one, "layer": _layer_by_layer, "layer_except_one": _all_but_one}


def _parsed(sets: str, encoder: Encoder) -> Masks:
    form = "Write sets as `1-3,2-4;8-11`: commas between heads, semicolons between sets"
    named = sets.split(";") if sets.strip() else []
    masks = [named_heads(part, encoder, "--sets", form) for part in named]
    return np.array(masks, np.bool_).reshape(-1, encoder.layers, encoder.heads)


def _with_random_sets(chosen: Masks, seed: int) -> Masks:
    """The sets, and then for each of them as many heads of the same layers as it has, drawn at random."""
    generator = np.random.default_rng(seed)
    drawn = [generator.permuted(mask, axis=1) for mask in chosen for _ in range(DRAWS)]
    return np.concatenate([chosen, np.stack(drawn)])


def _by_head(report: ChangeReport, changed: Sequence[Marks], shape: tuple[int, int], seed: int) -> HeadGrid:
    from bertology.measures.causes.paired_change import LOSS, SCORE, averaged, paired_change

    found = report.measures(paired_change(report.whole, changed, seed=seed))
    by_layer = [averaged(changed[start : start + shape[1]]) for start in range(0, len(changed), shape[1])]
    mates = paired_change(report.whole, by_layer, seed=seed)
    beside = report.baselines(shape)
    beside[ANY_HEAD] = {
        SCORE: _for_each_head(mates.score, shape),
        LOSS: _for_each_head(mates.loss, shape),
    }
    measures = {name: _changed(estimates, lambda array: array.reshape(shape)) for name, estimates in found.items()}
    return HeadGrid(measures=measures, baselines=beside, units=report.units())


def _for_each_head(of_layers: Estimates, shape: tuple[int, int]) -> Estimates:
    return _changed(of_layers, lambda array: np.broadcast_to(array[:, None], shape))


def _changed(estimates: Estimates, change: Callable[[NDArray[Any]], NDArray[Any]]) -> Estimates:
    value, low, high = (change(array) for array in (estimates.value, estimates.low, estimates.high))
    return Estimates(value=value, low=low, high=high, n=change(estimates.n))


def _by_layer(report: ChangeReport, changed: Sequence[Marks], seed: int) -> LayerCurve:
    from bertology.measures.causes.paired_change import paired_change

    found = paired_change(report.whole, changed, seed=seed)
    beside = report.baselines((len(changed),))
    return LayerCurve(measures=report.measures(found), baselines=beside, units=report.units(), first=1)


def _best_kept(report: ChangeReport, changed: Sequence[Marks], heads: int, seed: int) -> LayerCurve:
    """Of each layer the head to keep, chosen on one half; what is lost with it, and with any head, on the other."""
    from bertology.finetuning.division import digest
    from bertology.measures.causes.paired_change import LOSS, SCORE, averaged, paired_change

    first = first_half([digest([item]) for item in report.examination.items], seed)
    if not 0 < first.sum() < len(first):
        raise Refusal(
            f"--by layer_except_one was asked of {len(first)} item", "items to choose by, and others", "Give more items"
        )
    layers = [changed[start : start + heads] for start in range(0, len(changed), heads)]
    best = [int(np.argmin([marks.losses[first].mean() for marks in some])) for some in layers]
    kept = [some[head] for some, head in zip(layers, best, strict=True)]
    found = paired_change(report.whole, kept, seed=seed, items=~first)
    anyone = paired_change(report.whole, [averaged(some) for some in layers], seed=seed, items=~first)
    judged = report.on(~first)
    beside = judged.baselines((len(layers),))
    beside["any head kept"] = {SCORE: anyone.score, LOSS: anyone.loss}
    beside["no choice"] = {KEPT: Estimates.exact(np.full(len(layers), (1 + heads) / 2))}
    chosen = Estimates.exact(np.array(best) + 1.0, int(first.sum()))
    return LayerCurve(
        measures={**report.measures(found), KEPT: chosen},
        baselines=beside,
        units={**judged.units(), KEPT: f"the number of the head, 1 to {heads}, chosen on the other half of the items"},
        first=1,
    )


def _table(report: ChangeReport, changed: Sequence[Marks], named: Sequence[str], seed: int) -> Table:
    from bertology.measures.causes.paired_change import LOSS, SCORE, paired_change

    found = paired_change(report.whole, changed[: len(named)], seed=seed)
    random = paired_change(report.whole, changed[len(named) :], seed=seed)
    score, loss = (over_seeds(one.value.reshape(len(named), DRAWS).T) for one in (random.score, random.loss))
    beside = report.baselines((len(named),))
    beside["random heads of the same layers"] = {SCORE: score, LOSS: loss}
    rows = tuple(named)
    return Table(measures=report.measures(found), baselines=beside, units=report.units(), rows_named=rows)
