"""Causality and attention windows of an encoder agree with the attention masks of its layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

import tiny_models
from bertology.encoder.attention_hook import LayerActivations, uniform_attention
from bertology.encoder.encoder import ModelInputs, TaskEncoder
from bertology.errors import Refusal
from tiny_models import COMMON, FAMILIES, HEADS
from tiny_models import POSITIONS as MAX_POSITIONS

LENGTH = 20
SIZES: dict[str, Any] = {**COMMON, "vocab_size": 99, "max_position_embeddings": MAX_POSITIONS, "pad_token_id": 0}
DECODER: dict[str, Any] = {**SIZES, "num_key_value_heads": HEADS}

# Other families that load, and whose configuration does not say that they are causal.
OTHER_FAMILIES: dict[str, Callable[[], Any]] = {
    "opt": lambda: transformers.OPTModel(
        transformers.OPTConfig(
            vocab_size=99,
            hidden_size=32,
            word_embed_proj_dim=32,
            ffn_dim=48,
            num_hidden_layers=2,
            num_attention_heads=4,
        )
    ),
    "gpt-neox": lambda: transformers.GPTNeoXModel(transformers.GPTNeoXConfig(**SIZES)),
    "mistral": lambda: transformers.MistralModel(transformers.MistralConfig(**DECODER, sliding_window=5)),
    "qwen2": lambda: transformers.Qwen2Model(
        transformers.Qwen2Config(**DECODER, use_sliding_window=True, sliding_window=5, max_window_layers=1)
    ),
    "bert decoder": lambda: transformers.BertModel(transformers.BertConfig(**SIZES, is_decoder=True)),
}
EXPECTED: dict[str, tuple[bool, tuple[int | None, ...]]] = {
    "opt": (True, ()),
    "gpt-neox": (True, ()),
    "mistral": (True, (4, 4)),
    "qwen2": (True, (None, 4)),
    "bert decoder": (True, ()),
    "gpt2": (True, ()),
    "modernbert": (False, (None, 3, 3)),
}


def _visible(encoder: TaskEncoder) -> list[Tensor]:
    """(from, to) visibility in each layer, by its mask."""
    ids = torch.arange(5, 5 + LENGTH)[None]
    activations: list[LayerActivations] = []
    with torch.inference_mode():
        encoder.forward(ModelInputs(ids, torch.zeros_like(ids), torch.ones_like(ids)), on_layer=activations.append)
    return [uniform_attention(layer.attention_mask, layer.attention)[0, 0] > 0 for layer in activations]


def _assert_windows(encoder: TaskEncoder, expected: tuple[bool, tuple[int | None, ...]]) -> None:
    assert (encoder.causal, encoder.attention_windows) == expected
    positions = torch.arange(LENGTH)
    offsets = positions - positions[:, None]
    for visible, window in zip(_visible(encoder), encoder.attention_windows or [None] * encoder.layers, strict=True):
        inside = offsets.abs() <= (LENGTH if window is None else window)
        assert torch.equal(visible, inside & (offsets <= 0) if encoder.causal else inside)


@pytest.mark.parametrize("name", FAMILIES)
def test_windows_of_every_family(name: str) -> None:
    _assert_windows(tiny_models.encoder(name), EXPECTED.get(name, (False, ())))


@pytest.mark.parametrize("name", OTHER_FAMILIES)
def test_windows_of_families_that_do_not_declare_causality(name: str) -> None:
    _assert_windows(tiny_models.wrap_model(OTHER_FAMILIES[name](), "bert"), EXPECTED[name])


def test_gates_and_random_weights_keep_the_windows() -> None:
    for name in ("gpt2", "modernbert"):
        encoder = tiny_models.encoder(name)
        for variant in (encoder.with_gates(None), encoder.randomised()):
            assert (variant.causal, variant.attention_windows) == (encoder.causal, encoder.attention_windows)


def test_a_mixture_of_causal_and_bidirectional_layers_is_refused() -> None:
    model = tiny_models.model("bert")

    def mask_later_tokens(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        length = args[0].shape[1]
        mask = torch.full((length, length), torch.finfo(torch.float32).min).triu(1)
        return (args[0], mask[None, None], *args[2:]), {k: v for k, v in kwargs.items() if k != "attention_mask"}

    model.encoder.layer[1].register_forward_pre_hook(mask_later_tokens, with_kwargs=True)
    with pytest.raises(Refusal, match="has causal layers and layers that attend to later tokens"):
        tiny_models.wrap_model(model, "bert")


def _padded(*lengths: int) -> ModelInputs:
    """Inputs of these lengths, the first one the longest."""
    ids = torch.arange(5, 5 + lengths[0]).repeat(len(lengths), 1)
    mask = (torch.arange(lengths[0]) < torch.tensor(lengths)[:, None]).long()
    return ModelInputs(ids * mask, torch.zeros_like(ids), mask, known_padding=len(set(lengths)) > 1)


@pytest.mark.parametrize("name", [*FAMILIES, *OTHER_FAMILIES])
@pytest.mark.parametrize("lengths", [(LENGTH, 9), (5, 2), (4, 2), (LENGTH, LENGTH)], ids=str)
def test_layers_that_hide_only_padding(name: str, lengths: tuple[int, ...]) -> None:
    is_other = name in OTHER_FAMILIES
    encoder = tiny_models.wrap_model(OTHER_FAMILIES[name](), "bert") if is_other else tiny_models.encoder(name)
    batch, layers = _padded(*lengths), list[LayerActivations]()
    with torch.inference_mode():
        encoder.forward(batch, on_layer=layers.append)
    is_token = batch.attention_mask.bool()
    hides_padding: list[bool] = []
    for layer in layers:
        visible = uniform_attention(layer.attention_mask, layer.attention) > 0
        as_expected = (visible == is_token[:, None, None]) | ~is_token[:, None, :, None]  # rows of padding do not count
        hides_padding.append(bool(as_expected.all()))
    windows = encoder.attention_windows or [None] * encoder.layers
    is_global = [not encoder.causal and (window is None or lengths[0] <= window + 1) for window in windows]
    assert [layer.hides_only_padding for layer in layers] == is_global == hides_padding


def test_masks_of_an_unknown_family_may_hide_more() -> None:
    encoder, layers = (
        tiny_models.wrap_model(transformers.ErnieModel(transformers.ErnieConfig(**SIZES)), "bert"),
        list[Any](),
    )
    with torch.inference_mode():
        encoder.forward(_padded(LENGTH, 9), on_layer=layers.append)
    assert not encoder.causal
    assert [(layer.attention_mask is None, layer.hides_only_padding) for layer in layers] == [(False, False)] * 2
