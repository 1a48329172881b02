"""Importance of heads by four measures, per example, on the half of the examples that ranks heads.

`gradient` is the measure of michel2019, `confidence` and `relevance` are those of voita2019, and `ablation`, which
they predict, is the increase of an example's loss when the head is removed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.evaluation.ablation import HeadAblation, prepare_ablation
from bertology.analyses.evaluation.evaluation import Evaluation, prepare_evaluation, with_perturbed_examples
from bertology.analyses.evaluation.gradient_importance import HeadGradients, head_gradients, normalise_layers
from bertology.analyses.evaluation.options import EvaluationOptions
from bertology.analyses.evaluation.relevance_propagation import head_relevance
from bertology.analyses.evaluation.score_change import Scores
from bertology.analyses.head_selection.selection import selection_half
from bertology.arrays import Array, BoolArray, FloatArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.errors import Refusal, unknown_name
from bertology.estimates.cross_fitting import random_halves
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import percentile_interval, ratio, resampled_means
from bertology.lazy import torch
from bertology.numerics.rank_correlation import spearman
from bertology.training.data_split import sort_by_content

GRADIENT, CONFIDENCE, RELEVANCE, ABLATION = "gradient", "confidence", "relevance", "ablation"
METHODS = (GRADIENT, CONFIDENCE, RELEVANCE, ABLATION)
CHUNK_SAMPLES = 500
"""Samples whose counts are held in double precision at once."""
AblationCriterion = Literal["absolute-loss-change", "loss-increase", "score-drop"]


@dataclass(frozen=True)
class HeadImportance:
    """(example, layer, head) values and (example,) weights, whose weighted mean is the importance of each head.

    With `normalise`, the means of each layer are scaled to unit norm.
    """

    values: FloatArray
    weights: FloatArray
    normalise: bool = False

    @property
    def mean(self) -> FloatArray:
        """(layer, head) importance."""
        return self.means(np.ones((1, len(self.values))))[0]

    @property
    def absolute(self) -> HeadImportance:
        """The same with absolute values."""
        return replace(self, values=np.abs(self.values))

    def means(self, counts: Array) -> FloatArray:
        """(sample, layer, head) importance on samples, from (sample, example) how often each has the example."""
        weights = np.isfinite(self.values) * self.weights[:, None, None]
        top, bottom = (v.reshape(len(v), -1) for v in (np.nan_to_num(self.values) * weights, weights))
        starts = range(0, len(counts), CHUNK_SAMPLES)
        chunks = (counts[start : start + CHUNK_SAMPLES].astype(np.float64) for start in starts)
        means = np.concatenate([ratio(chunk @ top, chunk @ bottom, empty=np.nan) for chunk in chunks])
        return self._normalise(means.reshape(-1, *self.values.shape[1:]))

    def bootstrap_means(self, seed: int) -> FloatArray:
        """(resample, layer, head) importance on resampled examples."""
        return self._normalise(resampled_means(self.values, self.weights, seed=seed))

    def estimates(self, seed: int) -> Estimates:
        """(layer, head) importance with intervals over examples."""
        value = self.mean
        n = np.isfinite(self.values).sum(0)
        low, high = np.full((2, *value.shape), np.nan)
        mask = n > 1
        if mask.any():
            low[mask], high[mask] = percentile_interval(self.bootstrap_means(seed)[:, mask])
        return Estimates(value=value, low=np.fmin(low, value), high=np.fmax(high, value), n=n)

    def _normalise(self, values: FloatArray) -> FloatArray:
        return normalise_layers(values) if self.normalise else values


def gradient_importance(gradients: HeadGradients, *, legacy: bool, normalise: bool) -> HeadImportance:
    """Michel et al.'s |∂L/∂ξ|: absolute per example, or per token with `legacy`, as in the released code."""
    if not legacy:
        return HeadImportance(gradients.gradient, np.ones(len(gradients.n_tokens)), normalise)
    per_token = gradients.absolute_by_token / gradients.n_tokens[:, None, None]
    return HeadImportance(per_token, gradients.n_tokens, normalise)


