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
    STRONGEST_WORD,
    FunctionThresholds,
    assign_functions,
    baseline_correct,
    count_function_links,
    function_kind,
    function_links,
)
from bertology.analyses.head_selection.gold_links import CHANCE
from bertology.analyses.head_selection.selection import selection_half
from bertology.analyses.heads.functions import functions
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import ROOT, sentence_from_text
from bertology.corpus.word_frequencies import WordFrequencies, corpus_frequencies, english_frequencies
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.manifest import open_recording
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.results.illustrations import Examples
from bertology.results.shapes import Table
from shared_data import shared

ENGLISH = load_corpus("english", limit=150)
FREQUENCIES = english_frequencies()
FREQUENT = FREQUENCIES.most_frequent(500)


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


def to_rarest_word(frequencies: WordFrequencies) -> planted.HeadAttention:
    """A head with which every word attends to the rarest other word, the first of several."""

    def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        words = recorded_input.text.words
        n = len(recorded_input.tokens)
        weights = np.full((n, n), 1e-4)
        for word in range(len(words)):
            others = [other for other in range(len(words)) if other != word]
            weights[word + 1, min(others, key=lambda other: frequencies[words[other]]) + 1] = 1
        return weights / weights.sum(1, keepdims=True)

    return head


HEADS = [
    [planted.offset_head(1), planted.random_head(1), along_relation("det", up=True)],
    [planted.random_head(2), along_relation("obj", up=False), to_rarest_word(FREQUENCIES)],
]
RECORDING = planted.make_recording(ENGLISH, HEADS)
EXPECTED = {
    "1-1": "positional: next word",
    "1-3": "syntactic: det, dependent to governor",
    "2-2": "syntactic: obj, governor to dependent",
    "2-3": "rarest word: rarest word",
}


def run(recording: Recording, **options: Any) -> Any:
    return run_analysis(functions, RunInputs(recording=recording), options).data


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
            assert float(table.attribute("chosen_in", row) or 0) > 0.9
            assert note.count("example ") == 3
            assert "counterexample" not in note or table.measures["score"].value[row] < 1
        else:
            assert function is None and kind is None and table.attribute("closest_function", row), name


def test_noise_has_no_function() -> None:
    noise = planted.make_recording(ENGLISH, [[planted.random_head(number) for number in range(20, 30)]] * 2)
    table = run(noise)
    assert not any(table.attributes["function"])


def test_words_that_occur_once_in_the_analysed_corpus_are_not_the_rarest() -> None:
    """A head that attends to any such word has no function, by the list or by counts of the corpus itself."""
    hapax_heads = planted.make_recording(ENGLISH, [[to_rarest_word(corpus_frequencies(load_corpus("english")))]])
    by_list = run(hapax_heads)
    assert by_list.attributes["function_kind"] != ("rarest word",)
    assert by_list.sample["of these with tied rarest words (scored at chance)"] < 10
    itself = run(hapax_heads, frequency_corpus="english", n_frequent_words=20)
    n, n_tied = (
        itself.sample[name]
        for name in ("inputs with a rarest word", "of these with tied rarest words (scored at chance)")
    )
    assert n_tied > 0.7 * n and itself.attributes["function"] == (None,)
    assert itself.measures["score"].value[0] < 0.6


def test_tied_rarest_words_are_scored_at_chance() -> None:
    """No word of the sentences is in the list: a head that attends to any of five words is right once in five."""
    texts = [" ".join(f"{letter}zqx{number}" for letter in "abcde") for number in range(300)]
    recording = planted.make_recording(planted.make_corpus(*texts), [[planted.random_head(5), planted.offset_head(1)]])
    counts = count_function_links(
        recording.with_sites([STRONGEST_WORD]),
        lambda recorded_input: [
            link for link in function_links(recorded_input, FREQUENCIES, FREQUENT) if RAREST_WORD in link.labels
        ],
    )
    assert counts.total[:, 0].tolist() == [4] * 300
    rates = counts.correct.sum(0)[0, :, 0, 0] / counts.total.sum()
    assert np.allclose(rates, [1 / 4, 1 / 5], atol=0.05)  # of four other words; the next word may not exist


