"""Which heads matter most? Every measure of importance as numbers by item, and items halved to choose and to report by.

`gradient` is michel2019's, `confidence` and `relevance` are voita2019's, and `ablation` is what they are to foretell:
how much an item's loss grows when the head is truly removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray

from bertology.corpus.corpus import Corpus
from bertology.encoder.attend import Gates
from bertology.encoder.encoder import Encoder
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.pruning import Heads, PrunedEncoder
from bertology.errors import Refusal, unknown_name
from bertology.finetuning.division import ordered
from bertology.maths.rank_correlation import spearman
from bertology.maths.resampling import LEVEL, resampled_means
from bertology.measures.causes.ablation import HeadChange, ablation
from bertology.measures.causes.examination import Examination, Marks, asked_again, examine
from bertology.measures.causes.importance import Sums, by_layer, sums
from bertology.measures.causes.layer_relevance import head_relevance
from bertology.measures.heads.head_choice import first_half
from bertology.measures.work import Work
from bertology.results.estimate import Estimates

Floats = NDArray[np.float64]

GRADIENT, CONFIDENCE, RELEVANCE, ABLATION = "gradient", "confidence", "relevance", "ablation"
Cost = Literal["change", "loss", "score"]
"""What removing a head costs: how much it changes the loss of an item either way, or adds to it, or the score lost."""
METHODS = (GRADIENT, CONFIDENCE, RELEVANCE, ABLATION)


@dataclass(frozen=True)
class Importance:
    """(item, layer, head) values and (item,) weights, whose mean is the importance of each head: higher matters more.

    With `scaled` the heads of each layer are then scaled to a length of 1.
    """

    values: Floats
    weights: Floats
    scaled: bool = False

    @property
    def mean(self) -> Floats:
        """(layer, head) importance."""
        measured = np.isfinite(self.values) * self.weights[:, None, None]
        total, top = measured.sum(0), (np.nan_to_num(self.values) * measured).sum(0)
        return self._settled(np.divide(top, total, out=np.full_like(top, np.nan), where=total > 0))

    @property
    def sizes(self) -> Importance:
        """The same without signs."""
        return replace(self, values=np.abs(self.values))

    def resampled(self, seed: int) -> Floats:
        """(resample, layer, head) of resampled items."""
        return self._settled(resampled_means(self.values, self.weights, seed=seed))

    def estimates(self, seed: int) -> Estimates:
        """(layer, head) with intervals over items."""
        value = self.mean
        n = np.isfinite(self.values).sum(0)
        low, high = np.full((2, *value.shape), np.nan)
        some = n > 1
        if some.any():
            tail = 100 * (1 - LEVEL) / 2
            low[some], high[some] = np.nanpercentile(self.resampled(seed)[:, some], [tail, 100 - tail], axis=0)
        return Estimates(value=value, low=np.fmin(low, value), high=np.fmax(high, value), n=n)

    def _settled(self, values: Floats) -> Floats:
        return by_layer(values) if self.scaled else values


def gradient(found: Sums, *, legacy: bool, scaled: bool) -> Importance:
    """Michel et al.'s: |∂L/∂ξ| of each item, or with `legacy` of each piece, as their code has it, over all pieces."""
    if not legacy:
        return Importance(found.gradient, np.ones(len(found.pieces)), scaled)
    return Importance(found.by_piece / found.pieces[:, None, None], found.pieces, scaled)


def confidence(found: Sums) -> Importance:
    """Voita et al.'s: the highest weight of a row on a piece that is not special, over all pieces."""
    return Importance(found.highest / found.pieces[:, None, None], found.pieces)


def relevance(encoder: HuggingFaceEncoder, examination: Examination) -> Importance:
    """Voita et al.'s: the share of a head in what its layer's heads are worth to the prediction."""
    return Importance(head_relevance(encoder, examination), np.ones(len(examination.items)))


def removal(
    encoder: HuggingFaceEncoder, examination: Examination, work: Work, *, without: Heads, of_score: bool = False
) -> Importance:
    """How much the loss grows, in nats, when a head is removed beside those that are gone: NaN for these.

    Or with `of_score` how much the score falls, each item weighing as much as it is of.
    """
    left = np.argwhere(~without)
    sets = [without | _only(place, without.shape) for place in left]
    begun = [without] if without.any() else []
    whole, *changed = judged(encoder, examination, [*begun, *sets], work)
    before = changed.pop(0) if begun else whole
    values = np.full((len(examination.items), *without.shape), np.nan)
    for (layer, head), marks in zip(left, changed, strict=True):
        values[:, layer, head] = _score(before) - _score(marks) if of_score else marks.losses - before.losses
    return Importance(values, before.counts.of if of_score else np.ones(len(examination.items)))