def confidence_importance(gradients: HeadGradients) -> HeadImportance:
    """Voita et al.'s confidence: the mean over tokens of the highest weight on a non-special token."""
    return HeadImportance(gradients.max_weights / gradients.n_tokens[:, None, None], gradients.n_tokens)


def relevance_importance(encoder: TaskEncoder, evaluation: Evaluation) -> HeadImportance:
    """Voita et al.'s relevance: the share of a head in its layer's relevance for the prediction."""
    return HeadImportance(head_relevance(encoder, evaluation), np.ones(len(evaluation.examples)))


def ablation_importance(
    encoder: TaskEncoder,
    evaluation: Evaluation,
    cache: AnalysisCache,
    *,
    removed_heads: BoolArray,
    use_score: bool = False,
) -> HeadImportance:
    """The increase of the loss, in nats, when one more head is removed; NaN for heads that are removed already.

    With `use_score`, the drop of the score instead, each example weighted by its total count.
    """
    remaining = np.argwhere(~removed_heads)
    single_heads = np.eye(removed_heads.size, dtype=np.bool_).reshape(-1, *removed_heads.shape)
    head_sets = removed_heads | single_heads[~removed_heads.ravel()]
    start = [removed_heads] if removed_heads.any() else []
    intact, *variants = evaluate_without(encoder, evaluation, [*start, *head_sets], cache)
    before = variants.pop(0) if start else intact
    values = np.full((len(evaluation.examples), *removed_heads.shape), np.nan)
    for (layer, head), after in zip(remaining, variants, strict=True):
        values[:, layer, head] = (
            _example_scores(before) - _example_scores(after) if use_score else after.losses - before.losses
        )
    return HeadImportance(values, before.counts.total if use_score else np.ones(len(evaluation.examples)))


def importance_by_method(
    method: str,
    encoder: TaskEncoder,
    evaluation: Evaluation,
    cache: AnalysisCache,
    *,
    removed_heads: BoolArray,
    legacy: bool,
    normalise: bool,
    criterion: AblationCriterion = "absolute-loss-change",
) -> HeadImportance:
    """Importance by one of `METHODS`, in a model without the removed heads."""
    if method == ABLATION:
        use_score = criterion == "score-drop"
        importance = ablation_importance(encoder, evaluation, cache, removed_heads=removed_heads, use_score=use_score)
        return importance.absolute if criterion == "absolute-loss-change" else importance
    variant = keep_heads(encoder, ~removed_heads) if removed_heads.any() else encoder
    if method == RELEVANCE:
        return relevance_importance(variant, evaluation)
    gradients = head_gradients(variant, evaluation)
    if method == CONFIDENCE:
        return confidence_importance(gradients)
    return gradient_importance(gradients, legacy=legacy, normalise=normalise)


def evaluate_without(
    encoder: TaskEncoder, evaluation: Evaluation, head_sets: Sequence[BoolArray], cache: AnalysisCache
) -> list[Scores]:
    """Scores of the intact model, then without each set of heads, in order; equal sets are evaluated once."""
    keys = [heads.tobytes() for heads in head_sets]
    ablations = {key: HeadAblation(heads) for key, heads in zip(keys, head_sets, strict=True) if heads.any()}
    runner = prepare_ablation(encoder, evaluation, "zero")
    intact, *ablated = runner.evaluate(evaluation, list(ablations.values()), cache)
    scores = dict(zip(ablations, ablated, strict=True))
    return [intact, *(scores.get(key, intact) for key in keys)]


def keep_heads(encoder: TaskEncoder, kept_heads: BoolArray) -> TaskEncoder:
    """The encoder with the output of all other heads set to zero."""
    return encoder.with_gates(Gates(scale=torch.from_numpy(kept_heads).float().to(encoder.device)))


def prepare_ranking(encoder: Encoder, corpus: Corpus, options: EvaluationOptions) -> tuple[TaskEncoder, Evaluation]:
    """An encoder whose heads can be removed, and its evaluation."""
    if not isinstance(encoder, TaskEncoder) or encoder.is_pruned:
        raise Refusal(
            f"{encoder.name} has no heads that can be removed one by one",
            "a transformer that has not been pruned",
            "Choose another model",
        )
    # Sorted by content, so that results do not depend on the order of the corpus.
    sorted_corpus = Corpus(tuple(sort_by_content(corpus.examples)), name=corpus.name)
    return encoder, prepare_evaluation(encoder, sorted_corpus, **asdict(options))


