"""A planted head that attends from roles to their predicate scores highest by both measures; noise is at chance."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.head_selection.gold_links import CHANCE
from bertology.analyses.head_selection.selection import HELD_OUT_ACCURACY, P_VALUE
from bertology.analyses.heads.semantic_roles.analysis import role_links, semantic_roles
from bertology.analyses.heads.semantic_roles.argument_pairs import (
    DIRECTIONS,
    SAME_DISTANCE,
    argument_token_pairs,
    is_core,
    is_distant,
    role_attention_site,
    selected_arguments,
)
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.read import load_corpus
from bertology.corpus.sentence import SemanticFrame, Sentence, Span, sentence_from_text
from bertology.errors import Refusal
from bertology.recording.recording import Recording
from bertology.results.shapes import HeadGrid, Table

ENGLISH = load_corpus("english", limit=120).map_sentences(planted.with_roles)


def to_predicate(recorded_input: planted.RecordedInput) -> planted.FloatArray:
    """Arguments attend to their predicate, all other words to [CLS]."""
    n = len(recorded_input.tokens)
    weights = np.zeros((n, n))
    for frame in recorded_input.text.segments[0].frames or ():
        for argument in frame.arguments:
            weights[argument.start + 1, frame.predicate + 1] = 1
    weights[weights.sum(1) == 0, 0] = 1
    return weights / weights.sum(1, keepdims=True)


HEADS = [[planted.random_head(1), to_predicate], [planted.offset_head(-1), planted.random_head(2)]]
RECORDING = planted.make_recording(ENGLISH, HEADS)


def run(recording: Recording, **options: Any) -> Any:
    return run_analysis(semantic_roles, RunInputs(recording=recording), options).data


@pytest.mark.parametrize("role_filter", ["all", "distant"])
def test_a_planted_head_has_full_weight(role_filter: str) -> None:
    grid = run(RECORDING, role_filter=role_filter)
    assert isinstance(grid, HeadGrid)
    forth, back = (grid.measures[name].value for name in DIRECTIONS)
    assert forth[0, 1] == pytest.approx(1)
    assert back[0, 1] < 0.2  # except verbs that modify another verb, predicates attend to [CLS]
    assert (forth[[0, 1, 1], [0, 0, 1]] < 0.5).all()
    assert grid.baselines[SAME_DISTANCE][DIRECTIONS[0]].value[0, 1] < 0.4


def test_noise_links_roles_no_better_than_other_words() -> None:
    noise = planted.make_recording(ENGLISH, [[planted.random_head(number) for number in range(6)]])
    grid = run(noise, role_filter="all")
    for name in DIRECTIONS:
        measured, same_distance = grid.measures[name].value, grid.baselines[SAME_DISTANCE][name].value
        assert abs((measured - same_distance).mean()) < 0.01


def test_the_planted_head_predicts_every_role() -> None:
    table = run(RECORDING, show="roles", role_filter="all")
    assert isinstance(table, Table)
    scored = np.isfinite(table.measures[HELD_OUT_ACCURACY].value)
    assert {"all roles", "core roles", "ARG0", "ARG1"} <= {
        name for name, is_scored in zip(table.row_names, scored, strict=True) if is_scored
    }
    np.testing.assert_array_equal(table.measures[HELD_OUT_ACCURACY].value[scored], 1)
    for name in ("all roles", "ARG0", "ARG1"):
        row = table.row_names.index(name)
        assert (table.attribute("head", row), table.attribute("direction", row)) == ("1-2", "role to predicate"), name
        assert table.measures[P_VALUE].value[table.row_names.index(name)] < 0.05


def test_noise_predicts_no_role() -> None:
    table = run(
        planted.make_recording(ENGLISH, [[planted.random_head(n) for n in range(6)]]), show="roles", role_filter="all"
    )
    row = table.row_names.index("all roles")
    chance = table.baselines[CHANCE][HELD_OUT_ACCURACY].value[row]
    assert abs(table.measures[HELD_OUT_ACCURACY].value[row] - chance) < 0.06
    assert np.nanmin(table.measures[P_VALUE].value) > 0.05


@pytest.mark.parametrize("legacy", [False, True])
def test_role_attention_equals_a_loop_over_token_pairs(legacy: bool) -> None:
    """Over all token pairs, or tokens paired one by one (legacy), with words of two tokens."""
    recording = planted.make_recording(ENGLISH, [[planted.random_head(5)]])
    recorded_inputs = tuple(planted.merge_words(recorded_input) for recorded_input in recording.inputs)
    recording = replace(recording, inputs=recorded_inputs)
    site = role_attention_site("all", legacy)
    result = recording.with_sites([site]).stack(site)[:, 0, 0, :2]
    for recorded_input, attention, values in zip(recorded_inputs, recording["attention"], result, strict=True):
        highest: list[list[float]] = [[], []]
        for frame in recorded_input.text.segments[0].frames or ():
            sources = [
                position
                for argument in frame.arguments
                for position in np.flatnonzero(recorded_input.tokens.word_ids == argument.start)
            ]
            targets = list(np.flatnonzero(recorded_input.tokens.word_ids == frame.predicate))
            pairs = list(zip(sources, targets, strict=False)) if legacy else [(i, j) for i in sources for j in targets]
            if pairs:
                highest[0].append(max(attention[0, 0, i, j] for i, j in pairs))
                highest[1].append(max(attention[0, 0, j, i] for i, j in pairs))
        expected = np.array([np.mean(by_frame) if by_frame else np.nan for by_frame in highest], np.float64)
        np.testing.assert_allclose(values, expected, atol=1e-6)


def sentence(arguments: tuple[Span, ...], predicate: int = 1) -> Sentence:
    return replace(
        sentence_from_text("Ann gave the dog that barked a bone"),
        frames=(SemanticFrame(predicate, "give.01", arguments),),
    )


def test_role_filters_select_distant_or_published_arguments() -> None:
    near, far = Span(0, 1, "ARG0"), Span(6, 8, "ARG1")
    assert not is_distant(near, 1)
    assert is_distant(far, 1)
    assert [arguments for _, arguments in selected_arguments(sentence((near, far)), "distant")] == [(far,)]
    assert [arguments for _, arguments in selected_arguments(sentence((near, far)), "all")] == [(near, far)]
    assert not list(selected_arguments(sentence((near, far)), "paper"))
    assert list(selected_arguments(sentence((far,)), "paper"))
    assert not list(selected_arguments(sentence((Span(4, 8, "ARG1"),)), "paper"))  # four words
    assert not list(selected_arguments(sentence((replace(far, label="ARGM-TMP"),)), "paper"))  # no core role
    assert [is_core(name) for name in ("ARG0", "R-ARG1", "A2", "ARGM-TMP", "AM-LOC")] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_an_argument_is_linked_by_its_root() -> None:
    with_tree = replace(sentence((Span(2, 4, "ARG2"),)), governors=(1, -1, 3, 1, 5, 3, 7, 1))
    without_tree = sentence((Span(2, 4, "ARG2"),))
    for example_sentence, expected in (
        (with_tree, 3),
        (without_tree, 3),
        (replace(with_tree, governors=(1, -1, 1, 2, 5, 3, 7, 1)), 2),
    ):
        (recorded_input,) = planted.recorded_inputs(Corpus((Example((example_sentence,)),)))
        (link,) = role_links(recorded_input, "all")
        assert (link.source, link.targets) == (expected, (1,))


def test_a_word_that_is_its_own_predicate_has_no_link() -> None:
    (recorded_input,) = planted.recorded_inputs(Corpus((Example((sentence((Span(1, 2, "ARG0"),)),)),)))
    assert role_links(recorded_input, "all") == []
    assert list(argument_token_pairs(recorded_input, "all", False)) == []


def test_corpora_without_matching_roles_are_refused() -> None:
    with pytest.raises(Refusal, match="frames"):
        run(planted.make_recording(planted.make_corpus("no roles here"), [[planted.uniform_head]]))
    near = Corpus((Example((sentence((Span(0, 1, "ARG0"),)),)),))
    for show in ("heads", "roles"):
        with pytest.raises(Refusal, match="role-filter all"):
            run(planted.make_recording(near, [[planted.uniform_head]]), show=show)
