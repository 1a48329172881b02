"""Score under attacks on the input text at test time (si2019)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import analysis
from bertology.analyses.evaluation.options import AttackOptions
from bertology.analyses.evaluation.score_change import Scores, reference_score, score_answers
from bertology.analyses.text_attacks.partial_scores import (
    PartialScores,
    baseline_by_example,
    distinct_examples,
    paired_score_drop,
)
from bertology.analyses.text_attacks.perturbations import AttackConfig
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean, bootstrap_proportion, exact_where_unanimous
from bertology.results.shapes import Table

SCORE, DROP = "score under attack", "score drop"
CHANGE_RATE, EDIT_RATE = "proportion of examples changed", "edit distance per word"
CLEAN_INPUT, RANDOM_EDITS, CHANCE = "clean input", "random edits (same amount)", "chance"
ATTRIBUTES = (
    "n_changed", "mean_shuffle_distance", "n_shuffles", "n_below_minimum", "n_truncated", "n_not_evaluated",
)  # fmt: skip


@analysis(
    question="How much accuracy is lost when the input is shuffled, truncated or otherwise attacked at test time?",
    special_tokens="Special tokens: included. Classes are read at the first token.",
    citations=("si2019",),
    version=3,
    answers=True,
)
def attacks(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    attacks: Annotated[
        str, "Attacks to run, comma-separated; `all`: every attack that applies to the examples."
    ] = "all",
    options: AttackOptions = AttackOptions(),
    config: AttackConfig = AttackConfig(),
) -> Table:
    """Score on attacked examples (0 to 1), and its drop from the score on the same clean examples (-1 to 1).

    Each row is an attack at test time; the model is not changed. Some attacks shuffle words or sentences, some remove
    the question, passage or first text; the seven attacks of si2019 apply to multiple choice and leave the question and
    the gold option intact. The baseline `random edits (same amount)` replaces, adds or removes as many words at random
    positions of the same texts, so that length and edit distance in words equal those of the attack: an attack that
    costs no more is not more misleading than chance. Further baselines are the most frequent label (or token, or the
    first words of a passage), and for multiple choice chance: one divided by the number of options.

    Texts longer than the model's maximum input are cut before they are attacked, and words that are added take the
    place of the last words of the passage that no longer fit (`n_truncated`). `proportion of examples changed` counts
    examples whose tokens differ as the model sees them, and `edit distance per word` is divided by the example's words;
    `score drop` is over all examples. The score is accuracy, F1 of answers, or accuracy on masked tokens (sampled from
    the attacked text). An attack that changes no example has no numbers. The words of an answer are never changed.
    Random choices depend on the text and the seed only: two models get the same attacked texts where these fit both.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.text_attacks.runner import AttackRunner

    if not 0 <= config.shuffle_distance <= 1 or not 0 <= config.typo_rate <= 1:
        raise Refusal(
            f"--shuffle-distance is {config.shuffle_distance} and --typo-rate is {config.typo_rate}",
            "numbers from 0 to 1",
            "Omit them for 0.6 and 0.2",
        )
    seed = options.seed
    runner = AttackRunner(encoder, corpus, cache, options, config)
    results = runner.run(attacks)
    clean = runner.clean_scores.counts
    shape, evaluation = (len(results),), runner.evaluation
    metric, majority = evaluation.metric, baseline_by_example(evaluation)
    attacked, random = [result.attacked for result in results], [result.random for result in results]
    measures, random_measures = (
        {
            SCORE: bootstrap_proportion(
                np.stack([version.scores.counts.correct for version in versions], axis=1),
                np.stack([version.scores.counts.total for version in versions], axis=1),
                seed=seed,
            ),
            DROP: Estimates.stack([paired_score_drop(clean, version.scores.counts, seed=seed) for version in versions]),
            CHANGE_RATE: exact_where_unanimous(
                bootstrap_mean(np.stack([version.is_changed for version in versions], axis=1), seed=seed)
            ),
            EDIT_RATE: bootstrap_mean(np.stack([version.edit_rate for version in versions], axis=1), seed=seed),
        }
        for versions in (attacked, random)
    )
    baselines = {
        CLEAN_INPUT: {SCORE: bootstrap_proportion(clean.correct, clean.total, seed=seed).broadcast_to(shape)},
        RANDOM_EDITS: random_measures,
    }
    if majority is not None:
        majority_score = bootstrap_proportion(majority.correct, majority.total, seed=seed)
        baselines[evaluation.baseline_name] = {SCORE: majority_score.broadcast_to(shape)}
    if evaluation.task == "choice":
        chance = np.mean([1 / (len(example.segments) - 2) for example in runner.examples])
        baselines[CHANCE] = {SCORE: Estimates.exact(np.full(shape, chance), len(runner.examples))}
    scores: dict[str, Scores | PartialScores] = {CLEAN_INPUT: runner.clean_scores}
    for result in results:
        scores[result.attack.name] = result.attacked.scores
        scores[f"{result.attack.name}: {RANDOM_EDITS}"] = result.random.scores
    table = Table(
        row_names=tuple(result.attack.name for result in results),
        measures=measures,
        baselines=baselines,
        units={
            SCORE: f"{metric}, 0 to 1",
            DROP: f"change in {metric}, -1 to 1",
            CHANGE_RATE: "proportion of examples, 0 to 1",
            EDIT_RATE: "edit distance / number of words",
        },
        attributes={name: tuple(getattr(result, name) for result in results) for name in ATTRIBUTES},
        notes={result.attack.name: result.attack.description for result in results},
        sample=evaluation.sample() | {"examples": len(runner.examples)},
        reference=None
        if majority is None
        else reference_score(CLEAN_INPUT, [clean], evaluation.baseline_name, majority, seed),
    )
    distinct = replace(evaluation, examples=tuple(distinct_examples(evaluation)))
    return table.with_answers(lambda: score_answers(distinct, scores))
