"""Encoders derived from an encoder: without some heads, with uniform attention in some, with other layers.

A derived model shares all weights with the original and has its own modules and configuration, so that the original
computes as before. Changes of heads are held by the attention modules and move with their layers.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from bertology.encoder.attention_hook import UNCHANGED, HeadChanges
from bertology.encoder.encoder import Encoder, Head
from bertology.encoder.families import layer_spec
from bertology.encoder.layer_variants import transformer_layers
from bertology.errors import Refusal
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import nn

MAX_HEADS_IN_NAME = 8


@dataclass(frozen=True)
class Variant:
    """How an encoder was derived: the layers of the original that run, in order, and the changes to their heads.

    `layers` are numbers from 1; `heads` has one entry for each layer that runs.
    """

    original_name: str
    n_original_layers: int
    layers: tuple[int, ...]
    heads: tuple[HeadChanges, ...]

    @property
    def zeroed(self) -> list[Head]:
        """Heads of the derived encoder without output."""
        return [Head(layer, head) for layer, changes in enumerate(self.heads) for head in sorted(changes.zeroed)]

    @property
    def uniform(self) -> list[Head]:
        """Heads of the derived encoder with uniform attention."""
        return [Head(layer, head) for layer, changes in enumerate(self.heads) for head in sorted(changes.uniform)]

    @property
    def is_reordered(self) -> bool:
        """Whether other layers run than those of the original, or in another order."""
        return self.layers != tuple(range(1, self.n_original_layers + 1))

    def name(self, n_heads: int) -> str:
        """The original's name and what was changed; heads are numbered as in the derived encoder."""
        zeroed, uniform = self.zeroed, self.uniform
        kept = [Head(layer, head) for layer in range(len(self.heads)) for head in range(n_heads)]
        kept = [head for head in kept if head not in set(zeroed)]
        parts = [self.original_name]
        if self.is_reordered:
            parts.append(f"with layers {', '.join(map(str, self.layers))}")
        if zeroed:
            parts.append(f"keeping {_list(kept)}" if len(kept) < len(zeroed) else f"without {_list(zeroed)}")
        if uniform:
            parts.append(f"with uniform {_list(uniform)}")
        return " ".join(parts)

    @property
    def changes(self) -> dict[str, list[str]]:
        """The changes by kind, for the provenance of a result."""
        changes = {
            "layers": [str(layer) for layer in self.layers] if self.is_reordered else [],
            "heads set to zero": [str(head) for head in self.zeroed],
            "heads with uniform attention": [str(head) for head in self.uniform],
        }
        return {kind: values for kind, values in changes.items() if values}


def variant_of(encoder: Any) -> Variant:
    """The changes of an encoder; none for one that is not derived."""
    numbers = tuple(range(1, encoder.layers + 1))
    return encoder.variant or Variant(encoder.name, encoder.layers, numbers, (UNCHANGED,) * encoder.layers)


def with_head_changes(variant: Variant, *, zeroed: Sequence[Head] = (), uniform: Sequence[Head] = ()) -> Variant:
    """The same variant with more heads changed."""
    heads = list(variant.heads)
    for layer, head in zeroed:
        heads[layer] = replace(heads[layer], zeroed=heads[layer].zeroed | {head})
    for layer, head in uniform:
        heads[layer] = replace(heads[layer], uniform=heads[layer].uniform | {head})
    return replace(variant, heads=tuple(heads))


def with_layer_order(variant: Variant, order: Sequence[int]) -> Variant:
    """The same variant with the layers at these indices, from 0, in this order."""
    layers, heads = (tuple(values[index] for index in order) for values in (variant.layers, variant.heads))
    return replace(variant, layers=layers, heads=heads)


def parse_heads(encoder: Encoder, heads: Sequence[str | tuple[int, int]]) -> list[Head]:
    """Heads given as `3-8` or as `Head`; refuses heads that the encoder does not have."""
    if not heads:
        raise Refusal("No head was named", f"heads of {encoder.name} such as '1-1'", "Name one head or several")
    return [_parse_head(encoder, head) for head in heads]


