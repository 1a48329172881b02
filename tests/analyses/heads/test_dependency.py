"""Planted heads that follow the tree score 100 %, others chance, and the real BERT's heads are those of the paper."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.heads.dependency import DIRECTIONS, dependency, questions_of
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import ROOT, Sentence, from_text
from bertology.errors import Refusal
from bertology.measures.heads.head_choice import BEST, HELD_OUT, RIVALS, P, first_half, lead_over
from bertology.measures.heads.word_questions import ANY_WORD, FIXED_OFFSET, tally
from bertology.recording.opening import open_recording
from bertology.recording.recording import Recording
from bertology.recording.word_sites import strongest_word
from bertology.results.shapes import HeadGrid, Table
from shared_data import shared

ENGLISH = corpus_named("english", limit=80)


def along_tree(entry: planted.Entry, *, up: bool) -> planted.Floats:
    """Every word looks at its head (or is looked at by it); words without such an edge look at [CLS]."""
    n = len(entry.pieces)
    weights = np.zeros((n, n))
    for word, head in enumerate(entry.input.parts[0].heads or ()):
        if head != ROOT:
            weights[(word + 1, head + 1) if up else (head + 1, word + 1)] = 1
    weights[weights.sum(1) == 0, 0] = 1
    return weights / weights.sum(1, keepdims=True)


def to_head(entry: planted.Entry) -> planted.Floats:
    return along_tree(entry, up=True)


def to_dependents(entry: planted.Entry) -> planted.Floats:
    return along_tree(entry, up=False)


HEADS = [[planted.noise(1), to_head, planted.noise(2)], [planted.looking_at(1), planted.noise(3), to_dependents]]
RECORDING = planted.recording_of(ENGLISH, HEADS)
NOISE = planted.recording_of(ENGLISH, [[planted.noise(number) for number in range(10, 16)]])


def table_of(recording: Recording, **options: Any) -> Table:
    data = run(dependency, Subject(recording=recording), options).data
    assert isinstance(data, Table)
    return data


def value(table: Table, row: str, measure: str = HELD_OUT) -> float:
    return float(table.measures[measure].value[table.rows_named.index(row)])


def baseline(table: Table, name: str, row: str, measure: str = HELD_OUT) -> float:
    return float(table.baselines[name][measure].value[table.rows_named.index(row)])


def test_planted_heads_are_found_in_both_directions() -> None:
    found = table_of(RECORDING)
    for relation in ("det", "nsubj", "case", "all but root and punct"):
        assert value(found, relation) == value(found, relation, BEST) == 1, relation
        assert value(found, relation, P) < 0.05, relation
        # The head that looks at its dependents is as good: the word that attends most to a dependent is its head.
        assert value(found, relation, RIVALS) == 1, relation
        assert found.notes[relation].startswith("held out 1-2 dependent to head; best 1-2 dependent to head"), relation
        assert "2-3 head to dependent" in found.notes[relation], relation


def test_the_lead_is_of_the_same_cases() -> None:
    """Its value is the difference of the two shares; its interval knows that both are about the same words."""
    found, lead = table_of(RECORDING), lead_over(FIXED_OFFSET)
    own, rule = found.measures[HELD_OUT], found.baselines[FIXED_OFFSET][HELD_OUT]
    apart = found.measures[lead]
    np.testing.assert_allclose(apart.value, own.value - rule.value, atol=1e-12)
    np.testing.assert_array_equal(apart.n, own.n)
    # A head that is always right leads by what the rule gets wrong, and is as unsure as that.
    place = found.rows_named.index("det")
    assert (apart.low[place], apart.high[place]) == pytest.approx((1 - rule.high[place], 1 - rule.low[place]))
    # The head that looks at the next word is the best offset of determiners: it neither leads nor may it.
    same = table_of(planted.recording_of(ENGLISH, [[planted.looking_at(1)]]), relation="det")
    assert np.isclose(value(same, "det"), baseline(same, FIXED_OFFSET, "det"), atol=0.02)
    assert same.measures[lead].high[0] - same.measures[lead].low[0] < 0.5 * (
        same.measures[HELD_OUT].high[0] - same.measures[HELD_OUT].low[0]
    )


def test_every_head_is_in_the_grid() -> None:
    data = run(dependency, Subject(recording=RECORDING), {"show": "heads", "relation": "det"}).data
    assert isinstance(data, HeadGrid)
    up, down = (data.measures[f"det, {direction}"].value for direction in DIRECTIONS)
    assert up[0, 1] == down[1, 2] == 1
    chance = data.baselines[ANY_WORD][f"det, {DIRECTIONS[0]}"].value[0, 0]
    for head in ((0, 0), (0, 2), (1, 1)):
        assert abs(up[head] - chance) < 0.1, head
    # Looking at the next word is what the best fixed offset does.
    offset = data.baselines[FIXED_OFFSET][f"det, {DIRECTIONS[0]}"].value[0, 0]
    assert up[1, 0] == pytest.approx(offset)


def test_roots_are_always_wrong_and_counted_in_all() -> None:
    found = table_of(RECORDING)
    words = [head for sentence in ENGLISH.sentences for head in sentence.heads or ()]
    assert value(found, "all", BEST) == pytest.approx(1 - words.count(ROOT) / len(words))


def test_noise_is_at_chance_and_never_beats_the_offset() -> None:
    found = table_of(NOISE)
    scored = np.isfinite(found.measures[P].value)
    assert scored.sum() > 10
    assert (found.measures[P].value[scored] > 0.05).all()
    assert np.mean(found.measures[lead_over(FIXED_OFFSET)].low[scored] > 0) <= 0.05
    assert abs(value(found, "all") - baseline(found, ANY_WORD, "all")) < 0.03
    # Chosen on all sentences, the best of noise looks better than it is.
    assert np.nanmean(found.measures[BEST].value - found.measures[HELD_OUT].value) > 0.02


def test_it_is_what_a_loop_says() -> None:
    """Accuracy of every head, direction and relation, and of offsets, one word at a time."""
    site = strongest_word()
    recording = NOISE.with_derived([site])
    counted = tally(recording, site, questions_of, directions=DIRECTIONS)
    place = counted.labels.index("nsubj")
    hits, offsets, cases = np.zeros((6, 2)), np.zeros(6), 0
    for entry, maps in zip(recording.entries, recording["attention"], strict=True):
        sentence = entry.input.parts[0]
        between = maps[0][:, 1:-1, 1:-1].copy()
        for word, (head, relation) in enumerate(zip(sentence.heads or (), sentence.relations or (), strict=True)):
            if relation.split(":")[0] != "nsubj":
                continue
            cases += 1
            for number in range(6):
                np.fill_diagonal(between[number], -1)
                hits[number, 0] += between[number, word].argmax() == head
                hits[number, 1] += between[number, :, word].argmax() == head
            for number, offset in enumerate((-3, -2, -1, 1, 2, 3)):
                offsets[number] += min(word + offset, len(sentence) - 1) == head and word + offset >= 0
    assert counted.cases[:, place].sum() == cases > 50
    np.testing.assert_array_equal(counted.hits[:, 0, :, :, place].sum(0), hits)
    np.testing.assert_array_equal(counted.rules[FIXED_OFFSET][..., place].sum(0), offsets)


def test_a_root_is_found_by_an_offset_alone() -> None:
    """A word with no other beside it has no strongest word, which is not to be taken for the root."""
    alone = replace(from_text("Run"), heads=(ROOT,), relations=("root",))
    first = replace(from_text("run home now"), heads=(ROOT, 0, 0), relations=("root", "advmod", "advmod"))
    site = strongest_word()
    recording = planted.recording_of(Corpus((Item((alone,)), Item((first,)))), [[planted.uniform]])
    counted = tally(recording.with_derived([site]), site, questions_of, directions=DIRECTIONS, labels=("all",))
    hits = dict(zip(counted.keys, counted.hits[:, 0, 0, :, 0].tolist(), strict=True))
    assert hits["Run"] == [0, 0]
    offsets = dict(zip(counted.keys, counted.rules[FIXED_OFFSET][..., 0].tolist(), strict=True))
    # -3, -2, -1: the root of each, and -2 and -1 the head of one word more; 1, 2, 3: the last word, never a head.
    assert offsets["run home now"] == [1, 2, 2, 0, 0, 0]
    assert offsets["Run"] == [1, 1, 1, 0, 0, 0]


def test_few_cases_are_shown_as_such() -> None:
    found = table_of(RECORDING, minimum=40)
    row = found.rows_named.index("flat")
    assert np.isnan(found.measures[HELD_OUT].value[row])
    assert found.measures[HELD_OUT].n[row] == 0
    assert found.notes["flat"].startswith("too few: ")


def possessive() -> Sentence:
    return replace(
        from_text("Ann 's old dog barks"),
        words=("Ann", "'s", "old", "dog", "barks"),
        offsets=((0, 3), (4, 6), (7, 10), (11, 14), (15, 20)),
        heads=(3, 0, 3, 4, ROOT),
        relations=("nmod:poss", "case", "amod", "nsubj", "root"),
    )


def test_the_clitic_is_asked_for_the_head_of_its_possessor() -> None:
    (entry,) = planted.entries_of(Corpus((Item((possessive(),)),)))
    plain, asked = (questions_of(entry, clitic=clitic)[0] for clitic in (False, True))
    assert (plain.source, plain.gold, plain.asked) == (0, (3,), 0)
    assert (asked.source, asked.gold, asked.asked) == (0, (3,), 1)
    assert questions_of(entry, clitic=True)[1].asked == 1  # only possessors


def test_names_of_relations() -> None:
    (entry,) = planted.entries_of(Corpus((Item((possessive(),)),)))
    assert questions_of(entry, "corpus")[0].labels == ("all", "all but root and punct", "nmod", "nmod:poss")
    assert questions_of(entry, "stanford")[0].labels == ("all", "all but root and punct", "poss")
    assert questions_of(entry, "stanford")[1].labels[-1] == "case"  # its edges differ from those of Stanford's


def test_one_relation_and_none_such() -> None:
    assert table_of(RECORDING, relation="nsubj").rows_named == ("nsubj",)
    with pytest.raises(Refusal, match="amod"):
        table_of(RECORDING, relation="nsubjj")


def test_unknown_relations_are_told() -> None:
    odd = replace(possessive(), relations=("nmod:poss", "case", "colour", "nsubj", "root"))
    corpus = Corpus((Item((odd,)), Item((possessive(),))))  # of one text: all in one half
    found = table_of(planted.recording_of(corpus, [[planted.uniform]]), minimum=2)
    assert found.notes["colour"].endswith("no relation of Universal or Stanford Dependencies")
    assert "no relation" not in found.notes["amod"]


def test_words_without_pieces_are_counted() -> None:
    def without_first(entry: planted.Entry) -> planted.Entry:
        word = np.where(entry.pieces.word == 0, -1, entry.pieces.word).astype(np.int32)
        return replace(entry, pieces=replace(entry.pieces, word=word))

    recording = replace(RECORDING, entries=tuple(without_first(entry) for entry in RECORDING.entries))
    found = table_of(recording)
    lost = sum(
        word == 0 or head == 0 for sentence in ENGLISH.sentences for word, head in enumerate(sentence.heads or ())
    )
    assert f"{lost} words left out" in found.notes["all"]
    assert value(found, "det") == 1


def test_trees_are_needed() -> None:
    with pytest.raises(Refusal, match="heads"):
        table_of(planted.recording_of(planted.corpus_of("no tree here"), [[planted.uniform]]))


def test_halves_depend_on_texts_alone() -> None:
    keys = [f"sentence {number}" for number in range(40)] + ["sentence 3", "sentence 4"]
    half = first_half(keys, 0)
    assert half[:40].sum() == 20
    assert (half[40], half[41]) == (half[3], half[4])
    np.testing.assert_array_equal(first_half(keys[::-1], 0)[::-1], half)
    assert (first_half(keys, 1) != half).any()


@pytest.mark.parametrize(
    ("relation", "head", "hits", "cases"),
    [("det", "8-11", 126, 151), ("amod", "4-10", 93, 133), ("aux", "4-10", 19, 22), ("nmod:poss", "7-6", 15, 22)],
)
def test_real_heads_of_bert(relation: str, head: str, hits: int, cases: int) -> None:
    found = table_of(open_recording(shared("data/bert-base-attention")), relation=relation)
    note = found.notes[relation]
    assert value(found, relation, BEST) == pytest.approx(hits / cases)
    assert f"{hits} of {cases} cases" in note
    if relation != "nmod:poss":
        assert f"best {head} dependent to head" in note
        return
    assert f"{head} dependent to head" in note  # one of several with as many hits
    assert value(found, relation, RIVALS) > 10
