"""The calls that BertViz's examples make, with the same arguments in the same order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import transformers

import tiny_models
from bertology.errors import Refusal
from bertology.views.bertviz import head_view, model_view, neuron_view, show
from bertology.views.payload import dequantise
from bertology.views.view import View
from tiny_tokenisers import TEXTS

TOKENS = ["[CLS]", "the", "straw", "##berries", "[SEP]", "they", "melt", "[SEP]"]


def make_attention(layers: int, heads: int, rows: int, columns: int) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.rand(1, heads, rows, columns, generator=generator).softmax(-1) for _ in range(layers))


def weights_of(view: View, run: int = 0) -> Any:
    return dequantise(view.payload.runs[run].quantities[0].weights)


def test_arguments_by_position_mean_what_they_mean_in_bertviz() -> None:
    attention = make_attention(3, 2, 8, 8)
    view = head_view(attention, TOKENS, 5, True, 1, [0])
    assert view.payload.state == "view=head&layer=2&heads=1" and view.payload.runs[0].is_pair
    view = model_view(attention, TOKENS, 5, True, "dark")
    assert "view=model" in view.payload.state and "theme=dark" in view.payload.state
    np.testing.assert_allclose(weights_of(view), torch.cat(attention).numpy(), atol=1e-6)


def test_layers_and_heads_that_are_not_included_are_not_on_the_page() -> None:
    attention = make_attention(4, 3, 8, 8)
    view = model_view(attention, TOKENS, include_layers=[1, 3], include_heads=[2])
    run = view.payload.runs[0]
    assert run.layer_numbers == [2, 4] and run.head_numbers == [3]
    np.testing.assert_allclose(weights_of(view), torch.cat(attention).numpy()[[1, 3]][:, [2]], atol=1e-6)
    assert "layer=2" in head_view(attention, TOKENS, layer=1, include_layers=[1]).payload.state
    opened = head_view(attention, TOKENS, include_layers=[2]).payload
    assert "layer=3" in opened.state and opened.runs[0].head_numbers == []


def test_markers_of_word_starts_are_not_shown() -> None:
    attention = make_attention(1, 1, 4, 4)
    tokens = ["<s>", "Ġthe", "Ġcaf", "Ã©"]
    run = head_view(attention, tokens).payload.runs[0]
    assert [token.text for token in run.tokens] == ["<s>", "the", "caf", "é"] and run.words == ["the", "café"]
    assert [
        token.text for token in head_view(attention, tokens, prettify_tokens=False).payload.runs[0].tokens
    ] == tokens
    pieces = ["▁the", "▁ca", "fé", "▁"]
    assert [token.text for token in head_view(attention, pieces).payload.runs[0].tokens] == ["the", "ca", "fé", "▁"]
    assert [token.text for token in head_view(make_attention(1, 1, 8, 8), TOKENS).payload.runs[0].tokens] == TOKENS


def test_an_encoder_decoder_has_a_run_for_each_kind_of_attention() -> None:
    source, target = ["▁she", "▁sees", "</s>"], ["<pad>", "▁elle", "▁le", "▁voit", "</s>"]
    encoder = make_attention(2, 2, 3, 3)
    decoder = tuple(layer.tril() for layer in make_attention(2, 2, 5, 5))
    cross = make_attention(2, 2, 5, 3)
    view = model_view(
        encoder_attention=encoder,
        decoder_attention=decoder,
        cross_attention=cross,
        encoder_tokens=source,
        decoder_tokens=target,
    )
    runs = view.payload.runs
    assert [run.role for run in runs] == ["encoder", "decoder", "cross"]
    assert [run.causal for run in runs] == [False, True, False]
    crossed = runs[2]
    assert [token.segment for token in crossed.tokens] == [0] * 3 + [1] * 5
    assert crossed.words == ["she", "sees", "elle", "le", "voit"]
    assert [token.word_index for token in crossed.tokens] == [0, 1, -1, -1, 2, 3, 4, -1]
    weights = weights_of(view, 2)
    np.testing.assert_allclose(weights[:, :, 3:, :3], torch.cat(cross).numpy(), atol=1e-6)
    assert weights.sum() == pytest.approx(torch.cat(cross).sum().item(), rel=1e-5)
    only_cross = head_view(cross_attention=cross, encoder_tokens=source, decoder_tokens=target, layer=1)
    assert [run.role for run in only_cross.payload.runs] == ["cross"]


def test_the_page_is_returned_or_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    attention = make_attention(1, 1, 8, 8)
    returned = head_view(attention, TOKENS, html_action="return")
    assert returned.data == returned.html() and "<html" in returned.data
    shown: list[View] = []

    def keep(view: View) -> None:
        shown.append(view)

    monkeypatch.setattr(View, "display", keep)
    assert head_view(attention, TOKENS, html_action="view") is None
    assert model_view(attention, TOKENS, html_action="view") is None
    assert ["view=head" in view.payload.state for view in shown] == [True, False]


def test_the_neuron_view_takes_a_model_of_transformers() -> None:
    model, tokenizer = tiny_models.model("bert"), tiny_models.hf_tokenizer("bert")
    view = show(model, "bert", tokenizer, TEXTS[0], "A cat.", display_mode="light", layer=1, head=0)
    assert "view=neuron&layer=2&heads=1" in view.payload.state and "theme=light" in view.payload.state
    assert view.payload.runs[0].query is not None and view.payload.runs[0].is_pair
    assert isinstance(neuron_view("tiny", "A cat."), View)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "No attention was given"),
        ({"attention": make_attention(1, 1, 2, 2)}, "without tokens"),
        ({"attention": make_attention(1, 1, 2, 2), "tokens": ["a", "b"], "include_layers": [1]}, "0 to 0"),
        ({"attention": make_attention(1, 1, 2, 2), "tokens": ["a", "b"], "include_layers": []}, "0 to 0"),
        ({"cross_attention": make_attention(1, 1, 2, 3), "encoder_tokens": ["a"] * 3}, "without decoder_tokens"),
        (
            {"cross_attention": make_attention(1, 1, 2, 3), "encoder_tokens": ["a"] * 2, "decoder_tokens": ["b"] * 3},
            "3 and 2 tokens",
        ),
        ({"encoder_attention": make_attention(1, 1, 1, 1), "encoder_tokens": ["a"], "sentence_b_start": 1}, "encoder-"),
        (
            {"attention": make_attention(2, 1, 1, 1), "tokens": ["a"], "include_layers": [0], "layer": 1},
            "not among include_layers",
        ),
        ({"attention": make_attention(1, 1, 1, 1), "tokens": ["a"], "html_action": "show"}, "html_action"),
    ],
)
def test_mistakes_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(Refusal, match=message):
        head_view(**arguments)


@pytest.mark.parametrize("family", ["BART", "T5"])
def test_the_outputs_of_an_encoder_decoder_of_transformers_fit(family: str) -> None:
    """What BertViz's notebooks of encoder-decoders do: one forward pass, then all three kinds of attention."""
    torch.manual_seed(0)
    if family == "BART":
        sizes: dict[str, Any] = {
            f"{part}_{size}": 2 for part in ("encoder", "decoder") for size in ("layers", "attention_heads")
        }
        config: Any = transformers.BartConfig(
            vocab_size=30, d_model=8, encoder_ffn_dim=8, decoder_ffn_dim=8, max_position_embeddings=16, **sizes
        )
        model: Any = transformers.BartModel(config)
    else:
        config = transformers.T5Config(vocab_size=30, d_model=8, d_kv=4, d_ff=8, num_layers=2, num_heads=2)
        model = transformers.T5Model(config)
    model.eval().set_attn_implementation("eager")
    with torch.no_grad():
        outputs = model(
            input_ids=torch.tensor([[5, 6, 7]]), decoder_input_ids=torch.tensor([[5, 6, 7, 8]]), output_attentions=True
        )
    view = model_view(
        encoder_attention=outputs.encoder_attentions,
        decoder_attention=outputs.decoder_attentions,
        cross_attention=outputs.cross_attentions,
        encoder_tokens=["▁a", "▁b", "</s>"],
        decoder_tokens=["▁c", "▁d", "▁e", "</s>"],
    )
    assert [run.causal for run in view.payload.runs] == [False, True, False]
    np.testing.assert_allclose(weights_of(view, 2)[:, :, 3:, :3].sum(-1), 1, atol=1e-5)
