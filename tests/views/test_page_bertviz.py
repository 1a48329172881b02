"""Pages of tensors in a browser: chosen layers and heads, and the attention of an encoder-decoder."""

from __future__ import annotations

from typing import Any

import torch

from bertology.views.bertviz import head_view, model_view

SOURCE, TARGET = ["▁she", "▁sees", "▁him", "</s>"], ["<pad>", "▁elle", "▁le", "▁voit", "</s>"]


def make_attention(rows: int, columns: int, layers: int = 6, heads: int = 4) -> tuple[torch.Tensor, ...]:
    generator = torch.Generator().manual_seed(1)
    return tuple((3 * torch.rand(1, heads, rows, columns, generator=generator)).softmax(-1) for _ in range(layers))


def test_layers_and_heads_keep_their_numbers(opened: Any) -> None:
    tokens = ["[CLS]", "a", "b", "[SEP]"]
    page = opened(model_view(make_attention(4, 4), tokens, include_layers=[1, 4], include_heads=[0, 3]))
    names = page.locator("[data-head]").evaluate_all("all => all.map(each => each.dataset.head)")
    assert names == ["2-1", "2-4", "5-1", "5-4"]
    page.locator("[data-head='5-4']").dblclick()
    page.wait_for_selector(".views[data-ready=head]")
    assert page.locator("[data-choice=Layer] option").all_inner_texts() == ["2", "5"]
    assert page.locator("[data-chip]").evaluate_all("all => all.map(each => each.dataset.chip)") == ["1", "4"]
    assert "layer=5" in page.url and "heads=4" in page.url
    assert page.locator(".details h2").inner_text() == "Head 5-4"
    assert page.locator("[data-choice='Combine layers'] option[value=rollout]").count() == 0


def test_a_link_opens_a_layer_by_its_number(opened: Any) -> None:
    page = opened(head_view(make_attention(3, 3), ["a", "b", "c"], include_layers=[2, 5], layer=5, heads=[2]))
    assert page.locator("[data-choice=Layer]").input_value() == "1"  # the second of two
    assert page.locator(".details h2").inner_text() == "Head 6-3"


def test_cross_attention_goes_from_the_decoder_to_the_encoder(opened: Any) -> None:
    cross = make_attention(5, 4)
    page = opened(
        head_view(
            encoder_attention=make_attention(4, 4),
            decoder_attention=tuple(layer.tril() for layer in make_attention(5, 5)),
            cross_attention=cross,
            encoder_tokens=SOURCE,
            decoder_tokens=TARGET,
            layer=1,
            heads=[2],
        )
    )
    choice = page.locator("[data-choice=Run]")
    assert [text.split(",")[0] for text in choice.locator("option").all_inner_texts()] == [
        "encoder self-attention",
        "decoder self-attention",
        "cross-attention",
    ]
    assert page.locator("[data-view=difference]").count() == 0
    choice.select_option("2")
    page.locator("ol.from bdi", has_text="elle").wait_for()
    texts = {side: page.locator(f"ol.{side} bdi").all_inner_texts() for side in ("from", "to")}
    assert texts == {"from": ["<pad>", "elle", "le", "voit", "</s>"], "to": ["she", "sees", "him", "</s>"]}
    page.locator("[data-view=matrix]").click()
    page.wait_for_selector(".views[data-ready=matrix]")
    cell = page.locator("[data-cell='1,2']")
    assert abs(float(cell.inner_text()) - cross[1][0, 2, 1, 2].item()) < 0.006
    assert page.locator("[data-choice=Sentences]").count() == 0
    page.locator("[data-view=model]").click()
    page.wait_for_selector(".views[data-ready=model]")
    assert page.locator("[data-head]").count() == 24
