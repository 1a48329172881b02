"""Planted heads have their function, with example sentences; noise has none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.head_selection.functions import (
    POSITION_LABELS,
    RAREST_WORD,
    FunctionThresholds,
    assign_functions,
    function_kind,
    function_links,
    word_frequencies,
)
from bertology.analyses.head_selection.gold_links import count_links
from bertology.analyses.head_selection.selection import selection_half
from bertology.analyses.heads.functions import functions
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus, Example
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import ROOT, sentence_from_text
from bertology.errors import Refusal
from bertology.recording.manifest import open_recording
from bertology.recording.recording import Recording
from bertology.recording.sites import strongest_word_site
from bertology.results.shapes import Examples, Table
from shared_data import shared

ENGLISH = load_corpus("english", limit=150)
COUNTS = Counter(word.lower() for sentence in ENGLISH.sentences for word in sentence.words)
FREQUENT = frozenset(sorted(COUNTS, key=lambda word: (-COUNTS[word], word))[:20])


def along_relation(relation: str, *, up: bool) -> planted.HeadAttention:
    """A head that attends along one relation, and to random words otherwise."""

    def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        weights = planted.random_head(9)(recorded_input)
        sentence = recorded_input.text.segments[0]
        for word, (governor, word_relation) in enumerate(
            zip(sentence.governors or (), sentence.relations or (), strict=True)
        ):
            if word_relation == relation and governor != ROOT:
                source, target = (word, governor) if up else (governor, word)
                weights[source + 1] = np.eye(len(weights))[target + 1]
        return weights

    return head


def to_rarest_word(recorded_input: planted.RecordedInput) -> planted.FloatArray:
    """Every word attends to the rarest other word."""
    words = [word.lower() for word in recorded_input.text.words]
    n = len(recorded_input.tokens)
    weights = np.full((n, n), 1e-4)
    for word in range(len(words)):
        others = [other for other in range(len(words)) if other != word]
        weights[word + 1, min(others, key=lambda other: COUNTS[words[other]]) + 1] = 1
    return weights / weights.sum(1, keepdims=True)


HEADS = [
    [planted.offset_head(1), planted.random_head(1), along_relation("det", up=True)],
    [planted.random_head(2), along_relation("obj", up=False), to_rarest_word],
]
RECORDING = planted.make_recording(ENGLISH, HEADS)
EXPECTED = {
    "1-1": "positional: next word",
    "1-3": "syntactic: det, dependent to governor",
    "2-2": "syntactic: obj, governor to dependent",
    "2-3": "rarest word: rarest word",
}


def run(recording: Recording, **options: Any) -> Any:
    return run_analysis(functions, RunInputs(recording=recording), {"n_frequent_words": 20, **options}).data


def test_only_planted_heads_have_a_function() -> None:
    table = run(RECORDING)
    assert isinstance(table, Table)
    assert set(table.row_names) == {f"{layer}-{head}" for layer in (1, 2) for head in (1, 2, 3)}
    assert table.row_names[:4] == tuple(EXPECTED)  # those with a function come first
    for row, name in enumerate(table.row_names):
        function, kind = (table.attribute(key, row) for key in ("function", "function_kind"))
        if name in EXPECTED:
            assert f"{kind}: {function}" == EXPECTED[name]
            note = table.notes[name]
            assert table.measures["score"].value[row] > 0.9
            assert table.measures["score - baseline"].low[row] > 0
            assert note.count("example ") == 3
            assert note.count("| counterexample") == 1
        else:
            assert function is None and kind is None and table.attribute("closest_function", row), name


def test_noise_has_no_function() -> None:
    noise = planted.make_recording(ENGLISH, [[planted.random_head(number) for number in range(20, 30)]] * 2)
    table = run(noise)
    assert not any(table.attributes["function"])


def selection_half_by_text() -> dict[str, bool]:
    texts = [" ".join(recorded_input.text.words) for recorded_input in RECORDING.inputs]
    return dict(zip(texts, selection_half(texts, 0).tolist(), strict=True))


def test_a_function_must_be_confirmed_on_the_other_half() -> None:
    """A head that attends to the next word only in the selection half has no function."""
    in_selection_half = selection_half_by_text()

    def next_in_selection_half(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        head = (
            planted.offset_head(1) if in_selection_half[" ".join(recorded_input.text.words)] else planted.random_head(4)
        )
        return head(recorded_input)

    table = run(planted.make_recording(ENGLISH, [[next_in_selection_half]]))
    assert (table.attributes["function"], table.attributes["closest_function"]) == ((None,), ("next word",))
    assert table.measures["score"].value[0] < 0.2


def test_the_threshold_must_be_reached_in_both_halves() -> None:
    """Four words in five are far above the baseline, but below the threshold of positional functions."""
    in_selection_half = selection_half_by_text()

    def weaker_in_other_half(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        weights = planted.offset_head(1)(recorded_input)
        if not in_selection_half[" ".join(recorded_input.text.words)]:
            weights[::5] = planted.random_head(4)(recorded_input)[::5]
        return weights

    table = run(planted.make_recording(ENGLISH, [[weaker_in_other_half]]))
    assert 0.75 < table.measures["score"].value[0] < 0.9
    assert table.measures["p (Holm)"].value[0] < 0.01
    assert (table.attributes["function"], table.attributes["closest_function"]) == ((None,), ("next word",))


def test_high_scores_by_chance_on_few_examples_are_not_a_function() -> None:
    noise = planted.make_recording(ENGLISH, [[planted.random_head(number) for number in range(20, 40)]] * 2)
    table = run(noise, min_examples=4)
    is_high = (table.measures["score - baseline"].value >= 0.1) & np.isfinite(table.measures["p (Holm)"].value)
    assert is_high.any()
    assert not any(table.attributes["function"])


def test_examples_show_the_function() -> None:
    result = run(RECORDING, show="examples")
    assert isinstance(result, Examples)
    assert len(result.examples) == 4 * 4
    of_next_word = [example for example in result.examples if example.caption.startswith("1-1 next word: example")]
    assert len(of_next_word) == 3
    for example in of_next_word:
        assert example.score == 1
        assert example.highlights["to"] == tuple(word + 1 for word in example.highlights["from"])
    # A positional head has no real counterexample: the last sentence is the weakest.
    counterexamples = [example for example in result.examples if "counterexample" in example.caption]
    assert len(counterexamples) == 4


def test_links_of_positional_syntactic_and_rarest_word_functions() -> None:
    sentence = replace(
        sentence_from_text("the old dog sees cats and dogs"),
        governors=(2, 2, 3, ROOT, 3, 6, 4),
        relations=("det", "amod", "nsubj", "root", "obj", "cc", "conj"),
    )
    (recorded_input,) = planted.recorded_inputs(Corpus((Example((sentence,)),)))
    counts, frequent = word_frequencies([sentence.words, ("the", "old", "cats", "and", "dogs", "sees")], 1)
    assert frequent == {"and"}
    links: dict[str, list[Any]] = {
        label: [] for label in ("next word", "nsubj, governor to dependent", "obj, dependent to governor", RAREST_WORD)
    }
    for link in function_links(recorded_input, counts, frequent):
        for label in link.labels:
            if label in links:
                links[label].append((link.source, link.targets))
    assert links["next word"] == [(word, (word + 1,)) for word in range(6)]
    assert links["nsubj, governor to dependent"] == [(3, (2,))]
    assert links["obj, dependent to governor"] == [(4, (3,))]
    assert links[RAREST_WORD] == [(word, (2,)) for word in range(7) if word != 2]  # dog occurs once
    assert [function_kind(name) for name in ("next word", RAREST_WORD, "det, dependent to governor")] == [
        "positional",
        "rarest word",
        "syntactic",
    ]


def test_each_kind_of_function_has_its_threshold() -> None:
    thresholds = FunctionThresholds()
    assert thresholds.shortfall("next word", 0.95, 0.1) < 0 < thresholds.shortfall("next word", 0.85, 0.1)
    assert (
        thresholds.shortfall("det, dependent to governor", 0.61, 0.5)
        < 0
        < thresholds.shortfall("det, dependent to governor", 0.59, 0.5)
    )
    assert thresholds.shortfall(RAREST_WORD, 0.6, 0.1) < 0 < thresholds.shortfall(RAREST_WORD, 0.6, 0.7)


def test_too_small_a_corpus_is_refused() -> None:
    sentence = replace(sentence_from_text("a dog"), governors=(1, ROOT), relations=("det", "root"))
    with pytest.raises(Refusal, match="too small"):
        run(planted.make_recording(Corpus((Example((sentence,)),)), [[planted.uniform_head]]))


def test_corpora_without_trees_are_refused() -> None:
    with pytest.raises(Refusal, match="governors"):
        run(planted.make_recording(planted.make_corpus("no tree here"), [[planted.uniform_head]]))


def test_heads_of_bert_have_their_published_functions() -> None:
    """The next-word heads of Clark et al. and of Vig, and the determiner head 8-11."""
    recording = open_recording(shared("data/bert-base-attention"))
    table = run_analysis(functions, RunInputs(recording=recording)).data
    assert isinstance(table, Table)
    functions_by_head = dict(zip(table.row_names, table.attributes["function"], strict=True))
    assert functions_by_head["3-1"] == functions_by_head["3-10"] == "next word"
    assert functions_by_head["8-11"] == "det, dependent to governor"
    assert functions_by_head["1-1"] is None


def test_positions_equal_a_loop_over_words() -> None:
    site = strongest_word_site()
    noise = planted.make_recording(ENGLISH, [[planted.random_head(3)]]).with_sites([site])
    counts = count_links(
        noise, site, lambda recorded_input: function_links(recorded_input, COUNTS, FREQUENT), directions=("",)
    )
    correct, total = Counter[str](), Counter[str]()
    for recorded_input, attention in zip(noise.inputs, noise["attention"], strict=True):
        between_words = attention[0, 0, 1:-1, 1:-1].copy()
        np.fill_diagonal(between_words, -1)
        n_words = len(recorded_input.text.words)
        for word in range(n_words):
            for offset, name in POSITION_LABELS.items():
                if 0 <= word + offset < n_words:
                    total[name] += 1
                    correct[name] += n_words > 1 and int(between_words[word].argmax()) == word + offset
    for name in POSITION_LABELS.values():
        label = counts.labels.index(name)
        assert counts.total[:, label].sum() == total[name]
        assert counts.correct[:, 0, 0, 0, label].sum() == correct[name]
    assert assign_functions(counts, FunctionThresholds(), min_examples=10**6, seed=0) == []
