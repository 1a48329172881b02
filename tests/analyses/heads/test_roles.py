"""A planted head that looks from roles to their predicate is found, by its weights and as a predictor; noise is not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.heads.roles import ELSEWHERE, questions_of, roles
from bertology.analyses.run import Subject, run
from bertology.corpus.builtin import corpus_named
from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import Frame, Sentence, Span, from_text
from bertology.errors import Refusal
from bertology.measures.heads.head_choice import HELD_OUT, P
from bertology.measures.heads.role_pairs import DIRECTIONS, is_core, is_far, linked_pieces, propositions, role_weights
from bertology.measures.heads.word_questions import ANY_WORD
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid, Table

ENGLISH = corpus_named("english", limit=120).map(planted.with_roles)


def to_predicate(entry: planted.Entry) -> planted.Floats:
    """What fills a role looks at its predicate, all else at [CLS]."""
    n = len(entry.pieces)
    weights = np.zeros((n, n))
    for frame in entry.input.parts[0].frames or ():
        for one in frame.arguments:
            weights[one.start + 1, frame.predicate + 1] = 1
    weights[weights.sum(1) == 0, 0] = 1
    return weights / weights.sum(1, keepdims=True)


HEADS = [[planted.noise(1), to_predicate], [planted.looking_at(-1), planted.noise(2)]]
RECORDING = planted.recording_of(ENGLISH, HEADS)


def asked(recording: Recording, **options: Any) -> Any:
    return run(roles, Subject(recording=recording), options).data


@pytest.mark.parametrize("select", ["all", "far"])
def test_a_planted_head_has_all_the_weight(select: str) -> None:
    grid = asked(RECORDING, select=select)
    assert isinstance(grid, HeadGrid)
    forth, back = (grid.measures[name].value for name in DIRECTIONS)
    assert forth[0, 1] == pytest.approx(1)
    assert back[0, 1] < 0.2  # verbs that are adverbial to another verb apart, they look at [CLS]
    assert (forth[[0, 1, 1], [0, 0, 1]] < 0.5).all()
    assert grid.baselines[ELSEWHERE][DIRECTIONS[0]].value[0, 1] < 0.4


def test_noise_links_roles_no_better_than_other_words() -> None:
    noise = planted.recording_of(ENGLISH, [[planted.noise(number) for number in range(6)]])
    grid = asked(noise, select="all")
    for name in DIRECTIONS:
        own, elsewhere = grid.measures[name].value, grid.baselines[ELSEWHERE][name].value
        assert abs((own - elsewhere).mean()) < 0.01


def test_the_planted_head_predicts_every_role() -> None:
    table = asked(RECORDING, show="roles", select="all")
    assert isinstance(table, Table)
    scored = np.isfinite(table.measures[HELD_OUT].value)
    assert {"all", "core roles", "ARG0", "ARG1"} <= {
        name for name, s in zip(table.rows_named, scored, strict=True) if s
    }
    np.testing.assert_array_equal(table.measures[HELD_OUT].value[scored], 1)
    for name in ("all", "ARG0", "ARG1"):
        assert table.notes[name].startswith("held out 1-2 role to predicate"), name
        assert table.measures[P].value[table.rows_named.index(name)] < 0.05


def test_noise_predicts_no_role() -> None:
    table = asked(planted.recording_of(ENGLISH, [[planted.noise(n) for n in range(6)]]), show="roles", select="all")
    place = table.rows_named.index("all")
    chance = table.baselines[ANY_WORD][HELD_OUT].value[place]
    assert abs(table.measures[HELD_OUT].value[place] - chance) < 0.06
    assert np.nanmin(table.measures[P].value) > 0.05


@pytest.mark.parametrize("legacy", [False, True])
def test_it_is_what_a_loop_says(legacy: bool) -> None:
    """Split words: the highest weight over pairs of pieces, all of them or one by one, sentence by sentence."""
    recording = planted.recording_of(ENGLISH, [[planted.noise(5)]])
    entries = tuple(
        replace(e, pieces=replace(e.pieces, word=np.where(e.pieces.word < 0, -1, e.pieces.word // 2).astype(np.int32)))
        for e in recording.entries
    )
    recording = replace(recording, entries=entries)
    site = role_weights("all", legacy)
    found = recording.with_derived([site]).stacked(site)[:, 0, 0, :2]
    for entry, maps, values in zip(entries, recording["attention"], found, strict=True):
        highest: list[list[float]] = [[], []]
        for frame in entry.input.parts[0].frames or ():
            sources = [p for one in frame.arguments for p in np.flatnonzero(entry.pieces.word == one.start)]
            targets = list(np.flatnonzero(entry.pieces.word == frame.predicate))
            pairs = list(zip(sources, targets, strict=False)) if legacy else [(i, j) for i in sources for j in targets]
            if pairs:
                highest[0].append(max(maps[0, 0, i, j] for i, j in pairs))
                highest[1].append(max(maps[0, 0, j, i] for i, j in pairs))
        expected = np.array([np.mean(some) if some else np.nan for some in highest], np.float64)
        np.testing.assert_allclose(values, expected, atol=1e-6)


def sentence(arguments: tuple[Span, ...], predicate: int = 1) -> Sentence:
    return replace(from_text("Ann gave the dog that barked a bone"), frames=(Frame(predicate, "give.01", arguments),))


def test_what_is_far_and_what_the_paper_takes() -> None:
    near, far = Span(0, 1, "ARG0"), Span(6, 8, "ARG1")
    assert not is_far(near, 1)
    assert is_far(far, 1)
    assert [kept for _, kept in propositions(sentence((near, far)), "far")] == [(far,)]
    assert [kept for _, kept in propositions(sentence((near, far)), "all")] == [(near, far)]
    assert not list(propositions(sentence((near, far)), "paper"))
    assert list(propositions(sentence((far,)), "paper"))
    assert not list(propositions(sentence((Span(4, 8, "ARG1"),)), "paper"))  # four words
    assert not list(propositions(sentence((replace(far, label="ARGM-TMP"),)), "paper"))  # no core role
    assert [is_core(name) for name in ("ARG0", "R-ARG1", "A2", "ARGM-TMP", "AM-LOC")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_a_phrase_is_asked_by_its_head() -> None:
    tree = replace(sentence((Span(2, 4, "ARG2"),)), heads=(1, -1, 3, 1, 5, 3, 7, 1))
    bare = sentence((Span(2, 4, "ARG2"),))
    for part, expected in ((tree, 3), (bare, 3), (replace(tree, heads=(1, -1, 1, 2, 5, 3, 7, 1)), 2)):
        (entry,) = planted.entries_of(Corpus((Item((part,)),)))
        (question,) = questions_of(entry, "all")
        assert (question.source, question.gold) == (expected, (1,))


def test_a_word_that_is_its_own_predicate_is_not_asked() -> None:
    (entry,) = planted.entries_of(Corpus((Item((sentence((Span(1, 2, "ARG0"),)),)),)))
    assert questions_of(entry, "all") == []
    assert list(linked_pieces(entry, "all", False)) == []


def test_annotation_is_needed_and_must_leave_something() -> None:
    with pytest.raises(Refusal, match="frames"):
        asked(planted.recording_of(planted.corpus_of("no roles here"), [[planted.uniform]]))
    near = Corpus((Item((sentence((Span(0, 1, "ARG0"),)),)),))
    for show in ("weights", "roles"):
        with pytest.raises(Refusal, match="select all"):
            asked(planted.recording_of(near, [[planted.uniform]]), show=show)
