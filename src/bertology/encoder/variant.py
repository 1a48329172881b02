"""A model changed by blocks before it learns: some frozen, the top cut off, or made fresh (merchant2020, zhang2021).

Blocks are counted from the input; the embeddings are no block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from bertology.encoder.blocks import LAYERS
from bertology.errors import Refusal

# What lies between the input ids and the first layer, whatever the family calls it.
EMBEDDING_PATHS = (".embeddings.", ".embeddings_project.", ".embedding_hidden_mapping_in.", ".wte.", ".wpe.")


@dataclass(frozen=True)
class Variant:
    """What is changed before learning.

    `freeze` k: the embeddings and the first k blocks do not learn; `truncate` k: the blocks above k are dropped;
    `reinitialise` k: the top k blocks, and a pooler above them, begin afresh; `random`: all weights do.
    """

    freeze: int | None = None
    truncate: int | None = None
    reinitialise: int = 0
    random: bool = False

    def refuse_unfit(self, layers: int, name: str) -> None:
        """Refuse numbers of blocks that the model does not have."""
        left = layers if self.truncate is None else self.truncate
        for option, blocks, most in (
            ("truncate", self.truncate, layers),
            ("freeze", self.freeze, left),
            ("reinitialise", self.reinitialise, left),
        ):
            if blocks is not None and not 0 <= blocks <= most:
                raise Refusal(
                    f"--{option} was given {blocks}, and {name} has {most} blocks" + (" left" if most < layers else ""),
                    f"a number from 0 to {most}",
                    "Choose one of them",
                )


def blocks_of(model: Any) -> nn.ModuleList:
    """The blocks of a model in order; refused where they share their weights, as in ALBERT."""
    layers = int(model.config.num_hidden_layers)
    for module in model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == layers:
            names = [type(block).__name__ for block in module]
            if layers and set(names) <= set(LAYERS):
                return module
    raise Refusal(
        f"{type(model).__name__} has no {layers} blocks with weights of their own",
        "a model whose blocks can be frozen, dropped or made fresh one by one",
        "Fine-tune it whole, or choose a model of another family than ALBERT",
    )


def truncate(model: Any, blocks: int) -> None:
    """Drop the blocks above the first `blocks`."""
    del blocks_of(model)[blocks:]
    model.config.num_hidden_layers = blocks
    kinds = getattr(model.config, "layer_types", None)
    if kinds is not None:
        model.config.layer_types = list(kinds)[:blocks]


@torch.no_grad()
def reinitialise(model: Any, fresh: Any, blocks: int) -> None:
    """Give the top blocks, and a pooler above them, the weights of a fresh model of the same shape."""
    if not blocks:
        return
    for block, new in zip(blocks_of(model)[-blocks:], blocks_of(fresh)[-blocks:], strict=True):
        block.load_state_dict(new.state_dict())
    for name, weights in model.named_parameters():
        if ".pooler." in f".{name}":
            weights.copy_(fresh.get_parameter(name))


def freeze(model: Any, blocks: int) -> None:
    """Keep the embeddings and the first blocks from learning."""
    for name, weights in model.named_parameters():
        if any(path in f".{name}" for path in EMBEDDING_PATHS):
            weights.requires_grad_(False)
    for block in blocks_of(model)[:blocks] if blocks else ():
        block.requires_grad_(False)