def test_words_of_many_tokens_are_no_rare_word_function() -> None:
    """Untrained heads attend almost uniformly, so that most attention goes to words of many tokens, which are rare."""
    recording = record(load("random:mini@3"), ENGLISH, [STRONGEST_WORD])
    counts = count_function_links(
        recording, lambda recorded_input: function_links(recorded_input, FREQUENCIES, FREQUENT)
    )
    label = counts.labels.index(RAREST_WORD)
    total = counts.total[:, label].sum()
    best, baseline = (
        counts.correct[..., label].sum(0).max() / total,
        baseline_correct(counts)[:, label].sum() / total,
    )
    assert best > 3 * counts.baseline_correct[CHANCE][..., label].sum() / total
    assert best < baseline + 0.1
    assert not any(
        function.is_confirmed
        for function in assign_functions(counts, FunctionThresholds(rare_word=0.1), min_examples=20, seed=0)
    )


def weaker_next_word(share: int, *, words: bool) -> planted.HeadAttention:
    """A head that attends to the next word, but to a random one in each `share`-th sentence, or from such words."""

    def head(recorded_input: planted.RecordedInput) -> planted.FloatArray:
        weights, noise = planted.offset_head(1)(recorded_input), planted.random_head(4)(recorded_input)
        if words:
            weights[::share] = noise[::share]
            return weights
        return noise if len(" ".join(recorded_input.text.words)) % share == 0 else weights

    return head


def test_a_function_in_half_of_the_sentences_is_none() -> None:
    table = run(planted.make_recording(ENGLISH, [[weaker_next_word(2, words=False)]]))
    assert table.attributes["function"] == (None,)


def test_the_threshold_must_be_reached_by_the_held_out_score() -> None:
    """Five words in six are far above the baseline, but below the threshold of positional functions."""
    table = run(planted.make_recording(ENGLISH, [[weaker_next_word(6, words=True)]]))
    assert 0.75 < table.measures["score"].value[0] < 0.9
    assert table.measures["p (Holm)"].value[0] < 0.01
    assert (table.attributes["function"], table.attributes["closest_function"]) == ((None,), ("next word",))


def test_high_scores_by_chance_on_few_examples_are_not_a_function() -> None:
    noise = planted.make_recording(ENGLISH, [[planted.random_head(number) for number in range(20, 40)]] * 2)
    counts = count_function_links(
        noise.with_sites([STRONGEST_WORD]),
        lambda recorded_input: function_links(recorded_input, FREQUENCIES, FREQUENT),
    )
    mask = selection_half(counts.unit_texts, 0)
    gains = [
        (counts.correct[half, 0, :, 0] - baseline_correct(counts)[half, None]).sum(0)
        / np.maximum(1, counts.total[half].sum(0))
        for half in (mask, ~mask)
    ]
    assert all(((gain >= 0.1) & (counts.total.sum(0) >= 4)).any() for gain in gains)
    assert not any(run(noise, min_examples=4).attributes["function"])


def test_examples_show_the_function() -> None:
    result = run(RECORDING, show="examples")
    assert isinstance(result, Examples)
    of_next_word = [example for example in result.examples if example.caption.startswith("1-1 next word: example")]
    assert len(of_next_word) == 3
    for example in of_next_word:
        assert example.score == 1
        assert example.highlights["to"] == tuple(word + 1 for word in example.highlights["from"])
    counterexamples = [example for example in result.examples if "counterexample" in example.caption]
    assert all(example.score is not None and example.score < 1 for example in counterexamples)
    assert len(result.examples) == 4 * 3 + len(counterexamples)


def test_only_a_sentence_that_contradicts_the_function_is_a_counterexample() -> None:
    for head, n_counterexamples in ((planted.offset_head(1), 0), (weaker_next_word(20, words=True), 1)):
        result = run(planted.make_recording(ENGLISH, [[head]]), show="examples")
        assert isinstance(result, Examples)
        counterexamples = [example for example in result.examples if "counterexample" in example.caption]
        assert len(counterexamples) == n_counterexamples and len(result.examples) == 3 + n_counterexamples


def test_links_of_positional_syntactic_and_rarest_word_functions() -> None:
    sentence = replace(
        sentence_from_text("the old dog sees cats and dogs"),
        governors=(2, 2, 3, ROOT, 3, 6, 4),
        relations=("det", "amod", "nsubj", "root", "obj", "cc", "conj"),
    )
    (recorded_input,) = planted.recorded_inputs(Corpus((Example((sentence,)),)))
    counts = corpus_frequencies(Corpus((Example((sentence,)), *planted.make_corpus("the old cats and dogs sees"))))
    frequent = counts.most_frequent(1)
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
    assert "rarest word" not in functions_by_head.values()


def test_positions_equal_a_loop_over_words() -> None:
    noise = planted.make_recording(ENGLISH, [[planted.random_head(3)]]).with_sites([STRONGEST_WORD])
    counts = count_function_links(noise, lambda recorded_input: function_links(recorded_input, FREQUENCIES, FREQUENT))
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
