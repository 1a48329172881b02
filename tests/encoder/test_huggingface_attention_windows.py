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
