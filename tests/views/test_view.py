"""From Python: what `view` and BertViz's calls put on a page, how a view shows and saves itself, what is refused."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bertology
from bertology.encoder.load import load
from bertology.errors import Refusal
from bertology.recording.recorder import record
from bertology.views.payload import decoded
from bertology.views.view import View

TEXT, OTHER = "The strawberries are here.", "They are red."


def payload_of(text: str) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" data-bertology-payload="page">(.*?)</script>', text, re.DOTALL)
    assert found
    return json.loads(found[1])


def test_a_view_holds_the_attention_of_the_model() -> None:
    encoder = load("tiny")
    run = bertology.view(encoder, TEXT).payload.runs[0]
    attention = record(encoder, bertology.read_text(TEXT), ["attention"])["attention"][0]
    np.testing.assert_allclose(decoded(run.quantities[0].maps), attention, atol=1e-4)
    assert [piece.text for piece in run.pieces][:: len(run.pieces) - 1] == ["[CLS]", "[SEP]"]
    assert run.words == ["The", "strawberries", "are", "here", "."]


def test_a_pair_has_segments_with_their_special_tokens() -> None:
    run = bertology.view("tiny", TEXT, OTHER).payload.runs[0]
    segments = [piece.segment for piece in run.pieces]
    assert run.pair and segments == sorted(segments) and set(segments) == {0, 1}
    first_of_second = run.pieces[segments.index(1)]
    assert first_of_second.text == "they" and run.pieces[segments.index(1) - 1].text == "[SEP]"


def test_queries_and_keys_give_the_attention_again() -> None:
    run = bertology.view("tiny", TEXT).payload.runs[0]
    assert run.query and run.key
    query, key = decoded(run.query), decoded(run.key)
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    again = torch.from_numpy(scores).softmax(-1).numpy()
    np.testing.assert_allclose(again, decoded(run.quantities[0].maps), atol=1e-3)


def test_norms_weigh_attention_by_what_is_taken_over() -> None:
    run = bertology.view("tiny", TEXT, quantities=("attention", "norm", "gradient")).payload.runs[0]
    attention, norm, gradient = (decoded(quantity.maps) for quantity in run.quantities)
    lengths = norm / attention  # of each piece, whoever looks at it
    np.testing.assert_allclose(lengths, lengths[:, :, :1].repeat(lengths.shape[2], 2), rtol=0.02)
    assert (gradient < 0).any() and (gradient > 0).any()


def test_two_models_stand_side_by_side() -> None:
    runs = bertology.view("tiny", TEXT, against="random:tiny@7").payload.runs
    assert [run.name for run in runs] == ["tiny", "random:tiny@7"]


def test_two_inputs_stand_side_by_side() -> None:
    first, second = bertology.view("tiny", TEXT, against_text=(TEXT, OTHER)).payload.runs
    assert (first.name, second.name) == ("tiny", "tiny (second)")
    assert second.pair and not first.pair and len(second.pieces) > len(first.pieces)


def test_head_and_model_view_take_what_transformers_returns() -> None:
    tokens = ["[CLS]", "straw", "##berries", "[SEP]", "red", "[SEP]"]
    attention = tuple(torch.rand(1, 4, 6, 6, requires_grad=True).softmax(-1) for _ in range(3))
    made = bertology.head_view(attention, tokens, sentence_b_start=4, layer=2, heads=[0, 3])
    run = made.payload.runs[0]
    assert made.payload.state == "view=head&layer=3&heads=1,4"
    assert run.words == ["strawberries", "red"] and [piece.word for piece in run.pieces] == [-1, 0, 0, -1, 1, -1]
    expected = np.stack([layer[0].detach().numpy() for layer in attention])
    np.testing.assert_allclose(decoded(run.quantities[0].maps), expected, atol=1e-4)
    assert not run.causal and bertology.head_view([layer.tril() for layer in attention], tokens).payload.runs[0].causal
    assert bertology.model_view(attention, tokens).payload.state == "view=model"
    assert "view=neuron" in bertology.neuron_view("tiny", TEXT, layer=1, head=2).payload.state


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: bertology.head_view([], ["a"]), "no layers"),
        (lambda: bertology.head_view([np.ones((1, 2, 3, 3))], ["a"]), r"\(2, 3, 3\) for 1 tokens"),
        (lambda: bertology.head_view([np.ones((4, 2, 3, 3))], ["a"] * 3), "one input at a time"),
        (lambda: bertology.head_view([np.ones((1, 1, 1))], ["a"], sentence_b_start=1), "second sentence"),
        (lambda: bertology.view("tiny", TEXT, quantities=("attention", "nrom")), "Did you mean 'norm'"),
        (lambda: bertology.view("tiny", TEXT, labels={"3-1": "x"}), "1-1 to 2-4"),
        (lambda: bertology.view("tiny", TEXT, layers=3), "Did you mean 'layer'"),
    ],
)
def test_mistakes_are_told(make: Any, told: str) -> None:
    with pytest.raises(Refusal, match=told):
        make()


def test_a_view_saves_and_shows_itself(tmp_path: Path) -> None:
    made = bertology.view("tiny", TEXT, view="matrix", heads=[2])
    saved = made.save(tmp_path / "view.html").read_text("utf-8")
    assert payload_of(saved)["state"] == "view=matrix&heads=2"
    shown = made._repr_html_()  # pyright: ignore[reportPrivateUsage]  # what notebooks call
    inside = re.search(r'srcdoc="([^"]*)"', shown)
    assert inside and unescape(inside[1]) == saved
    with pytest.raises(Refusal, match="cannot be written"):
        made.save(tmp_path / "nowhere" / "view.html")


def test_weights_are_saved_as_arrays(tmp_path: Path) -> None:
    made = bertology.view("tiny", TEXT, against="random:tiny@7", quantities=("attention", "norm"))
    with np.load(made.save(tmp_path / "weights.npz")) as arrays:
        assert sorted(arrays) == ["attention", "attention.against", "norm", "norm.against", "tokens", "tokens.against"]
        assert arrays["attention"].shape == (2, 4, *arrays["tokens"].shape * 2)
        np.testing.assert_allclose(arrays["attention"].sum(-1), 1, atol=1e-3)


def test_the_page_forbids_itself_the_network() -> None:
    text = bertology.view("tiny", TEXT).html()
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=\"?https?:", text)


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<!-- <script>", "\ud800 lone", "{&quot;}"])
def test_no_text_ends_the_script_it_stands_in(text: str) -> None:
    made = bertology.head_view([np.ones((1, 1, 1))], [text])
    assert payload_of(made.html())["runs"][0]["pieces"][0]["text"] == text


def test_the_widget_carries_payload_and_state() -> None:
    pytest.importorskip("anywidget")
    made: View = bertology.view("tiny", TEXT)
    widget = made.widget()
    assert json.loads(widget.payload)["runs"][0]["name"] == "tiny"
    assert "render" in str(widget._esm)