@dataclass(frozen=True, eq=False)
class SplitEvaluation:
    """Two random halves of an evaluation: what is selected on one half is tested on the other, in both directions."""

    halves: tuple[Evaluation, Evaluation]
    in_first: BoolArray
    """(example,) of the whole evaluation: whether it is in the first half."""

    @property
    def directions(self) -> tuple[tuple[Evaluation, Evaluation], tuple[Evaluation, Evaluation]]:
        """The half that selects and the half that tests it, both ways round."""
        first, second = self.halves
        return (first, second), (second, first)

    @property
    def selection_masks(self) -> tuple[BoolArray, BoolArray]:
        """(example,) of the whole evaluation, for each direction: whether it selects."""
        return self.in_first, ~self.in_first

    def join(self, tested: Sequence[Scores]) -> Scores:
        """The test scores of both directions, one score for every example of the whole evaluation."""
        second, first = tested
        arrays = np.zeros((3, len(self.in_first)))
        arrays[:, self.in_first] = first.to_lists()
        arrays[:, ~self.in_first] = second.to_lists()
        return Scores.from_arrays(*arrays)


def split_halves(encoder: TaskEncoder, evaluation: Evaluation, *, seed: int, mask_seed: int) -> SplitEvaluation:
    """Two random halves; examples with the same text are in one half. `mask_seed` is that of the masked tokens."""
    texts = ["\n".join(segment.text for segment in example.segments) for example in evaluation.examples]
    in_first = selection_half(texts, seed)
    if in_first.all() or not in_first.any():
        raise _not_divisible(len(texts))

    def half(mask: BoolArray) -> Evaluation:
        # An example with several texts is in the evaluation once for each of them.
        selected = [evaluation.examples[index] for index in np.flatnonzero(mask)]
        examples = list({id(example): example for example in selected}.values())
        part = with_perturbed_examples(encoder, evaluation, examples, seed=mask_seed)
        assert len(part.examples) == mask.sum(), "a half has other examples than the evaluation"
        return part

    return SplitEvaluation((half(in_first), half(~in_first)), in_first)


def example_halves(evaluation: Evaluation, *, seed: int) -> BoolArray:
    """(split, example) random halves of the examples; those with the same text are in one half."""
    texts = ["\n".join(segment.text for segment in example.segments) for example in evaluation.examples]
    if len(set(texts)) < 2:
        raise _not_divisible(len(texts))
    return random_halves(texts, seed=seed)


def _not_divisible(n_examples: int) -> Refusal:
    return Refusal(
        f"{n_examples} examples with the same text cannot be split into halves",
        "at least two different texts: one half ranks heads, the other is the test set",
        "Use a larger corpus",
    )


def rank_agreement(first: FloatArray, second: FloatArray, *, within_layers: bool) -> FloatArray:
    """(n,) Spearman correlations of (n, layer, head) values: over all heads, or the mean of those within layers."""
    a, b = (torch.from_numpy(np.ascontiguousarray(values)) for values in (first, second))
    if not within_layers:
        a, b = a.flatten(1), b.flatten(1)
    correlations = spearman(a, b, torch.isfinite(a) & torch.isfinite(b)).double()
    return (correlations.nanmean(-1) if within_layers else correlations).numpy()


def parse_methods(names: str, allowed: Sequence[str]) -> tuple[str, ...]:
    """Importance measures from a comma-separated list; all allowed ones if it is empty."""
    methods = tuple(dict.fromkeys(name.strip().lower() for name in names.split(",") if name.strip()))
    for name in methods:
        if name not in allowed:
            raise unknown_name("importance measure", name, allowed)
    return methods or tuple(allowed)


def _example_scores(scores: Scores) -> FloatArray:
    """(example,) correct over total; NaN if the total is 0."""
    return ratio(scores.counts.correct, scores.counts.total, empty=np.nan)
