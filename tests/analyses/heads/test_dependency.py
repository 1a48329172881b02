"""Planted heads that follow the tree score 100 %, others chance; the best heads of BERT are those of the paper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.head_selection.gold_links import CHANCE, FIXED_OFFSET, count_links
from bertology.analyses.head_selection.selection import (
    BEST_ACCURACY,
    HELD_OUT_ACCURACY,
    INDISTINGUISHABLE,
    P_VALUE,
    difference_measure,
    selection_half,
)
from bertology.analyses.heads.dependency import ALL_RELATIONS, DIRECTIONS, INNER_EDGES, dependency, dependency_links
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus, Example
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import ROOT, Sentence, sentence_from_text
from bertology.errors import Refusal
from bertology.recording.manifest import open_recording
from bertology.recording.recording import Recording
from bertology.recording.sites import strongest_word_site
from bertology.results.shapes import HeadGrid, Table
from shared_data import shared

ENGLISH = load_corpus("english", limit=80)


def along_tree(recorded_input: planted.RecordedInput, *, up: bool) -> planted.FloatArray:
    """Every word attends to its governor (or the governor to it); other words attend to [CLS]."""
    n = len(recorded_input.tokens)
    weights = np.zeros((n, n))
    for word, head in enumerate(recorded_input.text.segments[0].governors or ()):
        if head != ROOT:
            weights[(word + 1, head + 1) if up else (head + 1, word + 1)] = 1
    weights[weights.sum(1) == 0, 0] = 1
    return weights / weights.sum(1, keepdims=True)


def to_governor(recorded_input: planted.RecordedInput) -> planted.FloatArray:
    return along_tree(recorded_input, up=True)


def to_dependents(recorded_input: planted.RecordedInput) -> planted.FloatArray:
    return along_tree(recorded_input, up=False)


HEADS = [
    [planted.random_head(1), to_governor, planted.random_head(2)],
    [planted.offset_head(1), planted.random_head(3), to_dependents],
]
RECORDING = planted.make_recording(ENGLISH, HEADS)
NOISE = planted.make_recording(ENGLISH, [[planted.random_head(number) for number in range(10, 16)]])


def table_of(recording: Recording, **options: Any) -> Table:
    data = run_analysis(dependency, RunInputs(recording=recording), options).data
    assert isinstance(data, Table)
    return data


def value(table: Table, row: str, measure: str = HELD_OUT_ACCURACY) -> float:
    return float(table.measures[measure].value[table.row_names.index(row)])


def baseline(table: Table, name: str, row: str, measure: str = HELD_OUT_ACCURACY) -> float:
    return float(table.baselines[name][measure].value[table.row_names.index(row)])


def test_planted_heads_are_found_in_both_directions() -> None:
    result = table_of(RECORDING)
    for relation in ("det", "nsubj", "case", INNER_EDGES):
        assert value(result, relation) == value(result, relation, BEST_ACCURACY) == 1, relation
        assert value(result, relation, P_VALUE) < 0.05, relation
        # The head that attends to dependents is as good: the word that attends most to a dependent is its governor.
        assert value(result, relation, INDISTINGUISHABLE) == 1, relation
        row = result.row_names.index(relation)
        for prefix in ("", "best_"):
            assert result.attribute(f"{prefix}head", row) == "1-2", relation
            assert result.attribute(f"{prefix}direction", row) == "dependent to governor", relation
        assert result.attribute("not_significantly_worse", row) == "2-3 governor to dependent", relation


def test_the_difference_is_paired_over_examples() -> None:
    """The value is the difference of both accuracies; the interval is that of paired examples."""
    result, lead = table_of(RECORDING), difference_measure(FIXED_OFFSET)
    own, rule = result.measures[HELD_OUT_ACCURACY], result.baselines[FIXED_OFFSET][HELD_OUT_ACCURACY]
    apart = result.measures[lead]
    np.testing.assert_allclose(apart.value, own.value - rule.value, atol=1e-12)
    np.testing.assert_array_equal(apart.n, own.n)
    # The difference of a head that is always right is the error rate of the offset, with the same interval.
    place = result.row_names.index("det")
    assert (apart.low[place], apart.high[place]) == pytest.approx((1 - rule.high[place], 1 - rule.low[place]))
    # A head that attends to the next word equals the best offset for determiners.
    same = table_of(planted.make_recording(ENGLISH, [[planted.offset_head(1)]]), relation="det")
    assert np.isclose(value(same, "det"), baseline(same, FIXED_OFFSET, "det"), atol=0.02)
    assert same.measures[lead].high[0] - same.measures[lead].low[0] < 0.5 * (
        same.measures[HELD_OUT_ACCURACY].high[0] - same.measures[HELD_OUT_ACCURACY].low[0]
    )


def test_every_head_is_in_the_grid() -> None:
    data = run_analysis(dependency, RunInputs(recording=RECORDING), {"show": "heads", "relation": "det"}).data
    assert isinstance(data, HeadGrid)
    up, down = (data.measures[f"det, {direction}"].value for direction in DIRECTIONS)
    assert up[0, 1] == down[1, 2] == 1
    chance = data.baselines[CHANCE][f"det, {DIRECTIONS[0]}"].value[0, 0]
    for head in ((0, 0), (0, 2), (1, 1)):
        assert abs(up[head] - chance) < 0.1, head
    # The best fixed offset is the next word.
    offset = data.baselines[FIXED_OFFSET][f"det, {DIRECTIONS[0]}"].value[0, 0]
    assert up[1, 0] == pytest.approx(offset)


def test_roots_are_always_wrong_and_count_in_all_relations() -> None:
    result = table_of(RECORDING)
    words = [head for sentence in ENGLISH.sentences for head in sentence.governors or ()]
    assert value(result, ALL_RELATIONS, BEST_ACCURACY) == pytest.approx(1 - words.count(ROOT) / len(words))


def test_noise_is_at_chance_and_never_beats_the_offset() -> None:
    result = table_of(NOISE)
    scored = np.isfinite(result.measures[P_VALUE].value)
    assert scored.sum() > 10
    assert (result.measures[P_VALUE].value[scored] > 0.05).all()
    assert np.mean(result.measures[difference_measure(FIXED_OFFSET)].low[scored] > 0) <= 0.05
    assert abs(value(result, ALL_RELATIONS) - baseline(result, CHANCE, ALL_RELATIONS)) < 0.03
    # Selected on all sentences, the best noise head seems better than it is.
    assert np.nanmean(result.measures[BEST_ACCURACY].value - result.measures[HELD_OUT_ACCURACY].value) > 0.02


def test_counts_equal_a_loop_over_words() -> None:
    """Accuracy of every head, direction and relation, and of offsets, one word at a time."""
    site = strongest_word_site()
    recording = NOISE.with_sites([site])
    counted = count_links(recording, site, dependency_links, directions=DIRECTIONS)
    place = counted.labels.index("nsubj")
    hits, offsets, cases = np.zeros((6, 2)), np.zeros(6), 0
    for recorded_input, maps in zip(recording.inputs, recording["attention"], strict=True):
        sentence = recorded_input.text.segments[0]
        between = maps[0][:, 1:-1, 1:-1].copy()
        for word, (head, relation) in enumerate(zip(sentence.governors or (), sentence.relations or (), strict=True)):
            if relation.split(":")[0] != "nsubj":
                continue
            cases += 1
            for number in range(6):
                np.fill_diagonal(between[number], -1)
                hits[number, 0] += between[number, word].argmax() == head
                hits[number, 1] += between[number, :, word].argmax() == head
            for number, offset in enumerate((-3, -2, -1, 1, 2, 3)):
                offsets[number] += min(word + offset, len(sentence) - 1) == head and word + offset >= 0
    assert counted.total[:, place].sum() == cases > 50
    np.testing.assert_array_equal(counted.correct[:, 0, :, :, place].sum(0), hits)
    np.testing.assert_array_equal(counted.baseline_correct[FIXED_OFFSET][..., place].sum(0), offsets)


def test_only_an_offset_can_find_a_root() -> None:
    """A sentence of one word has no strongest word, which must not be taken for the root."""
    alone = replace(sentence_from_text("Run"), governors=(ROOT,), relations=("root",))
    first = replace(sentence_from_text("run home now"), governors=(ROOT, 0, 0), relations=("root", "advmod", "advmod"))
    site = strongest_word_site()
    recording = planted.make_recording(Corpus((Example((alone,)), Example((first,)))), [[planted.uniform_head]])
    counted = count_links(
        recording.with_sites([site]), site, dependency_links, directions=DIRECTIONS, labels=(ALL_RELATIONS,)
    )
    hits = dict(zip(counted.unit_texts, counted.correct[:, 0, 0, :, 0].tolist(), strict=True))
    assert hits["Run"] == [0, 0]
    offsets = dict(zip(counted.unit_texts, counted.baseline_correct[FIXED_OFFSET][..., 0].tolist(), strict=True))
    # -3, -2, -1 find the root, -2 and -1 also one governor; 1, 2, 3 give the last word, never a governor.
    assert offsets["run home now"] == [1, 2, 2, 0, 0, 0]
    assert offsets["Run"] == [1, 1, 1, 0, 0, 0]


def test_relations_with_few_examples_are_not_scored() -> None:
    result = table_of(RECORDING, min_examples=40)
    row = result.row_names.index("flat")
    assert np.isnan(result.measures[HELD_OUT_ACCURACY].value[row])
    assert result.measures[HELD_OUT_ACCURACY].n[row] == 0
    assert result.notes["flat"].startswith("Not scored: ")


def possessive() -> Sentence:
    return replace(
        sentence_from_text("Ann 's old dog barks"),
        words=("Ann", "'s", "old", "dog", "barks"),
        offsets=((0, 3), (4, 6), (7, 10), (11, 14), (15, 20)),
        governors=(3, 0, 3, 4, ROOT),
        relations=("nmod:poss", "case", "amod", "nsubj", "root"),
    )


def test_the_clitic_is_read_instead_of_its_possessor() -> None:
    (recorded_input,) = planted.recorded_inputs(Corpus((Example((possessive(),)),)))
    plain, asked = (dependency_links(recorded_input, possessive_clitic=clitic)[0] for clitic in (False, True))
    assert (plain.source, plain.targets, plain.read_word) == (0, (3,), 0)
    assert (asked.source, asked.targets, asked.read_word) == (0, (3,), 1)
    assert dependency_links(recorded_input, possessive_clitic=True)[1].read_word == 1  # only possessors


def test_names_of_relations() -> None:
    (recorded_input,) = planted.recorded_inputs(Corpus((Example((possessive(),)),)))
    assert dependency_links(recorded_input, "corpus")[0].labels == (ALL_RELATIONS, INNER_EDGES, "nmod", "nmod:poss")
    assert dependency_links(recorded_input, "stanford")[0].labels == (ALL_RELATIONS, INNER_EDGES, "poss")
    assert (
        dependency_links(recorded_input, "stanford")[1].labels[-1] == "case"
    )  # its edges differ from those of Stanford's


def test_a_single_relation_and_an_unknown_one() -> None:
    assert table_of(RECORDING, relation="nsubj").row_names == ("nsubj",)
    with pytest.raises(Refusal, match="amod"):
        table_of(RECORDING, relation="nsubjj")


def test_unknown_relations_have_a_note() -> None:
    odd = replace(possessive(), relations=("nmod:poss", "case", "colour", "nsubj", "root"))
    corpus = Corpus((Example((odd,)), Example((possessive(),))))  # a single text: all in one half
    result = table_of(planted.make_recording(corpus, [[planted.uniform_head]]), min_examples=2)
    assert result.notes["colour"].endswith("Not a relation of Universal or Stanford Dependencies.")
    assert "Not a relation" not in result.notes["amod"]


def test_words_without_tokens_are_counted() -> None:
    def without_first(recorded_input: planted.RecordedInput) -> planted.RecordedInput:
        word = np.where(recorded_input.tokens.word_ids == 0, -1, recorded_input.tokens.word_ids).astype(np.int32)
        return replace(recorded_input, tokens=replace(recorded_input.tokens, word_ids=word))

    recording = replace(RECORDING, inputs=tuple(without_first(recorded_input) for recorded_input in RECORDING.inputs))
    result = table_of(recording)
    lost = sum(
        word == 0 or head == 0 for sentence in ENGLISH.sentences for word, head in enumerate(sentence.governors or ())
    )
    assert result.sample["words skipped (no token)"] == lost
    assert value(result, "det") == 1


def test_corpora_without_trees_are_refused() -> None:
    with pytest.raises(Refusal, match="governors"):
        table_of(planted.make_recording(planted.make_corpus("no tree here"), [[planted.uniform_head]]))


def test_halves_depend_only_on_texts() -> None:
    keys = [f"sentence {number}" for number in range(40)] + ["sentence 3", "sentence 4"]
    half = selection_half(keys, 0)
    assert half[:40].sum() == 20
    assert (half[40], half[41]) == (half[3], half[4])
    np.testing.assert_array_equal(selection_half(keys[::-1], 0)[::-1], half)
    assert (selection_half(keys, 1) != half).any()


@pytest.mark.parametrize(
    ("relation", "head", "hits", "cases"),
    [("det", "8-11", 126, 151), ("amod", "4-10", 93, 133), ("aux", "4-10", 19, 22), ("nmod:poss", "7-6", 15, 22)],
)
def test_real_heads_of_bert(relation: str, head: str, hits: int, cases: int) -> None:
    result = table_of(open_recording(shared("data/bert-base-attention")), relation=relation)
    (best_head,), (best_direction,) = result.attributes["best_head"], result.attributes["best_direction"]
    assert value(result, relation, BEST_ACCURACY) == pytest.approx(hits / cases)
    assert (result.attributes["n_correct"], result.attributes["n_examples"]) == ((hits,), (cases,))
    if relation != "nmod:poss":
        assert (best_head, best_direction) == (head, "dependent to governor")
        return
    # One of several heads with as many correct answers.
    assert (
        f"{head} dependent to governor"
        in f"{best_head} {best_direction}, {result.attributes['not_significantly_worse'][0]}"
    )
    assert value(result, relation, INDISTINGUISHABLE) > 10
