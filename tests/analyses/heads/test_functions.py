"""Planted heads get their function, with sentences that show it; noise gets none."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.heads.functions import functions
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import ROOT, from_text
from bertology.errors import Refusal
from bertology.measures.heads.head_functions import (
    POSITIONS,
    RAREST,
    Thresholds,
    frequencies,
    function_questions,
    functions_of,
    kind_of,
)
from bertology.measures.heads.word_questions import tally
from bertology.recording.opening import open_recording
from bertology.recording.recording import Recording
from bertology.recording.word_sites import strongest_word
from bertology.results.shapes import Example, Examples, Table
from shared_data import shared

ENGLISH = corpus_named("english", limit=150)
COUNTS = Counter(word.lower() for sentence in ENGLISH.sentences for word in sentence.words)
FREQUENT = frozenset(sorted(COUNTS, key=lambda word: (-COUNTS[word], word))[:20])


def following(relation: str, *, up: bool) -> planted.HeadMap:
    """A head that looks along one relation, and at random words otherwise."""

    def head(entry: planted.Entry) -> planted.Floats:
        weights = planted.noise(9)(entry)
        part = entry.input.parts[0]
        for word, (above, name) in enumerate(zip(part.heads or (), part.relations or (), strict=True)):
            if name == relation and above != ROOT:
                source, target = (word, above) if up else (above, word)
                weights[source + 1] = np.eye(len(weights))[target + 1]
        return weights

    return head


def at_rarest(entry: planted.Entry) -> planted.Floats:
    """Every word looks at the rarest other word."""
    words = [word.lower() for word in entry.input.words]
    n = len(entry.pieces)
    weights = np.full((n, n), 1e-4)
    for place in range(len(words)):
        others = [other for other in range(len(words)) if other != place]
        weights[place + 1, min(others, key=lambda other: COUNTS[words[other]]) + 1] = 1
    return weights / weights.sum(1, keepdims=True)


HEADS = [
    [planted.looking_at(1), planted.noise(1), following("det", up=True)],
    [planted.noise(2), following("obj", up=False), at_rarest],
]
RECORDING = planted.recording_of(ENGLISH, HEADS)
EXPECTED = {"1-1": "positional: next word", "1-3": "syntactic: det, dependent to head", "2-2": "syntactic: obj, head to dependent", "2-3": "rare word: rarest word"}  # fmt: skip  # noqa: E501


def asked(recording: Recording, **options: Any) -> Any:
    return run(functions, Subject(recording=recording), {"frequent": 20, **options}).data


def test_planted_functions_are_found_and_no_others() -> None:
    table = asked(RECORDING)
    assert isinstance(table, Table)
    assert set(table.rows_named) == {f"{layer}-{head}" for layer in (1, 2) for head in (1, 2, 3)}
    assert table.rows_named[:4] == tuple(EXPECTED)  # those with a function come first
    for place, name in enumerate(table.rows_named):
        note = table.notes[name]
        if name in EXPECTED:
            assert note.split(" | ")[0] == EXPECTED[name]
            assert table.measures["score"].value[place] > 0.9
            assert table.measures["gain"].low[place] > 0
            assert note.count("| shown") == 3
            assert note.count("| least shown") == 1
        else:
            assert note.startswith("no function found; nearest to "), name


def test_noise_has_no_function() -> None:
    noise = planted.recording_of(ENGLISH, [[planted.noise(number) for number in range(20, 30)]] * 2)
    table = asked(noise)
    assert all(note.startswith("no function found") for note in table.notes.values())


def test_a_half_that_does_not_confirm_takes_the_function_away() -> None:
    """A head that looks ahead in the nominating half only has no function."""
    from bertology.measures.heads.head_choice import first_half

    keys = [" ".join(entry.input.words) for entry in RECORDING.entries]
    nominating = dict(zip(keys, first_half(keys, 0).tolist(), strict=True))

    def fickle(entry: planted.Entry) -> planted.Floats:
        own = planted.looking_at(1) if nominating[" ".join(entry.input.words)] else planted.noise(4)
        return own(entry)

    table = asked(planted.recording_of(ENGLISH, [[fickle]]))
    assert table.notes["1-1"] == "no function found; nearest to positional: next word"
    assert table.measures["score"].value[0] < 0.2


def test_the_threshold_must_be_reached_in_both_halves() -> None:
    """Four words in five are far beyond any baseline, and still no position."""
    from bertology.measures.heads.head_choice import first_half

    keys = [" ".join(entry.input.words) for entry in RECORDING.entries]
    nominating = dict(zip(keys, first_half(keys, 0).tolist(), strict=True))

    def looser(entry: planted.Entry) -> planted.Floats:
        weights = planted.looking_at(1)(entry)
        if not nominating[" ".join(entry.input.words)]:
            weights[::5] = planted.noise(4)(entry)[::5]
        return weights

    table = asked(planted.recording_of(ENGLISH, [[looser]]))
    assert 0.75 < table.measures["score"].value[0] < 0.9
    assert table.measures["p"].value[0] < 0.01
    assert table.notes["1-1"] == "no function found; nearest to positional: next word"


def test_luck_with_few_cases_is_no_function() -> None:
    noise = planted.recording_of(ENGLISH, [[planted.noise(number) for number in range(20, 40)]] * 2)
    table = asked(noise, minimum=4)
    lucky = (table.measures["gain"].value >= 0.1) & np.isfinite(table.measures["p"].value)
    assert lucky.any()
    assert all(note.startswith("no function found") for note in table.notes.values())


def test_examples_show_what_they_say() -> None:
    shown = asked(RECORDING, show="examples")
    assert isinstance(shown, Examples)
    assert len(shown.examples) == 4 * 4
    for example in shown.examples:
        assert isinstance(example, Example)
        if example.caption.startswith("1-1 next word: shown"):
            assert example.score == 1
            assert example.marked["to"] == tuple(word + 1 for word in example.marked["from"])
    # A head of one position has no sentence that does not show it: the last one is the least bad.
    missed = [e for e in shown.examples if "least shown" in e.caption]
    assert len(missed) == 4


def test_questions_of_each_kind() -> None:
    part = replace(
        from_text("the old dog sees cats and dogs"),
        heads=(2, 2, 3, ROOT, 3, 6, 4),
        relations=("det", "amod", "nsubj", "root", "obj", "cc", "conj"),
    )
    (entry,) = planted.entries_of(Corpus((Item((part,)),)))
    counts, frequent = frequencies([part.words, ("the", "old", "cats", "and", "dogs", "sees")], 1)
    assert frequent == {"and"}
    asked = {label: [] for label in ("next word", "nsubj, head to dependent", "obj, dependent to head", RAREST)}
    for question in function_questions(entry, counts, frequent):
        for label in question.labels:
            if label in asked:
                asked[label].append((question.source, question.gold))
    assert asked["next word"] == [(word, (word + 1,)) for word in range(6)]
    assert asked["nsubj, head to dependent"] == [(3, (2,))]
    assert asked["obj, dependent to head"] == [(4, (3,))]
    assert asked[RAREST] == [(word, (2,)) for word in range(7) if word != 2]  # dog occurs once
    assert [kind_of(name) for name in ("next word", RAREST, "det, dependent to head")] == [
        "positional",
        "rare word",
        "syntactic",
    ]


def test_thresholds() -> None:
    limits = Thresholds()
    assert limits.short_by("next word", 0.95, 0.1) < 0 < limits.short_by("next word", 0.85, 0.1)
    assert (
        limits.short_by("det, dependent to head", 0.61, 0.5) < 0 < limits.short_by("det, dependent to head", 0.59, 0.5)
    )
    assert limits.short_by(RAREST, 0.6, 0.1) < 0 < limits.short_by(RAREST, 0.6, 0.7)


def test_too_small_a_corpus_is_refused() -> None:
    part = replace(from_text("a dog"), heads=(1, ROOT), relations=("det", "root"))
    with pytest.raises(Refusal, match="too small"):
        asked(planted.recording_of(Corpus((Item((part,)),)), [[planted.uniform]]))


def test_trees_are_needed() -> None:
    with pytest.raises(Refusal, match="heads"):
        asked(planted.recording_of(planted.corpus_of("no tree here"), [[planted.uniform]]))


def test_real_heads_of_bert() -> None:
    """The next-word heads of Clark et al. and of Vig, and the determiner head 8-11."""
    recording = open_recording(shared("data/bert-base-attention"))
    table = run(functions, Subject(recording=recording)).data
    assert isinstance(table, Table)
    for head in ("3-1", "3-10"):
        assert table.notes[head].startswith("positional: next word")
    assert table.notes["8-11"].startswith("syntactic: det, dependent to head")
    assert table.notes["1-1"].startswith("no function")


def test_positions_are_what_a_loop_says() -> None:
    site = strongest_word()
    noise = planted.recording_of(ENGLISH, [[planted.noise(3)]]).with_derived([site])
    counted = tally(noise, site, lambda entry: function_questions(entry, COUNTS, FREQUENT), directions=("",))
    hits, cases = Counter[str](), Counter[str]()
    for entry, maps in zip(noise.entries, noise["attention"], strict=True):
        between = maps[0, 0, 1:-1, 1:-1].copy()
        np.fill_diagonal(between, -1)
        words = len(entry.input.words)
        for word in range(words):
            for offset, name in POSITIONS.items():
                if 0 <= word + offset < words:
                    cases[name] += 1
                    hits[name] += words > 1 and int(between[word].argmax()) == word + offset
    for name in POSITIONS.values():
        place = counted.labels.index(name)
        assert counted.cases[:, place].sum() == cases[name]
        assert counted.hits[:, 0, 0, 0, place].sum() == hits[name]
    assert functions_of(counted, Thresholds(), minimum=10**6, seed=0) == []
