"""Answers of heads to links have the accuracies of the table, and name the words that were chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import planted
from bertology.analyses.head_selection.answers import BEST_HEAD
from bertology.analyses.head_selection.gold_links import FIXED_OFFSET
from bertology.analyses.head_selection.selection import BEST_ACCURACY, HELD_OUT_ACCURACY
from bertology.analyses.heads.coreference.analysis import NEAREST_MENTION, coreference
from bertology.analyses.heads.dependency import ALL_RELATIONS, dependency
from bertology.analyses.heads.semantic_roles.analysis import semantic_roles
from bertology.analyses.run import RunInputs, run_analysis
from bertology.corpus.read import load_corpus
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Table

HEADS = [
    [planted.random_head(1), planted.offset_head(-1), planted.random_head(2)],
    [planted.offset_head(1), planted.random_head(3), planted.offset_head(-2)],
]
SENTENCES = load_corpus("english", limit=60)
RECORDINGS = {
    "dependency": planted.make_recording(SENTENCES, HEADS),
    "coreference": planted.make_recording(load_corpus("english", unit="document"), HEADS),
    "semantic_roles": planted.make_recording(SENTENCES.map_sentences(planted.with_roles), HEADS),
}
CASES = (
    ("dependency", dependency, {}),
    ("coreference", coreference, {}),
    ("semantic_roles", semantic_roles, {"show": "roles", "role_filter": "all"}),
)


@pytest.mark.parametrize(("name", "analysis", "options"), CASES)
def test_answers_of_heads_have_the_accuracies_of_the_table(name: str, analysis: Any, options: dict[str, Any]) -> None:
    result = run_analysis(analysis, RunInputs(recording=RECORDINGS[name]), options)
    table, answers = result.data, result.answers()
    assert isinstance(table, Table)
    scored = 0
    for number, (row, n) in enumerate(zip(table.row_names, table.attributes["n_examples"], strict=True)):
        if n is None or table.attributes["head"][number] is None:
            continue
        scored += 1
        by_series = {series: _select(answers, row, series) for series in (MODEL_SERIES, BEST_HEAD, *table.baselines)}
        model = by_series[MODEL_SERIES]
        assert len(model) == n
        assert {a["head"] for a in model} == {table.attributes["head"][number]}
        assert _mean(model, "correct (held out)") == pytest.approx(_value(table, HELD_OUT_ACCURACY, number), abs=1e-6)
        best = by_series[BEST_HEAD]
        assert {a["head"] for a in best} == {table.attributes["best_head"][number]}
        assert _mean(best) == pytest.approx(_value(table, BEST_ACCURACY, number), abs=1e-6)
        for baseline, measures in table.baselines.items():
            if HELD_OUT_ACCURACY in measures:
                expected = measures[HELD_OUT_ACCURACY].value[number]
                assert _mean(by_series[baseline]) == pytest.approx(expected, abs=1e-6), baseline
    assert scored >= 2


def test_answers_name_the_words_that_heads_and_offsets_choose() -> None:
    answers = run_analysis(dependency, RunInputs(recording=RECORDINGS["dependency"])).answers()
    sentences = {sentence.id or str(n + 1): sentence for n, (sentence,) in enumerate(e.segments for e in SENTENCES)}
    planted_offsets = {"1-2": -1, "2-1": 1, "2-3": -2}
    n_offset = n_planted = 0
    for answer in _select(answers, ALL_RELATIONS, FIXED_OFFSET) + _select(answers, ALL_RELATIONS, MODEL_SERIES):
        name, _, numbers = answer["item"].rpartition(":")
        word, gold = (int(number) - 1 for number in numbers.split("-"))
        sentence = sentences[name]
        assert sentence.governors is not None and sentence.governors[word] == gold
        assert answer["word"] == sentence.words[word]
        assert answer["gold"] == ("root" if gold < 0 else sentence.words[gold])
        chosen = answer["predicted word"] - 1
        assert answer["prediction"] == ("root" if chosen < 0 else sentence.words[chosen])
        assert answer["correct"] == float(chosen == gold)
        if answer["head"] in planted_offsets:
            sign = 1 if answer["direction"] == "dependent to governor" else -1
            expected = word + sign * planted_offsets[answer["head"]]
            n_planted += 1
            assert chosen == expected or not 0 <= expected < len(sentence)
        if answer["series"] == FIXED_OFFSET:
            n_offset += 1
            expected = word + int(answer["variant"])
            assert chosen == (-1 if expected < 0 else min(expected, len(sentence) - 1))
    assert n_offset and n_planted


def test_rules_of_coreference_name_the_mention_they_choose() -> None:
    answers = run_analysis(coreference, RunInputs(recording=RECORDINGS["coreference"])).answers()
    nearest = _select(answers, "all mentions", NEAREST_MENTION)
    assert nearest
    for answer in nearest:
        gold = {int(number) for number in answer["item"].rpartition("-")[2].split(",")}
        assert (answer["predicted word"] in gold) == bool(answer["correct"])


def _select(answers: list[Answer], row: str, series: str) -> list[Answer]:
    return [answer for answer in answers if answer["row"] == row and answer["series"] == series]


def _mean(answers: list[Answer], field: str = "correct") -> float:
    return float(np.mean([answer[field] for answer in answers]))


def _value(table: Table, measure: str, row: int) -> float:
    return float(table.measures[measure].value[row])
