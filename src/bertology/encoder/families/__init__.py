"""Model families: one module per family, which holds everything the package knows about it.

A module of this package with a `FAMILY` is found by itself; no other file names it. A plug-in is a package with an
entry point in the group `bertology.families` that names a `ModelFamily`.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any

from bertology.plugins import Plugin, PluginError, load_plugin

if TYPE_CHECKING:
    from torch import Tensor, nn

TaskHeadFields = tuple[tuple[str, str], ...]
"""(name of a task head in this package, field of its logits in transformers' output)."""
AttentionForward = Callable[..., Any]
ENTRY_POINT_GROUP = "bertology.families"


@dataclass(frozen=True)
class LayerSpec:
    """Where a transformer layer keeps its parts; paths are those of submodules.

    `attention_norm` is the LayerNorm of the sum of residual and attention output; None in pre-norm families.
    `feed_forward` is the rest of the layer without dropout. `qkv_projections` are given if they apply to the states
    themselves and nothing is added to the scores: no relative or rotary positions, no norm before.
    `conv1d_weights`: the output projection is stored as (in, out). `parallel_feed_forward` gives, for a layer, the
    feed-forward block that reads the layer's input beside attention; None if that layer has none.
    """

    attention: str
    output_projection: str
    attention_norm: str | None
    feed_forward: Callable[[Any, Tensor], Tensor]
    qkv_projections: tuple[str, str, str] | None = None
    conv1d_weights: bool = False
    parallel_feed_forward: Callable[[Any], Callable[[Tensor], Tensor] | None] | None = None


def no_position_offset(config: Any) -> int:
    """Positions count from 0."""
    return 0


def position_offset_after_padding(config: Any) -> int:
    """Positions count from the padding id + 1, as in RoBERTa: so many position embeddings are not available."""
    return (config.pad_token_id or 0) + 1


@dataclass(frozen=True)
class ModelFamily:
    """A family of models: `model_types` are those of config.json, `layer_classes` the classes of its layers.

    `embeddings` are the submodules between the input ids and the first layer. `patched_attention` holds, by class
    name, forward functions for families that do not use transformers' attention interface. `pretraining_heads` are
    the task heads of `...ForPreTraining`. In a `prunable` family a head can be removed from the projections.
    `encoder_classes` are, by model type, the transformers classes of the encoder alone, in a family with decoders.
    """

    name: str
    model_types: tuple[str, ...]
    layer_classes: tuple[str, ...]
    layer: LayerSpec
    embeddings: tuple[str, ...] = ("embeddings",)
    position_offset: Callable[[Any], int] = no_position_offset
    causal: bool = False
    prunable: bool = False
    pretraining_heads: TaskHeadFields = ()
    patched_attention: Mapping[str, AttentionForward] = field(default_factory=dict[str, AttentionForward])
    encoder_classes: Mapping[str, str] = field(default_factory=dict[str, str])


@cache
def model_families() -> tuple[ModelFamily, ...]:
    """All families, in the order of their modules' names, then those of plug-ins.

    A plug-in that cannot be loaded is left out with a warning.
    """
    for plugin in family_plugins():
        if plugin.problem:
            plugin.warn()
    return (*_builtin_families(), *(plugin.value for plugin in family_plugins() if not plugin.problem))


def family_plugins() -> tuple[Plugin, ...]:
    """The families of installed plug-ins, with the problems of those that cannot be loaded."""
    return tuple(load_plugin(entry, _load_plugged_in) for entry in entry_points(group=ENTRY_POINT_GROUP))


def _builtin_families() -> tuple[ModelFamily, ...]:
    modules = [import_module(f"{__name__}.{module.name}") for module in pkgutil.iter_modules(__path__)]
    return tuple(module.FAMILY for module in modules)


def _load_plugged_in(entry: EntryPoint) -> ModelFamily:
    loaded = entry.load()
    if not isinstance(loaded, ModelFamily):
        raise PluginError(f"{entry.value} is not a ModelFamily")
    for family in _builtin_families():
        common = {*loaded.model_types, *loaded.layer_classes} & {*family.model_types, *family.layer_classes}
        if common:
            raise PluginError(f"the built-in family {family.name} has {', '.join(sorted(common))} already")
    return loaded


def find_family(model_type: str) -> ModelFamily | None:
    """The family of a configuration's `model_type`; None if the package does not know it."""
    return next((family for family in model_families() if model_type in family.model_types), None)


def is_embedding(model_type: str, parameter_name: str) -> bool:
    """Whether a parameter lies below the first layer; for an unknown family by the paths of all families."""
    family = find_family(model_type)
    paths = (path for known in ([family] if family else model_families()) for path in known.embeddings)
    return any(f".{path}." in f".{parameter_name}" for path in paths)


@cache
def layer_specs() -> dict[str, LayerSpec]:
    """Specifications of all known layers, by class name."""
    return {name: family.layer for family in model_families() for name in family.layer_classes}


def layer_spec(layer: nn.Module) -> LayerSpec | None:
    """The specification of a transformer layer; None for any other module."""
    return layer_specs().get(type(layer).__name__)


def is_layer(module: nn.Module) -> bool:
    """Whether a module is a transformer layer of a known family."""
    return layer_spec(module) is not None
