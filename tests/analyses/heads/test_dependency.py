"""Planted heads that attend along the tree score 100 %, others chance; the best heads of BERT equal the paper's."""

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
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import ROOT, Sentence, sentence_from_text
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.manifest import open_recording
from bertology.recording.recorder import record
from bertology.recording.recording import Recording
from bertology.recording.sites import strongest_word_site
from bertology.results.shapes import HeadGrid, Table
from shared_data import shared

ENGLISH = load_corpus("english", limit=80)


def along_tree(recorded_input: planted.RecordedInput, *, up: bool) -> planted.FloatArray:
    """Every word attends to its governor (or the governor to it); other words attend to [CLS]."""
    n = len(recorded_input.tokens)
    weights = np.zeros((n, n))
    for word, governor in enumerate(recorded_input.text.segments[0].governors or ()):
        if governor != ROOT:
            weights[(word + 1, governor + 1) if up else (governor + 1, word + 1)] = 1
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
UNIFORM = planted.make_recording(ENGLISH, [[planted.uniform_head]])
NOISE = planted.make_recording(ENGLISH, [[planted.random_head(number) for number in range(10, 16)]])


def run(recording: Recording, **options: Any) -> Table:
    data = run_analysis(dependency, RunInputs(recording=recording), options).data
    assert isinstance(data, Table)
    return data


def value(table: Table, row: str, measure: str = HELD_OUT_ACCURACY) -> float:
    return float(table.measures[measure].value[table.row_names.index(row)])


def baseline_value(table: Table, name: str, row: str, measure: str = HELD_OUT_ACCURACY) -> float:
    return float(table.baselines[name][measure].value[table.row_names.index(row)])


def test_planted_heads_are_selected_in_both_directions() -> None:
    result = run(RECORDING)
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
    result, measure = run(RECORDING), difference_measure(FIXED_OFFSET)
    accuracy, offset = result.measures[HELD_OUT_ACCURACY], result.baselines[FIXED_OFFSET][HELD_OUT_ACCURACY]
    difference = result.measures[measure]
    np.testing.assert_allclose(difference.value, accuracy.value - offset.value, atol=1e-12)
    np.testing.assert_array_equal(difference.n, accuracy.n)
    # The difference of a head that is always right is the error rate of the offset, and its interval about as wide.
    row = result.row_names.index("det")
    assert (difference.low[row], difference.high[row]) == pytest.approx(
        (1 - offset.high[row], 1 - offset.low[row]), abs=0.02
    )
    # A head that attends to the next word equals the best offset for determiners.
    next_word = run(planted.make_recording(ENGLISH, [[planted.offset_head(1)]]), relation="det")
    assert np.isclose(value(next_word, "det"), baseline_value(next_word, FIXED_OFFSET, "det"), atol=0.02)
    assert next_word.measures[measure].low[0] < 0 < next_word.measures[measure].high[0]
    assert value(next_word, "det", P_VALUE) == 1


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
    result = run(RECORDING)
    governors = [governor for sentence in ENGLISH.sentences for governor in sentence.governors or ()]
    assert value(result, ALL_RELATIONS, BEST_ACCURACY) == pytest.approx(1 - governors.count(ROOT) / len(governors))


def test_noise_is_at_chance_and_never_beats_the_offset() -> None:
    result = run(NOISE)
    scored = np.isfinite(result.measures[P_VALUE].value)
    assert scored.sum() > 10
    assert (result.measures[P_VALUE].value[scored] > 0.05).all()
    assert np.mean(result.measures[difference_measure(FIXED_OFFSET)].low[scored] > 0) <= 0.05
    assert abs(value(result, ALL_RELATIONS) - baseline_value(result, CHANCE, ALL_RELATIONS)) < 0.03
    # Selected on all sentences, the best noise head seems better than it is.
    assert np.nanmean(result.measures[BEST_ACCURACY].value - result.measures[HELD_OUT_ACCURACY].value) > 0.02


def test_counts_equal_a_loop_over_words() -> None:
    """Accuracy of every head, direction and relation, and of offsets, one word at a time."""
    site = strongest_word_site()
    recording = NOISE.with_sites([site])
    counts = count_links(recording, site, dependency_links, directions=DIRECTIONS)
    label = counts.labels.index("nsubj")
    correct, offset_correct, total = np.zeros((6, 2)), np.zeros(6), 0
    for recorded_input, attention in zip(recording.inputs, recording["attention"], strict=True):
        sentence = recorded_input.text.segments[0]
        between_words = attention[0][:, 1:-1, 1:-1].copy()
        for word, (governor, relation) in enumerate(
            zip(sentence.governors or (), sentence.relations or (), strict=True)
        ):
            if relation.split(":")[0] != "nsubj":
                continue
            total += 1
            for index in range(6):
                np.fill_diagonal(between_words[index], -1)
                correct[index, 0] += between_words[index, word].argmax() == governor
                correct[index, 1] += between_words[index, :, word].argmax() == governor
            for index, offset in enumerate((-3, -2, -1, 1, 2, 3)):
                offset_correct[index] += min(word + offset, len(sentence) - 1) == governor and word + offset >= 0
    assert counts.total[:, label].sum() == total > 50
    np.testing.assert_array_equal(counts.correct[:, 0, :, :, label].sum(0), correct)
    np.testing.assert_array_equal(counts.baseline_correct[FIXED_OFFSET][..., label].sum(0), offset_correct)