def _parse_head(encoder: Encoder, value: Any) -> Head:
    try:
        head = Head.parse(value) if isinstance(value, str) else Head(*value)
        is_valid = 0 <= head[0] < encoder.layers and 0 <= head[1] < encoder.heads
    except (TypeError, ValueError):
        head, is_valid = Head(0, 0), False
    if not is_valid:
        raise Refusal(
            f"{encoder.name} has no head {value!r}",
            f"heads from '1-1' to '{encoder.layers}-{encoder.heads}'",
            "Write layer and head from 1 with a hyphen, as results print them",
        )
    return head


def parse_layers(encoder: Encoder, layers: Sequence[int]) -> list[int]:
    """Indices, from 0, of layers numbered from 1; refuses layers that the encoder does not have."""
    values: list[Any] = list(layers)
    for layer in values or [None]:
        if not isinstance(layer, int) or isinstance(layer, bool) or not 1 <= layer <= encoder.layers:
            raise Refusal(
                f"{encoder.name} has no layer {layer!r}" if values else "No layer was named",
                f"numbers from 1 to {encoder.layers}, in the order in which the layers are to run",
                "Write for example with_layers(1, 2): later layers are left out",
            )
    return [layer - 1 for layer in values]


def copy_sharing_weights(model: nn.Module, *shared_parts: Any) -> Any:
    """A copy with its own modules and configuration; parameters, buffers, hooks and `shared_parts` are the model's."""
    shared: list[Any] = [*shared_parts, *model.parameters(), *model.buffers()]
    modules: list[Any] = list(model.modules())
    for module in modules:
        shared += [*module._forward_hooks.values(), *module._forward_pre_hooks.values()]
    return copy.deepcopy(model, {id(part): part for part in shared})


def derive_model(model: nn.Module, order: Sequence[int], heads: Sequence[HeadChanges]) -> Any:
    """A model that shares its weights with this one, with the layers of `order` and these changes to their heads."""
    derived = copy_sharing_weights(model)
    if list(order) != list(range(len(transformer_layers(model)))):
        _reorder_layers(derived, order)
    set_head_changes(derived, heads)
    return derived


def set_head_changes(model: nn.Module, heads: Sequence[HeadChanges]) -> None:
    """Change the heads of a model's layers, from the first; layers without an entry stay as they are."""
    for layer, changes in zip(transformer_layers(model), heads, strict=False):
        spec = layer_spec(layer)
        assert spec is not None, "transformer_layers returns layers of known families"
        attention: Any = layer.get_submodule(spec.attention)
        attention.head_changes = changes


def _reorder_layers(model: Any, order: Sequence[int]) -> None:
    layers = transformer_layers(model)
    _refuse_moved_weights(model, layers, order)
    # A layer that runs twice has two modules, whose heads can be changed apart, and one set of weights. Both keep the
    # model's configuration, by which attention is switched to the hooked one.
    chosen = [
        copy_sharing_weights(layers[index], model.config) if index in order[:position] else layers[index]
        for position, index in enumerate(order)
    ]
    for module in list(model.modules()):
        for name, child in module.named_children():
            if child is layers:
                setattr(module, name, torch.nn.ModuleList(chosen))
    config = model.config
    config.num_hidden_layers = len(order)
    layer_types = getattr(config, "layer_types", None)
    if layer_types is not None:
        config.layer_types = [layer_types[index] for index in order]
    removed: dict[str, Any] = getattr(config, "removed_heads", None) or {}
    if removed:
        config.removed_heads = {
            str(position): removed[str(index)] for position, index in enumerate(order) if str(index) in removed
        }


def _refuse_moved_weights(model: Any, layers: nn.ModuleList, order: Sequence[int]) -> None:
    """Refuse to move a first layer that holds weights for all layers, as T5's relative positions."""
    first, *others = ({name for name, _ in layer.named_parameters()} for layer in layers)
    shared = first - set[str]().union(*others) if others else set[str]()
    if shared and (order[0] != 0 or 0 in order[1:]):
        raise Refusal(
            f"Layer 1 of {type(model).__name__} holds weights that all layers use ({sorted(shared)[0]})",
            "layer 1 in the first place, once",
            "Begin with layer 1",
        )


def _list(heads: Sequence[Head]) -> str:
    if not heads:
        return "no head"
    return ", ".join(map(str, heads)) if len(heads) <= MAX_HEADS_IN_NAME else f"{len(heads)} heads"
