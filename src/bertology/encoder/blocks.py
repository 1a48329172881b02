"""What surrounds attention in a layer, wherever a family keeps it: the output projection, the residual, the LayerNorm.

Each layer tells the active tap before it attends, so that what is seen of a layer comes with the weights that carry it
on. Without an active tap a layer does nothing more than it would without bertology.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from bertology.encoder.attend import Block, active_tap


@dataclass(frozen=True)
class Anatomy:
    """Where a layer has its output projection, and the LayerNorm it applies to the sum with the residual.

    `norm` is None in pre-norm families, which add attention's output to the residual and leave the sum as it is.
    `transposed` is for weights kept as (in, out).
    """

    projection: str
    norm: str | None
    transposed: bool = False


_BERT = Anatomy("attention.output.dense", "attention.output.LayerNorm")

LAYERS: dict[str, Anatomy] = {
    "BertLayer": _BERT,
    "RobertaLayer": _BERT,
    "XLMRobertaLayer": _BERT,
    "CamembertLayer": _BERT,
    "ElectraLayer": _BERT,
    "DebertaV2Layer": _BERT,
    "TransformerBlock": Anatomy("attention.out_lin", "sa_layer_norm"),  # DistilBERT
    "AlbertLayer": Anatomy("attention.dense", "attention.LayerNorm"),
    "MPNetLayer": Anatomy("attention.attn.o", "attention.LayerNorm"),
    "ModernBertEncoderLayer": Anatomy("attn.Wo", None),
    "GPT2Block": Anatomy("attn.c_proj", None, transposed=True),
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


def _tell(layer: nn.Module, given: tuple[Any, ...], named: dict[str, Any]) -> None:
    tap = active_tap()
    if tap is None:
        return
    anatomy = LAYERS[type(layer).__name__]
    projection: Any = layer.get_submodule(anatomy.projection)
    norm: Any = layer.get_submodule(anatomy.norm) if anatomy.norm else None
    residual: Tensor = given[0] if given else named["hidden_states"]
    weight: Tensor = projection.weight.detach()
    bias: Tensor | None = projection.bias
    tap.block = Block(
        residual.detach(),
        weight if anatomy.transposed else weight.T,
        None if bias is None else bias.detach(),
        norm,
    )
