"""Captions: one line or plain sentences, without options or developer text."""

from __future__ import annotations

import pytest

from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.results.caption import caption_line, caption_sentences, figure_title, plain_policy, short_name
from bertology.results.result import Result
from bertology.results.shapes import LayerCurve
from results.example_results import SHAPES, SPECIAL_TOKENS, result


def with_inputs() -> Result:
    model = {"name": "/models/mini", "layers": 8, "heads": 8, "changes": {"removed": ["3-8"]}}
    inputs = {"model": {"model": model, "corpus": {"name": "english", "examples": 30}}}
    return result(SHAPES["LayerCurve"]).model_copy(update={"inputs": inputs})


def test_the_short_caption_is_one_line() -> None:
    assert caption_line(with_inputs()) == "mini on english (30 examples); n = 7; 95 % bootstrap intervals."
    assert with_inputs().caption() == caption_line(with_inputs())
    assert caption_line(result(SHAPES["Scatter"])) == "a-model on a-corpus; n = 7."


def test_the_full_caption_has_a_sentence_for_each_fact() -> None:
    assert caption_sentences(with_inputs()) == [
        "Model: mini, 8 layers of 8 heads, removed: 3-8.",
        "Corpus: english (30 examples).",
        "Sample size: n = 7.",
        "Shown with 95 % bootstrap intervals.",
        SPECIAL_TOKENS,
    ]
    assert with_inputs().caption(full=True) == " ".join(caption_sentences(with_inputs()))


def test_intervals_of_other_kinds_name_their_measures() -> None:
    data = SHAPES["LayerCurve"]
    assert isinstance(data, LayerCurve)
    first, second = data.measures
    ranges = {**data.measures, second: data.measures[second].model_copy(update={"interval": "range"})}
    mixed = result(data.model_copy(update={"measures": ranges}))
    assert f"95 % bootstrap intervals; ranges over seeds of {second}" in caption_line(mixed)
    assert "bootstrap" not in caption_line(mixed, [second]) and "seeds" not in caption_line(mixed, [first])


def test_the_title_is_the_question_or_the_name_in_words() -> None:
    plain = result(SHAPES["Table"])
    assert figure_title(plain) == "Group: name"
    asked = plain.model_copy(update={"provenance": {"question": "Which head?"}})
    assert figure_title(asked) == "Which head?"


@pytest.mark.parametrize("analysis", registry.load_all(), ids=lambda analysis: analysis.name)
def test_no_policy_on_special_tokens_shows_an_option(analysis: Analysis) -> None:
    policy = plain_policy(analysis.special_tokens)
    assert "--" not in policy and "`" not in policy and policy.endswith(".") and "  " not in policy
    assert policy.startswith("Special tokens: ") and len(policy) > 22 and policy.count("(") == policy.count(")")


def test_an_option_that_changes_the_policy_is_named_if_it_is_set() -> None:
    policy = "Special tokens: included (--special-tokens exclude removes them)."
    assert plain_policy(policy, {"special_tokens": "include"}) == "Special tokens: included."
    assert plain_policy(policy, {"special_tokens": "exclude"}) == (
        "Special tokens: included (the option special tokens exclude removes them). This option is set here."
    )


@pytest.mark.parametrize(
    ("name", "shown"),
    [("/a/b/gte-small", "gte-small"), ("google/bert-base", "google/bert-base"), ("mini", "mini"), ("./m/", "m")],
)
def test_paths_are_shown_as_names(name: str, shown: str) -> None:
    assert short_name(name) == shown
