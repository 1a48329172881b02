"""Functions are assigned to planted heads whatever the seed, and to noise as rarely as the level says."""

from __future__ import annotations

import numpy as np
import pytest

from bertology.analyses.head_selection.functions import (
    GUESSED_RAREST_WORD,
    STRONGEST_WORD,
    FunctionThresholds,
    assign_functions,
    count_function_links,
    function_links,
    selection_halves,
)
from bertology.analyses.head_selection.gold_links import CHANCE, FIXED_OFFSET, LinkCounts
from bertology.corpus.read import load_corpus
from bertology.corpus.word_frequencies import english_frequencies
from bertology.encoder.load import load
from bertology.estimates.cross_fitting import N_SPLITS
from bertology.recording.recorder import record

LABELS = ("next word", "previous word", *(f"{name}, dependent to governor" for name in ("nsubj", "obj", "det", "amod")))
N_HEADS = 6
OFFSET_RATES = (0.4, 0.3, 0.1)


def sample_links(seed: int, n_units: int, rates: dict[tuple[int, str], float], *, noise: float = 0.4) -> LinkCounts:
    """Random answers of one layer of heads, at the rate `noise` but for `rates`; the best offset has a rate of 0.4.

    Sentences differ in difficulty, and some have no example of a relation. Positions are found at chance, 0.1.
    """
    generator = np.random.default_rng(seed)
    total = generator.integers(0, 4, (n_units, len(LABELS)))
    total[:, :2] += 5
    p = np.full((N_HEADS, len(LABELS)), noise)
    p[:, :2] = 0.1
    for (head, label), rate in rates.items():
        p[head, LABELS.index(label)] = rate
    easiness = generator.uniform(0.5, 1.5, (n_units, 1, 1))
    correct = generator.binomial(total[:, None], np.where(p < 0.65, p * easiness, p))
    offset_rates = np.array(OFFSET_RATES)[:, None] * easiness
    offsets = generator.binomial(np.broadcast_to(total[:, None], (n_units, 3, len(LABELS))), offset_rates)
    return LinkCounts(
        LABELS,
        ("",),
        tuple(f"text {unit:04d}" for unit in range(n_units)),
        correct[:, None, :, None].astype(np.uint16),
        total.astype(np.uint16),
        {FIXED_OFFSET: offsets.astype(float), CHANCE: 0.1 * total[:, None], GUESSED_RAREST_WORD: offsets.astype(float)},
        {FIXED_OFFSET: ("-1", "+1", "+2"), CHANCE: ("",), GUESSED_RAREST_WORD: ("-1", "+1", "+2")},
    )


def assigned(counts: LinkCounts, seed: int, *, syntactic: float = 0.1) -> dict[int, str]:
    thresholds = FunctionThresholds(syntactic=syntactic)
    functions = assign_functions(counts, thresholds, min_examples=20, seed=seed)
    return {function.head[1]: function.label for function in functions if function.is_confirmed}


@pytest.mark.parametrize("n_units", [15, 60])
def test_noise_has_a_function_as_rarely_as_the_level_says(n_units: int) -> None:
    """200 data sets in which every head has the rate of the best offset for every relation, without a threshold."""
    found = [assigned(sample_links(seed, n_units, {}), seed, syntactic=0.0) for seed in range(200)]
    assert np.mean([len(functions) > 0 for functions in found]) <= 0.05


def test_planted_functions_are_found_with_every_seed() -> None:
    planted = {(0, "next word"): 0.97, (2, "nsubj, dependent to governor"): 0.8, (4, "det, dependent to governor"): 0.7}
    counts = sample_links(1, 120, planted)
    for seed in range(8):
        assert assigned(counts, seed) == dict(planted.keys())


def test_scores_are_those_of_the_halves_that_did_not_select() -> None:
    """By hand: the mean accuracy on the other half of each selection that chose the function."""
    counts = sample_links(3, 60, {(1, "obj, dependent to governor"): 0.62})
    function = assign_functions(counts, FunctionThresholds(), min_examples=20, seed=5)[1]
    assert function.label == "obj, dependent to governor" and 0 < function.chosen_in <= 1
    assert function.chosen_in == len(function.selections) / (2 * N_SPLITS)
    label, halves = LABELS.index(function.label), selection_halves(counts, 5)
    correct, total = counts.correct[:, 0, 1, 0, label], counts.total[:, label]
    accuracies = [correct[~half].sum() / total[~half].sum() for half in halves[function.selections]]
    assert np.mean(accuracies) == pytest.approx(function.accuracy.value)
    assert function.accuracy.value <= correct.sum() / total.sum() + 0.01
    assert function.accuracy.n == (total > 0).sum()


def test_equally_good_functions_share_the_selections() -> None:
    """Four relations at the same rate: none is chosen in nearly all selections."""
    rates = {(0, f"{name}, dependent to governor"): 0.8 for name in ("nsubj", "obj", "det", "amod")}
    chosen_in = [
        assign_functions(sample_links(seed, 80, rates), FunctionThresholds(), min_examples=20, seed=0)[0].chosen_in
        for seed in range(10)
    ]
    assert np.mean(chosen_in) < 0.75


def test_functions_of_a_model_do_not_depend_on_the_seed() -> None:
    frequencies = english_frequencies()
    frequent_words = frequencies.most_frequent(500)
    recording = record(load("mini"), load_corpus("english", limit=400), [STRONGEST_WORD])
    counts = count_function_links(
        recording, lambda recorded_input: function_links(recorded_input, frequencies, frequent_words)
    )
    by_seed = [
        {
            function.head: function.label
            for function in assign_functions(counts, FunctionThresholds(), min_examples=20, seed=seed)
            if function.is_confirmed
        }
        for seed in range(8)
    ]
    assert len(by_seed[0]) > 8 and all(functions == by_seed[0] for functions in by_seed)
