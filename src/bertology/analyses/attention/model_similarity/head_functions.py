"""Functions that heads gained or lost between two models on the same corpus (Voita et al. 2019)."""

from __future__ import annotations

import numpy as np

from bertology.analyses.head_selection.functions import (
    FunctionThresholds,
    assign_functions,
    baseline_correct,
    function_links,
    word_frequencies,
)
from bertology.analyses.head_selection.gold_links import GoldLink, count_links
from bertology.analyses.head_selection.selection import ZERO, head_attributes, selection_half
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_ratio
from bertology.recording.recording import Recording
from bertology.recording.sites import strongest_word_site
from bertology.results.shapes import Table

STRONGEST_WORD = strongest_word_site()
N_FREQUENT_WORDS = 500
SCORE, SCORE_AGAINST, CHANGE = "score (model)", "score (against)", "change in score"


def function_changes(recording: Recording, against: Recording, *, min_examples: int, seed: int) -> Table:
    """Every function that a head has in one of the models: its score in each, and the difference.

    Functions are nominated and confirmed separately in each model, as in `heads/functions`; scores are those of the
    half of the sentences that did not nominate. Heads that gained or lost their function come first.
    """
    recording.corpus.require_annotations(
        "governors", "relations", analysis_name="attention/model_similarity --show functions"
    )
    texts = [sentence.words for sentence in recording.corpus.sentences]
    word_counts, frequent_words = word_frequencies(texts, N_FREQUENT_WORDS)

    def extract_links(recorded_input: RecordedInput) -> list[GoldLink]:
        return function_links(recorded_input, word_counts, frequent_words)

    model_counts = count_links(recording, STRONGEST_WORD, extract_links, directions=("",))
    against_counts = count_links(against, STRONGEST_WORD, extract_links, directions=("",), labels=model_counts.labels)
    before, after = (
        {
            (function.head, function.label)
            for function in assign_functions(counts, FunctionThresholds(), min_examples=min_examples, seed=seed)
            if function.is_confirmed
        }
        for counts in (model_counts, against_counts)
    )
    functions = sorted(before | after, key=lambda function: (function in before and function in after, function))
    if not functions:
        raise Refusal(
            f"No head of {recording.encoder.name} or {against.encoder.name} has a function on {recording.corpus.name}",
            "models and a treebank on which `heads/functions` finds functions",
            "Use a larger corpus, or lower --min-examples",
        )
    held_out = ~selection_half(model_counts.unit_texts, seed)
    labels = [model_counts.labels.index(label) for _, label in functions]
    total = model_counts.total[held_out][:, labels]
    model_correct, against_correct = (
        np.stack(
            [counts.correct[(held_out, *head, 0, label)] for (head, _), label in zip(functions, labels, strict=True)], 1
        )
        for counts in (model_counts, against_counts)
    )
    baseline = bootstrap_ratio(baseline_correct(model_counts, ~held_out)[held_out][:, labels], total, seed=seed)
    unit = "proportion of examples, 0 to 1"
    return Table(
        measures={
            SCORE: bootstrap_ratio(model_correct, total, seed=seed),
            SCORE_AGAINST: bootstrap_ratio(against_correct, total, seed=seed),
            CHANGE: bootstrap_ratio(against_correct.astype(np.float64) - model_correct, total, seed=seed),
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
        },
    )
