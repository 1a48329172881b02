"""Which heads gained or lost a function between two recordings of one corpus (voita2019; see `head_functions`)."""

from __future__ import annotations

import numpy as np

from bertology.errors import Refusal
from bertology.measures.heads.head_choice import first_half
from bertology.measures.heads.head_functions import (
    Thresholds,
    baseline_hits,
    frequencies,
    function_questions,
    functions_of,
)
from bertology.measures.heads.word_questions import Question, tally
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.recording.word_sites import strongest_word
from bertology.results.estimate import Estimates
from bertology.results.sampling import pooled_over_sentences
from bertology.results.shapes import Table

SITE = strongest_word()
FREQUENT = 500
BEFORE, AFTER, CHANGE = "before", "after", "change"


def function_changes(recording: Recording, against: Recording, *, minimum: int, seed: int) -> Table:
    """Every function that a head has in one of the recordings: how often it is right in each, and the difference.

    `before` is the first recording, `after` the second. Functions are nominated and confirmed in each recording by
    itself, as in `heads/functions`; the numbers are of the half of the sentences that did not nominate. Heads whose
    function was gained or lost come first.
    """
    recording.corpus.require("heads", "relations", purpose="attention/change --show functions")
    counts, top = frequencies([part.words for part in recording.corpus.sentences], FREQUENT)

    def ask(entry: Entry) -> list[Question]:
        return function_questions(entry, counts, top)

    first = tally(recording, SITE, ask, directions=("",))
    second = tally(against, SITE, ask, directions=("",), labels=first.labels)
    held = [
        {(one.head, one.label) for one in functions_of(each, Thresholds(), minimum=minimum, seed=seed) if one.confirmed}
        for each in (first, second)
    ]
    found = sorted(held[0] | held[1], key=lambda one: (one in held[0] and one in held[1], one))
    if not found:
        raise Refusal(
            f"No head of {recording.encoder.name} or {against.encoder.name} has a function on {recording.corpus.name}",
            "models and a corpus of trees on which `heads/functions` finds some",
            "Give a larger corpus, or lower --minimum",
        )
    scored = ~first_half(first.keys, seed)
    labels = [first.labels.index(label) for _, label in found]
    cases = first.cases[scored][:, labels]
    hits = [
        np.stack([each.hits[(scored, *head, 0, number)] for (head, _), number in zip(found, labels, strict=True)], 1)
        for each in (first, second)
    ]
    ruled = pooled_over_sentences(baseline_hits(first, ~scored)[scored][:, labels], cases, seed=seed)
    share = "share of cases, 0 to 1, on the half that did not nominate"
    return Table(
        measures={
            BEFORE: pooled_over_sentences(hits[0], cases, seed=seed),
            AFTER: pooled_over_sentences(hits[1], cases, seed=seed),
            CHANGE: pooled_over_sentences(hits[1].astype(np.float64) - hits[0], cases, seed=seed),
        },
        baselines={
            "baseline": {BEFORE: ruled, AFTER: ruled},
            "no change": {CHANGE: Estimates.exact(np.zeros(len(found)))},
        },
        units={BEFORE: share, AFTER: share, CHANGE: "share of cases, -1 to 1"},
        rows_named=tuple(f"{head} {label}" for head, label in found),
        notes={
            f"{head} {label}": "lost" if (head, label) not in held[1] else "gained"
            for head, label in found
            if not ((head, label) in held[0] and (head, label) in held[1])
        },
    )
