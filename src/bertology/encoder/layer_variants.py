"""Changes to a model's layers before fine-tuning: freeze, truncate, re-initialise.

See Merchant et al. (2020) and Zhang et al. (2021). Layers count from the input; the embeddings are not a layer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bertology.encoder.families import is_embedding, is_layer
from bertology.errors import Refusal
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class LayerVariant:
    """Changes before fine-tuning.

    `frozen_layers` k: the embeddings and the first k layers are not trained; `kept_layers` k: the layers above k are
    removed; `reinitialised_layers` k: the top k layers, and a pooler above them, start from random weights;
    `random_weights`: all weights do.
    """

    frozen_layers: int | None = None
    kept_layers: int | None = None
    reinitialised_layers: int = 0
    random_weights: bool = False

    def validate(self, layers: int, name: str) -> None:
        """Refuse numbers of layers that the model does not have."""
        n_left = layers if self.kept_layers is None else self.kept_layers
        for option, value, max_value in (
            ("keep-layers", self.kept_layers, layers),
            ("freeze-layers", self.frozen_layers, n_left),
            ("reinitialise-layers", self.reinitialised_layers, n_left),
        ):
            if value is not None and not 0 <= value <= max_value:
                raise Refusal(
                    f"--{option} is {value}, but {name} has {max_value} layers" + (" left" * (max_value < layers)),
                    f"a number from 0 to {max_value}",
                    "Choose a number in this range",
                )


def transformer_layers(model: Any) -> nn.ModuleList:
    """The layers of a model in order; refused if they share their weights, as in ALBERT."""
    n_layers = int(model.config.num_hidden_layers)
    for module in model.modules():
        if isinstance(module, torch.nn.ModuleList) and 0 < len(module) == n_layers and all(map(is_layer, module)):
            return module
    raise Refusal(
        f"{type(model).__name__} does not have {n_layers} layers with separate weights",
        "a model whose layers can be frozen, removed or re-initialised one by one",
        "Fine-tune it without layer options, or choose a model of a family other than ALBERT",
    )


def truncate(model: Any, n_layers: int) -> None:
    """Remove the layers above the first `n_layers`."""
    del transformer_layers(model)[n_layers:]
    model.config.num_hidden_layers = n_layers
    layer_types = getattr(model.config, "layer_types", None)
    if layer_types is not None:
        model.config.layer_types = list(layer_types)[:n_layers]


def reinitialise(model: Any, randomised: Any, n_layers: int) -> None:
    """Copy the top layers, and a pooler above them, from a model of the same shape with random weights."""
    if not n_layers:
        return
    with torch.no_grad():
        for layer, random_layer in zip(
            transformer_layers(model)[-n_layers:], transformer_layers(randomised)[-n_layers:], strict=True
        ):
            layer.load_state_dict(random_layer.state_dict())
        for name, weights in model.named_parameters():
            if ".pooler." in f".{name}":
                weights.copy_(randomised.get_parameter(name))


def freeze(model: Any, n_layers: int) -> None:
    """Exclude the embeddings and the first `n_layers` layers from training."""
    for name, weights in model.named_parameters():
        if is_embedding(model.config.model_type, name):
            weights.requires_grad_(False)
    for layer in transformer_layers(model)[:n_layers] if n_layers else ():
        layer.requires_grad_(False)
