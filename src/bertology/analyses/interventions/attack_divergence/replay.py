"""Pairs of clean and attacked texts: divergence of activations, loss and score after each layer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.evaluation.ablation import LayerReordering, prepare_ablation
from bertology.analyses.evaluation.evaluation import with_perturbed_examples
from bertology.analyses.evaluation.options import AttackOptions
from bertology.analyses.interventions.attack_divergence.divergence import (
    ATTENTION,
    FIRST_TOKEN,
    STATES,
    ForwardActivations,
    forward_activations,
    layer_divergence,
)
from bertology.analyses.probing.train_test_split import randomised_encoder
from bertology.analyses.text_attacks.partial_scores import sum_by_example
from bertology.analyses.text_attacks.perturbations import AttackConfig
from bertology.analyses.text_attacks.registry import parse_attacks
from bertology.analyses.text_attacks.runner import AttackRunner
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.encoder.encoder import Encoder, TaskEncoder
from bertology.errors import Refusal
from bertology.estimates.resampling import ratio

LOSS, SCORE_DROP = "change in loss", "score drop"
ExamplePair = tuple[Example, Example]
PairDivergence = dict[str, FloatArray]
"""(pair, layer + 1) divergence by measure; NaN for pairs that cannot be compared."""


@dataclass(frozen=True)
class AttackReplay:
    """Divergence of attacked pairs, of random edits of the same examples, and of attacked pairs in an untrained model.

    `n_flipped` of `n_changed` examples changed from right to wrong. `sample` counts the examples that were attacked.
    """

    attacked: PairDivergence
    random_edits: PairDivergence
    randomised: PairDivergence
    pairs: Sequence[ExamplePair]
    n_flipped: int
    n_changed: int
    sample: dict[str, int]

    def pair(self, number: int) -> ExamplePair:
        """One pair, counted from 1."""
        if not 1 <= number <= len(self.pairs):
            raise Refusal(
                f"--example is {number}, and there are {len(self.pairs)} text pairs",
                f"a number from 1 to {len(self.pairs)}",
                "Choose another --example or --attack",
            )
        return self.pairs[number - 1]


def replay_attack(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    options: AttackOptions,
    *,
    attack: str,
    select: Literal["flipped", "changed"],
    max_pairs: int,
    random_baseline: bool,
) -> AttackReplay:
    """Run one attack, and compare clean and attacked examples layer by layer."""
    runner = AttackRunner(encoder, corpus, cache, options, AttackConfig())
    text_attack = parse_attacks(attack, {example.kind for example in runner.examples})[0]
    attacked = [attacked.example for attacked in runner.attack_all(text_attack)]
    random_edits = runner.random_edits(attacked)
    scores = runner.evaluate(attacked)
    is_changed = runner.clean_scores.is_evaluated & scores.is_evaluated & runner.is_changed(attacked)
    is_flipped = is_changed & (scores.counts.correct < runner.clean_scores.counts.correct)
    selected = np.flatnonzero(is_flipped if select == "flipped" and is_flipped.any() else is_changed)[:max_pairs]
    pairs = [(runner.examples[index], attacked[index]) for index in selected]
    controls = [(runner.examples[index], random_edits[index]) for index in selected]
    randomised = randomised_encoder(encoder) if random_baseline else None
    return AttackReplay(
        _pair_divergence(encoder, runner, pairs, cache),
        _pair_divergence(encoder, runner, controls, cache),
        _pair_divergence(randomised or encoder, None, pairs if randomised is not None else [], cache),
        pairs,
        int(is_flipped.sum()),
        int(is_changed.sum()),
        runner.evaluation.sample() | {"examples": len(runner.examples)},
    )


def activations_of_both(
    encoder: Encoder, original: Example, perturbed: Example
) -> tuple[ForwardActivations, ForwardActivations]:
    """Activations on the first input in which two versions of an example differ."""
    for first, second in zip(original.text_inputs, perturbed.text_inputs, strict=True):
        if first.segments != second.segments:
            left, right = forward_activations(encoder, first), forward_activations(encoder, second)
            if left is not None and right is not None:
                return left, right
    raise Refusal(
        "A text of this pair is empty or too long for the model", "a pair that fits", "Choose another --example"
    )


def _pair_divergence(
    encoder: Encoder, runner: AttackRunner | None, pairs: Sequence[ExamplePair], cache: AnalysisCache
) -> PairDivergence:
    shape = (len(pairs), encoder.layers + 1)
    measures = {name: np.full(shape, np.nan) for name in (STATES, FIRST_TOKEN, ATTENTION, LOSS, SCORE_DROP)}
    for row, pair in enumerate(pairs):
        for name, distances in (layer_divergence(encoder, *pair) or {}).items():
            measures[name][row] = distances
    if runner is not None and pairs:
        before, after = (_scores_by_layer(encoder, runner, [pair[side] for pair in pairs], cache) for side in (0, 1))
        measures[LOSS], measures[SCORE_DROP] = after[0] - before[0], before[1] - after[1]
    return measures


def _scores_by_layer(
    encoder: Encoder, runner: AttackRunner, examples: Sequence[Example], cache: AnalysisCache
) -> tuple[FloatArray, FloatArray]:
    """(example, layer + 1) loss and score with the task head on each layer; NaN if it cannot be evaluated."""
    losses, scores = (np.full((len(examples), encoder.layers + 1), np.nan) for _ in range(2))
    row_of_id = {int(example.id): row for row, example in enumerate(examples)}
    try:
        evaluation = with_perturbed_examples(encoder, runner.evaluation, examples, seed=runner.seed)
    except Refusal:
        return losses, scores
    if not isinstance(encoder, TaskEncoder):
        return losses, scores
    truncations = [LayerReordering(tuple(range(n_layers))) for n_layers in range(encoder.layers)]
    intact, *truncated = prepare_ablation(encoder, evaluation).evaluate(evaluation, truncations, cache)
    rows = np.array([row_of_id[int(example.id)] for example in evaluation.examples])
    for layer, layer_scores in enumerate([*truncated, intact]):
        by_example = sum_by_example(layer_scores, rows, len(examples))
        losses[:, layer] = by_example.losses
        scores[:, layer] = ratio(by_example.counts.correct, by_example.counts.total, empty=np.nan)
    return losses, scores