def test_only_an_offset_can_predict_a_root() -> None:
    """A sentence of one word has no strongest word; the missing value must not count as the root."""
    one_word = replace(sentence_from_text("Run"), governors=(ROOT,), relations=("root",))
    three_words = replace(
        sentence_from_text("run home now"), governors=(ROOT, 0, 0), relations=("root", "advmod", "advmod")
    )
    site = strongest_word_site()
    recording = planted.make_recording(
        Corpus((Example((one_word,)), Example((three_words,)))), [[planted.uniform_head]]
    )
    counts = count_links(
        recording.with_sites([site]), site, dependency_links, directions=DIRECTIONS, labels=(ALL_RELATIONS,)
    )
    correct = dict(zip(counts.unit_texts, counts.correct[:, 0, 0, :, 0].tolist(), strict=True))
    assert correct["Run"] == [0, 0]
    offset_correct = dict(zip(counts.unit_texts, counts.baseline_correct[FIXED_OFFSET][..., 0].tolist(), strict=True))
    # Offsets -3, -2, -1 predict the root, -2 and -1 also one governor; 1, 2, 3 the last word, never a governor.
    assert offset_correct["run home now"] == [1, 2, 2, 0, 0, 0]
    assert offset_correct["Run"] == [1, 1, 1, 0, 0, 0]


def test_relations_with_few_examples_are_not_scored() -> None:
    result = run(RECORDING, min_examples=40)
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


def test_attention_of_the_clitic_can_stand_for_its_possessor() -> None:
    (recorded_input,) = planted.recorded_inputs(Corpus((Example((possessive(),)),)))
    possessor, with_clitic = (dependency_links(recorded_input, possessive_clitic=clitic)[0] for clitic in (False, True))
    assert (possessor.source, possessor.targets, possessor.read_word) == (0, (3,), 0)
    assert (with_clitic.source, with_clitic.targets, with_clitic.read_word) == (0, (3,), 1)
    assert dependency_links(recorded_input, possessive_clitic=True)[1].read_word == 1  # only possessors


def test_relations_are_named_by_the_corpus_or_by_stanford_dependencies() -> None:
    (recorded_input,) = planted.recorded_inputs(Corpus((Example((possessive(),)),)))
    assert dependency_links(recorded_input, "corpus")[0].labels == (ALL_RELATIONS, INNER_EDGES, "nmod", "nmod:poss")
    assert dependency_links(recorded_input, "stanford")[0].labels == (ALL_RELATIONS, INNER_EDGES, "poss")
    separate, merged = (dependency_links(recorded_input, subtypes=subtypes)[0] for subtypes in ("separate", "merged"))
    assert separate.labels == (ALL_RELATIONS, INNER_EDGES, "nmod:poss")
    assert merged.labels == (ALL_RELATIONS, INNER_EDGES, "nmod")
    # The edges of `case` differ from those of Stanford Dependencies.
    assert dependency_links(recorded_input, "stanford")[1].labels[-1] == "case"


def test_a_single_relation_can_be_selected_and_an_unknown_one_is_refused() -> None:
    assert run(RECORDING, relation="nsubj").row_names == ("nsubj",)
    with pytest.raises(Refusal, match="amod"):
        run(RECORDING, relation="nsubjj")


def test_unknown_relations_have_a_note() -> None:
    sentence = replace(possessive(), relations=("nmod:poss", "case", "colour", "nsubj", "root"))
    corpus = Corpus((Example((sentence,)), Example((possessive(),))))  # a single text: all in one half
    result = run(planted.make_recording(corpus, [[planted.uniform_head]]), min_examples=2)
    assert result.notes["colour"].endswith("Not a relation of Universal or Stanford Dependencies.")
    assert "Not a relation" not in result.notes["amod"]


