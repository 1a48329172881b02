"""How far the pieces of each layer see, as an encoder tells it, is what its masks allow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

import models
from bertology.encoder.attend import LayerActivations, even_attention
from bertology.encoder.encoder import Batch
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.errors import Refusal
from models import COMMON, FAMILIES, HEADS, POSITIONS

PIECES = 20
SIZES: dict[str, Any] = {**COMMON, "vocab_size": 99, "max_position_embeddings": POSITIONS, "pad_token_id": 0}
DECODER: dict[str, Any] = {**SIZES, "num_key_value_heads": HEADS}

# Of families that nobody promised but that load: what they are called does not say that they only look back.
OTHERS: dict[str, Callable[[], Any]] = {
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
    "a decoder of bert's": lambda: transformers.BertModel(transformers.BertConfig(**SIZES, is_decoder=True)),
}
TOLD: dict[str, tuple[bool, tuple[int | None, ...]]] = {
    "opt": (True, ()),
    "gpt-neox": (True, ()),
    "mistral": (True, (4, 4)),
    "qwen2": (True, (None, 4)),
    "a decoder of bert's": (True, ()),
    "gpt2": (True, ()),
    "modernbert": (False, (None, 3, 3)),
}


def _allowed(encoder: HuggingFaceEncoder) -> list[Tensor]:
    """(from, to) of each layer: what its mask lets a piece see."""
    ids = torch.arange(5, 5 + PIECES)[None]
    seen: list[LayerActivations] = []
    with torch.inference_mode():
        encoder.run(Batch(ids, torch.zeros_like(ids), torch.ones_like(ids)), on_layer=seen.append)
    return [even_attention(layer.mask, layer.attention)[0, 0] > 0 for layer in seen]


def _assert_told(encoder: HuggingFaceEncoder, told: tuple[bool, tuple[int | None, ...]]) -> None:
    assert (encoder.causal, encoder.reach) == told
    places = torch.arange(PIECES)
    apart = places - places[:, None]
    for allowed, far in zip(_allowed(encoder), encoder.reach or [None] * encoder.layers, strict=True):
        near = apart.abs() <= (PIECES if far is None else far)
        assert torch.equal(allowed, near & (apart <= 0) if encoder.causal else near)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_family_tells_what_its_layers_see(name: str) -> None:
    _assert_told(models.encoder(name), TOLD.get(name, (False, ())))


@pytest.mark.parametrize("name", OTHERS)
def test_so_do_those_that_do_not_say_that_they_look_back(name: str) -> None:
    _assert_told(models.wrapped(OTHERS[name](), "bert"), TOLD[name])


def test_gates_and_fresh_weights_leave_it_as_it_is() -> None:
    for name in ("gpt2", "modernbert"):
        encoder = models.encoder(name)
        for other in (encoder.gated(None), encoder.randomised()):
            assert (other.causal, other.reach) == (encoder.causal, encoder.reach)


def test_layers_some_of_which_look_ahead_are_refused() -> None:
    made = models.model("bert")

    def backward(module: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, Any]:
        length = given[0].shape[1]
        ahead = torch.full((length, length), torch.finfo(torch.float32).min).triu(1)
        return (given[0], ahead[None, None], *given[2:]), {k: v for k, v in named.items() if k != "attention_mask"}

    made.encoder.layer[1].register_forward_pre_hook(backward, with_kwargs=True)
    with pytest.raises(Refusal, match="layers that look ahead and layers that do not"):
        models.wrapped(made, "bert")
