"""`bertology.view` and the functions of BertViz: the data of a page, saving and showing it, refusals."""

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
from bertology.views.payload import dequantise
from bertology.views.view import View

TEXT, OTHER = "The strawberries are here.", "They are red."


def payload_of(text: str) -> dict[str, Any]:
    match = re.search(r'<script type="application/json" data-bertology-payload="page">(.*?)</script>', text, re.DOTALL)
    assert match
    return json.loads(match[1])


def test_a_view_holds_the_attention_of_the_model() -> None:
    encoder = load("tiny")
    run = bertology.view(encoder, TEXT).payload.runs[0]
    attention = record(encoder, bertology.corpus([TEXT]), ["attention"])["attention"][0]
    np.testing.assert_allclose(dequantise(run.quantities[0].weights), attention, atol=1e-4)
    assert [token.text for token in run.tokens][:: len(run.tokens) - 1] == ["[CLS]", "[SEP]"]
    assert run.words == ["The", "strawberries", "are", "here", "."]


def test_a_pair_has_segments_with_their_special_tokens() -> None:
    run = bertology.view("tiny", TEXT, OTHER).payload.runs[0]
    segments = [token.segment for token in run.tokens]
    assert run.is_pair and segments == sorted(segments) and set(segments) == {0, 1}
    first_of_second = run.tokens[segments.index(1)]
    assert first_of_second.text == "they" and run.tokens[segments.index(1) - 1].text == "[SEP]"


def test_queries_and_keys_reproduce_the_attention() -> None:
    run = bertology.view("tiny", TEXT).payload.runs[0]
    assert run.query and run.key
    query, key = dequantise(run.query), dequantise(run.key)
    scores = query @ key.swapaxes(-1, -2) / np.sqrt(query.shape[-1])
    attention = torch.from_numpy(scores).softmax(-1).numpy()
    np.testing.assert_allclose(attention, dequantise(run.quantities[0].weights), atol=1e-3)


def test_norms_are_attention_times_value_norms() -> None:
    run = bertology.view("tiny", TEXT, quantities=("attention", "norm", "gradient")).payload.runs[0]
    attention, norm, gradient = (dequantise(quantity.weights) for quantity in run.quantities)
    norms = norm / attention  # of each token, for all tokens that attend to it
    np.testing.assert_allclose(norms, norms[:, :, :1].repeat(norms.shape[2], 2), rtol=0.02)
    assert (gradient < 0).any() and (gradient > 0).any()


def test_two_models_stand_side_by_side() -> None:
    runs = bertology.view("tiny", TEXT, against="random:tiny@7").payload.runs
    assert [run.name for run in runs] == ["tiny", "random:tiny@7"]


def test_two_inputs_stand_side_by_side() -> None:
    first, second = bertology.view("tiny", TEXT, against_text=(TEXT, OTHER)).payload.runs
    assert (first.name, second.name) == ("A: The strawberries are here…", "B: The strawberries are here…")
    assert first.model == second.model == "tiny"
    assert second.is_pair and not first.is_pair and len(second.tokens) > len(first.tokens)


def test_head_and_model_view_accept_the_output_of_transformers() -> None:
    tokens = ["[CLS]", "straw", "##berries", "[SEP]", "red", "[SEP]"]
    attention = tuple(torch.rand(1, 4, 6, 6, requires_grad=True).softmax(-1) for _ in range(3))
    view = bertology.head_view(attention, tokens, sentence_b_start=4, layer=2, heads=[0, 3])
    run = view.payload.runs[0]
    assert view.payload.state == "view=head&layer=3&heads=1,4"
    assert run.words == ["strawberries", "red"] and [token.word_index for token in run.tokens] == [-1, 0, 0, -1, 1, -1]
    expected = np.stack([layer[0].detach().numpy() for layer in attention])
    np.testing.assert_allclose(dequantise(run.quantities[0].weights), expected, atol=1e-4)
    assert not run.causal and bertology.head_view([layer.tril() for layer in attention], tokens).payload.runs[0].causal
    assert bertology.model_view(attention, tokens).payload.state.startswith("view=model&layer=")
    assert "view=neuron" in bertology.neuron_view("tiny", TEXT, layer=1, head=2).payload.state


@pytest.mark.parametrize(
    ("make", "message"),
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
def test_mistakes_are_refused(make: Any, message: str) -> None:
    with pytest.raises(Refusal, match=message):
        make()


def test_a_view_is_saved_and_shown(tmp_path: Path) -> None:
    view = bertology.view("tiny", TEXT, view="matrix", heads=[2])
    saved = view.save(tmp_path / "view.html").read_text("utf-8")
    assert payload_of(saved)["state"].startswith("view=matrix&heads=2&layer=")
    notebook_html = view._repr_html_()  # pyright: ignore[reportPrivateUsage]  # called by notebooks
    embedded = re.search(r'srcdoc="([^"]*)"', notebook_html)
    assert embedded and unescape(embedded[1]) == saved
    with pytest.raises(Refusal, match="cannot be written"):
        view.save(tmp_path / "nowhere" / "view.html")


def test_weights_are_saved_as_arrays(tmp_path: Path) -> None:
    view = bertology.view("tiny", TEXT, against="random:tiny@7", quantities=("attention", "norm"))
    with np.load(view.save(tmp_path / "weights.npz")) as arrays:
        assert sorted(arrays) == ["attention", "attention.against", "norm", "norm.against", "tokens", "tokens.against"]
        assert arrays["attention"].shape == (2, 4, *arrays["tokens"].shape * 2)
        np.testing.assert_allclose(arrays["attention"].sum(-1), 1, atol=1e-3)


def test_the_page_forbids_network_access() -> None:
    text = bertology.view("tiny", TEXT).html()
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=\"?https?:", text)


@pytest.mark.parametrize("text", ["</script><script>alert(1)</script>", "<!-- <script>", "\ud800 lone", "{&quot;}"])
def test_no_text_ends_the_script_element(text: str) -> None:
    view = bertology.head_view([np.ones((1, 1, 1))], [text])
    assert payload_of(view.html())["runs"][0]["tokens"][0]["text"] == text


def test_the_widget_has_payload_and_state() -> None:
    pytest.importorskip("anywidget")
    view: View = bertology.view("tiny", TEXT)
    widget = view.widget()
    assert json.loads(widget.payload)["runs"][0]["name"] == "tiny"
    assert "render" in str(widget._esm)
