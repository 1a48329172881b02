"""What surrounds attention in a layer, wherever a family keeps it: the output projection, the residual, the LayerNorm.

Each layer tells the active tap before it attends, so that what is seen of a layer comes with the weights that carry it
on. Without an active tap a layer does nothing more than it would without bertology.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from torch import Tensor, nn

from bertology.encoder.attend import Block, active_tap


@dataclass(frozen=True)
class Anatomy:
    """Where a layer has its output projection, the LayerNorm it applies to the sum with the residual, and the rest.

    `norm` is None in pre-norm families, which add attention's output to the residual and leave the sum as it is.
    `feed_forward` is what a layer does after that, all but dropout. `into` are the projections into the heads, of
    layers that multiply the states themselves by them and add nothing to the scores: no positions, no norm before.
    `transposed` is for weights kept as (in, out).
    """

    projection: str
    norm: str | None
    feed_forward: Callable[[Any, Tensor], Tensor]
    into: tuple[str, str, str] | None = None
    transposed: bool = False


def _bert(layer: Any, states: Tensor) -> Tensor:
    return layer.output(layer.intermediate(states), states)


def _distilbert(layer: Any, states: Tensor) -> Tensor:
    return layer.output_layer_norm(layer.ffn(states) + states)


def _albert(layer: Any, states: Tensor) -> Tensor:
    return layer.full_layer_layer_norm(layer.ff_chunk(states) + states)


def _modernbert(layer: Any, states: Tensor) -> Tensor:
    return states + layer.mlp(layer.mlp_norm(states))


def _gpt2(layer: Any, states: Tensor) -> Tensor:
    return states + layer.mlp(layer.ln_2(states))


_BERT = Anatomy(
    "attention.output.dense",
    "attention.output.LayerNorm",
    _bert,
    ("attention.self.query", "attention.self.key", "attention.self.value"),
)

LAYERS: dict[str, Anatomy] = {
    "BertLayer": _BERT,
    "RobertaLayer": _BERT,
    "XLMRobertaLayer": _BERT,
    "CamembertLayer": _BERT,
    "ElectraLayer": _BERT,
    "DebertaV2Layer": Anatomy("attention.output.dense", "attention.output.LayerNorm", _bert),
    "TransformerBlock": Anatomy(
        "attention.out_lin", "sa_layer_norm", _distilbert, ("attention.q_lin", "attention.k_lin", "attention.v_lin")
    ),  # DistilBERT
    "AlbertLayer": Anatomy(
        "attention.dense", "attention.LayerNorm", _albert, ("attention.query", "attention.key", "attention.value")
    ),
    "MPNetLayer": Anatomy("attention.attn.o", "attention.LayerNorm", _bert),
    "ModernBertEncoderLayer": Anatomy("attn.Wo", None, _modernbert),
    "GPT2Block": Anatomy("attn.c_proj", None, _gpt2, transposed=True),
}


def teach(model: nn.Module) -> int:
    """Make every layer in `model` whose anatomy is known tell the active tap; returns how many were taught.

    Teaching twice is teaching once, and a deep copy of a taught model is taught.
    """
    layers: list[Any] = [module for module in model.modules() if type(module).__name__ in LAYERS]
    for layer in layers:
        if _tell not in layer._forward_pre_hooks.values():
            layer.register_forward_pre_hook(_tell, with_kwargs=True)
    return len(layers)


def block_of(layer: nn.Module, residual: Tensor) -> Block:
    """What carries the attention of a layer on, over this residual."""
    anatomy = LAYERS[type(layer).__name__]
    projection: Any = layer.get_submodule(anatomy.projection)
    norm: Any = layer.get_submodule(anatomy.norm) if anatomy.norm else None
    weight: Tensor = projection.weight.detach()
    bias: Tensor | None = projection.bias
    return Block(
        residual.detach(),
        weight if anatomy.transposed else weight.T,
        None if bias is None else bias.detach(),
        norm,
        partial(anatomy.feed_forward, layer),
    )


def _tell(layer: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    tap = active_tap()
    if tap is not None:
        tap.block = block_of(layer, given[0] if given else named["hidden_states"])
