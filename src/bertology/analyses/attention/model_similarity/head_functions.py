"""Functions that heads gained or lost between two models on the same corpus (Voita et al. 2019)."""

from __future__ import annotations

import numpy as np

from bertology.analyses.head_selection.functions import (
    FunctionThresholds,
    assign_functions,
    baseline_correct,
    count_function_links,
    function_links,
    selection_halves,
)
from bertology.analyses.head_selection.gold_links import GoldLink
from bertology.analyses.head_selection.selection import ZERO, head_attributes
from bertology.corpus.word_frequencies import english_frequencies
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.estimates.cross_fitting import held_out_ratio
from bertology.estimates.estimate import Estimate, Estimates
from bertology.recording.recording import Recording
from bertology.results.shapes import Table

N_FREQUENT_WORDS = 500
SCORE, SCORE_AGAINST, CHANGE = "score (model)", "score (against)", "change in score"


def function_changes(recording: Recording, against: Recording, *, min_examples: int, seed: int) -> Table:
    """Every function that a head has in one of the models: its score in each, and the difference.

    Functions are selected and confirmed separately in each model, as in `heads/functions`; scores are means over
    the halves of the sentences that did not select the function. `chosen_in` is the proportion of selections that chose
    it, for each model that has the function. Heads that gained or lost their function come first.
    """
    recording.corpus.require_annotations(
        "governors", "relations", analysis_name="attention/model_similarity --show functions"
    )
    frequencies = english_frequencies()
    frequent_words = frequencies.most_frequent(N_FREQUENT_WORDS)

    def extract_links(recorded_input: RecordedInput) -> list[GoldLink]:
        return function_links(recorded_input, frequencies, frequent_words)

    model_counts = count_function_links(recording, extract_links)
    against_counts = count_function_links(against, extract_links, model_counts.labels)
    before, after = (
        {
            (function.head, function.label): function
            for function in assign_functions(counts, FunctionThresholds(), min_examples=min_examples, seed=seed)
            if function.is_confirmed
        }
        for counts in (model_counts, against_counts)
    )
    functions = sorted(
        before.keys() | after.keys(), key=lambda function: (function in before and function in after, function)
    )
    if not functions:
        raise Refusal(
            f"No head of {recording.encoder.name} or {against.encoder.name} has a function on {recording.corpus.name}",
            "models and a treebank on which `heads/functions` finds functions",
            "Use a larger corpus, or lower --min-examples",
        )
    baselines, halves = baseline_correct(model_counts), selection_halves(model_counts, seed)
    scores: list[tuple[Estimate, Estimate, Estimate, Estimate]] = []
    for key in functions:
        label = model_counts.labels.index(key[1])
        held_out = ~halves[
            np.concatenate([functions_of[key].selections for functions_of in (before, after) if key in functions_of])
        ]
        total = model_counts.total[:, label].astype(np.float64)
        model_correct, against_correct = (
            counts.correct[(slice(None), *key[0], 0, label)].astype(np.float64)
            for counts in (model_counts, against_counts)
        )
        scores.append(
            (
                held_out_ratio(held_out, model_correct, total),
                held_out_ratio(held_out, against_correct, total),
                held_out_ratio(held_out, against_correct - model_correct, total, lowest=-1.0),
                held_out_ratio(held_out, baselines[:, label], total),
            )
        )
    score, score_against, change, baseline = (Estimates.stack(estimates) for estimates in zip(*scores, strict=True))
    unit = "proportion of examples, 0 to 1"
    return Table(
        measures={
            SCORE: score,
            SCORE_AGAINST: score_against,
            CHANGE: change,
        },
        baselines={
            "baseline": {SCORE: baseline, SCORE_AGAINST: baseline},
            ZERO: {CHANGE: Estimates.exact(np.zeros(len(functions)))},
        },
        units={SCORE: unit, SCORE_AGAINST: unit, CHANGE: "difference of proportions, -1 to 1"},
        row_names=tuple(f"{head} {label}" for head, label in functions),
        attributes={
            **head_attributes([head for head, _ in functions]),
            "function": tuple(label for _, label in functions),
            "status": tuple(
                "kept" if function in before and function in after else "lost" if function in before else "gained"
                for function in functions
            ),
            "chosen_in": tuple(round(before[key].chosen_in, 3) if key in before else None for key in functions),
            "chosen_in_against": tuple(round(after[key].chosen_in, 3) if key in after else None for key in functions),
        },
    )