def importance_by(
    method: str,
    encoder: HuggingFaceEncoder,
    examination: Examination,
    work: Work,
    *,
    without: Heads,
    legacy: bool,
    scaled: bool,
    cost: Cost = "change",
) -> Importance:
    """Importance by the name of its measure, of a model `without` some heads."""
    if method == ABLATION:
        found = removal(encoder, examination, work, without=without, of_score=cost == "score")
        return found.sizes if cost == "change" else found
    changed = gated_to(encoder, ~without) if without.any() else encoder
    if method == RELEVANCE:
        return relevance(changed, examination)
    found = sums(changed, examination)
    return confidence(found) if method == CONFIDENCE else gradient(found, legacy=legacy, scaled=scaled)


def judged(encoder: HuggingFaceEncoder, examination: Examination, removed: Sequence[Heads], work: Work) -> list[Marks]:
    """The marks of the whole model, and those without each of these sets of heads, in their order; equal sets once."""
    keys = [heads.tobytes() for heads in removed]
    changes = {key: HeadChange(heads) for key, heads in zip(keys, removed, strict=True) if heads.any()}
    whole, *marks = ablation(encoder, examination, "zero").judge(examination, list(changes.values()), work)
    found = dict(zip(changes, marks, strict=True))
    return [whole, *(found.get(key, whole) for key in keys)]


def gated_to(encoder: HuggingFaceEncoder, kept: Heads) -> HuggingFaceEncoder:
    """The encoder with only these heads at work."""
    return encoder.gated(Gates(scale=torch.from_numpy(kept).float().to(encoder.device)))


def examined(
    encoder: Encoder, corpus: Corpus, *, task: str, layer: str, items: int, seed: int
) -> tuple[HuggingFaceEncoder, Examination]:
    """A model with heads that can be removed, and what it is asked."""
    if not isinstance(encoder, HuggingFaceEncoder) or isinstance(encoder, PrunedEncoder):
        raise Refusal(
            f"{encoder.name} has no heads that could be removed one by one", "a whole transformer", "Choose another"
        )
    # In an order of their own, so that how the corpus is sorted leaves no trace.
    sorted_ = Corpus(tuple(ordered(corpus.items)), name=corpus.name)
    return encoder, examine(encoder, sorted_, task=task, layer=layer, items=items, seed=seed)


def halves(encoder: HuggingFaceEncoder, whole: Examination, *, seed: int) -> tuple[Examination, Examination]:
    """Items to choose heads by, and items to report on; equal texts are on one side."""
    items = list({id(item): item for item in whole.items}.values())
    texts = ["\n".join(part.text for part in item.parts) for item in items]
    first = first_half(texts, seed)
    if first.all() or not first.any():
        raise Refusal(
            f"{len(items)} items with the same text cannot be divided",
            "at least two different texts: heads are chosen by one half and reported on the other",
            "Give a larger corpus",
        )
    parts = ([item for item, here in zip(items, first.tolist(), strict=True) if here is side] for side in (True, False))
    choosing, reporting = (asked_again(encoder, whole, part, seed=seed) for part in parts)
    return choosing, reporting


def agreement(first: Floats, second: Floats, *, within: bool) -> Floats:
    """(case,) rank correlations of (case, layer, head): over all heads, or the mean of those within the layers."""
    a, b = (torch.from_numpy(np.ascontiguousarray(some)) for some in (first, second))
    if not within:
        a, b = a.flatten(1), b.flatten(1)
    found = spearman(a, b, torch.isfinite(a) & torch.isfinite(b)).double()
    return (found.nanmean(-1) if within else found).numpy()


def methods_named(named: str, known: Sequence[str]) -> tuple[str, ...]:
    """Methods from their names with commas between."""
    chosen = tuple(dict.fromkeys(name.strip().lower() for name in named.split(",") if name.strip()))
    for name in chosen:
        if name not in known:
            raise unknown_name("order of heads", name, known)
    return chosen or tuple(known)


def _only(place: NDArray[np.intp], shape: tuple[int, ...]) -> Heads:
    found = np.zeros(shape, np.bool_)
    found[tuple(place)] = True
    return found


def _score(marks: Marks) -> Floats:
    """(item,) what was right of how much; NaN of nothing."""
    right, of = marks.counts.right, marks.counts.of
    return np.divide(right, of, out=np.full_like(right, np.nan), where=of > 0)