def test_words_without_tokens_are_counted() -> None:
    def without_first(recorded_input: planted.RecordedInput) -> planted.RecordedInput:
        word_ids = np.where(recorded_input.tokens.word_ids == 0, -1, recorded_input.tokens.word_ids).astype(np.int32)
        return replace(recorded_input, tokens=replace(recorded_input.tokens, word_ids=word_ids))

    recording = replace(RECORDING, inputs=tuple(without_first(recorded_input) for recorded_input in RECORDING.inputs))
    result = run(recording)
    skipped = sum(
        word == 0 or governor == 0
        for sentence in ENGLISH.sentences
        for word, governor in enumerate(sentence.governors or ())
    )
    assert result.sample["words skipped (no token)"] == skipped
    assert value(result, "det") == 1


def test_corpora_without_trees_are_refused() -> None:
    with pytest.raises(Refusal, match="governors"):
        run(planted.make_recording(planted.make_corpus("no tree here"), [[planted.uniform_head]]))


def test_halves_depend_only_on_texts() -> None:
    keys = [f"sentence {number}" for number in range(40)] + ["sentence 3", "sentence 4"]
    half = selection_half(keys, 0)
    assert half[:40].sum() == 20
    assert (half[40], half[41]) == (half[3], half[4])
    np.testing.assert_array_equal(selection_half(keys[::-1], 0)[::-1], half)
    assert (selection_half(keys, 1) != half).any()


@pytest.mark.parametrize(
    ("relation", "head", "correct", "total"),
    [("det", "8-11", 126, 151), ("amod", "4-10", 93, 133), ("aux", "4-10", 19, 22), ("nmod:poss", "7-6", 15, 22)],
)
def test_the_best_heads_of_bert_are_those_of_the_paper(relation: str, head: str, correct: int, total: int) -> None:
    result = run(open_recording(shared("data/bert-base-attention")), relation=relation)
    (best_head,), (best_direction,) = result.attributes["best_head"], result.attributes["best_direction"]
    assert value(result, relation, BEST_ACCURACY) == pytest.approx(correct / total)
    assert (result.attributes["n_correct"], result.attributes["n_examples"]) == ((correct,), (total,))
    if relation != "nmod:poss":
        assert (best_head, best_direction) == (head, "dependent to governor")
        return
    # One of several heads with as many correct answers.
    assert (
        f"{head} dependent to governor"
        in f"{best_head} {best_direction}, {result.attributes['not_significantly_worse'][0]}"
    )
    assert value(result, relation, INDISTINGUISHABLE) > 10


def test_verdicts_on_the_built_in_model_do_not_depend_on_the_seed() -> None:
    recording = record(load("mini"), load_corpus("english", limit=150), [strongest_word_site()])
    verdicts: dict[str, set[tuple[object, ...]]] = {"aux": set(), "nsubj": set(), "det": set(), "obj": set()}
    for seed in range(8):
        result = run(recording, seed=seed)
        difference = result.measures[difference_measure(FIXED_OFFSET)]
        for relation, outcomes in verdicts.items():
            row = result.row_names.index(relation)
            outcomes.add(
                (difference.low[row] > 0, value(result, relation, P_VALUE) < 0.05, result.attribute("head", row))
            )
            assert 0 < float(result.attribute("chosen_in", row) or 0) <= 1
    assert {relation: len(outcomes) for relation, outcomes in verdicts.items()} == dict.fromkeys(verdicts, 1)
    assert next(iter(verdicts["det"]))[:2] == (True, True)


def test_few_texts_have_no_interval() -> None:
    """Many examples in four sentences: the accuracy is shown, but it decides nothing."""
    corpus = Corpus(ENGLISH.examples[:4])
    result = run(planted.make_recording(corpus, [[to_governor]]), min_examples=4)
    row = result.row_names.index(ALL_RELATIONS)
    accuracy = result.measures[HELD_OUT_ACCURACY][row]
    assert accuracy.value > 0.8 and np.isnan(accuracy.low) and accuracy.n == 4
    assert np.isnan(result.measures[P_VALUE].value).all()
    assert result.notes[ALL_RELATIONS] == "No interval and no p value: examples in 4 texts (minimum 5)."


def test_ties_are_scored_at_chance_and_counted() -> None:
    """Uniform attention finds governors as often as a random word, and all of its answers are ties."""
    data = run_analysis(dependency, RunInputs(recording=UNIFORM), {"show": "heads", "relation": INNER_EDGES}).data
    assert isinstance(data, HeadGrid)
    for direction in DIRECTIONS:
        accuracy = data.measures[f"{INNER_EDGES}, {direction}"].value[0, 0]
        assert abs(accuracy - data.baselines[CHANCE][f"{INNER_EDGES}, {direction}"].value[0, 0]) < 0.03
    assert [run(UNIFORM).sample[f"proportion of ties ({direction})"] for direction in DIRECTIONS] == [1, 1]
    assert [run(NOISE).sample[f"proportion of ties ({direction})"] for direction in DIRECTIONS] == [0, 0]
