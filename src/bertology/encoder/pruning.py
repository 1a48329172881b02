"""Permanent removal of heads: the same outputs as with the heads' output set to zero.

In memory a pruned model has smaller matrices, and is faster. No transformers configuration can express layers with
fewer heads, so that a directory holds the full size, which every tool can load:

| file | |
|---|---|
| `config.json` | that of the full model, with `removed_heads`: removed heads by layer, from 0 |
| `model.safetensors` | the weights of the full model, with zeros for removed heads |
| the tokeniser | that of the full model |

transformers computes the same outputs with the zeros, at the speed of the full model; `load` removes them. (The entry
is not called `pruned_heads`: transformers 4 would shrink the matrices before it reads the weights.) In families whose
heads share a projection or positions, only the heads' columns of the output projection are set to zero: outputs are
the same, and nothing gets smaller.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.arrays import BoolArray
from bertology.encoder.attention_hook import Gates, HeadChanges, LayerActivations, head_changes
from bertology.encoder.checkpoint_validation import read_config
from bertology.encoder.encoder import ModelInputs, ModelOutput, Objective, TaskEncoder
from bertology.encoder.families import LayerSpec, ModelFamily, find_family, layer_spec, model_families
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.huggingface_loading import load_directory
from bertology.encoder.layer_variants import transformer_layers
from bertology.encoder.task_heads import save_pretrained
from bertology.encoder.variants import Variant
from bertology.errors import Refusal
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor, nn

HeadMask = BoolArray

CONFIG, ENTRY = "config.json", "removed_heads"
EXPECTED_FILES = f"{CONFIG} with heads by layer, both from 0, under {ENTRY!r}, and zeros for the weights of these heads"


@dataclass(frozen=True, eq=False)
class PrunedEncoder(HuggingFaceEncoder):
    """A model with heads removed: it can be evaluated on its task, but its attention cannot be recorded."""

    @property
    def is_pruned(self) -> bool:
        """Whether heads have been removed."""
        return True

    def with_gates(self, gates: Gates | None) -> HuggingFaceEncoder:
        """Refused: gates need a model with all its heads."""
        if gates is None:
            return self
        raise self._unsupported("Removed heads cannot be gated")

    def forward(
        self,
        batch: ModelInputs,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        logits: bool = True,
        objective: Objective | None = None,
    ) -> ModelOutput:
        """Run one forward pass; refuses to record attention, as layers differ in their number of heads."""
        if on_layer is not None:
            raise self._unsupported("Layers with different numbers of heads cannot be recorded")
        return super().forward(batch, hidden=hidden, logits=logits)

    def randomised(self, seed: int = 0, *, keep_embeddings: bool = False) -> HuggingFaceEncoder:
        """A model with random weights and the same heads removed."""
        randomised = super().randomised(seed, keep_embeddings=keep_embeddings)
        return prune(randomised, read_head_mask(self.model.config))

    def _unsupported(self, problem: str) -> Refusal:
        return Refusal(
            f"{problem}: {self.name} is pruned",
            "a model with all its heads",
            "Use the unpruned model with the gates of those heads set to 0: its outputs are the same",
        )


class _NoHeads(torch.nn.Module):
    """Self-attention of a layer without heads: only the bias of the output projection is left.

    `out_lin` is the projection in families that keep it inside the self-attention (DistilBERT names it so).
    """

    def __init__(self, out_lin: nn.Module | None) -> None:
        super().__init__()
        self.out_lin = out_lin

    def forward(self, hidden_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, None]:
        """Head outputs of size 0, projected if the projection is inside."""
        empty = hidden_states.new_empty((*hidden_states.shape[:-1], 0))
        return empty if self.out_lin is None else self.out_lin(empty), None


def prune(encoder: TaskEncoder, head_mask: HeadMask) -> PrunedEncoder:
    """A copy of the model with only the heads that are True in the (layer, head) mask."""
    _check_mask(encoder, head_mask)
    if not can_shrink(encoder):
        raise Refusal(
            f"Heads of {encoder.name} ({_family_name(encoder)}) cannot be removed: they share weights or positions",
            f"a model of one of the families {', '.join(shrinkable_families())}",
            "Set these heads to zero instead (`zero_heads`, `bertology prune`): the outputs are the same, without the "
            "speed-up",
        )
    model = copy.deepcopy(encoder.model)
    for layer, mask in zip(transformer_layers(model), head_mask, strict=True):
        if not mask.all():
            _remove_heads(layer, mask)
    _list_removed_heads(model.config, head_mask)
    parts = (model.eval(), encoder.hf_tokenizer, encoder.tokeniser, encoder.missing_weights)
    return PrunedEncoder(encoder.name, *parts, causal=encoder.causal)


def zero_heads(encoder: TaskEncoder, head_mask: HeadMask) -> TaskEncoder:
    """A copy of the model in which the weights of heads that are False in the (layer, head) mask are zero.

    Where a head has its own values as well as its own part of the output projection, both are zero, so that its
    gradients are zero too: it stays removed if the model is trained further.
    """
    _check_mask(encoder, head_mask)
    model = copy.deepcopy(encoder.model)
    with torch.no_grad():
        for layer, mask in zip(transformer_layers(model), head_mask, strict=True):
            for weights in _head_weights(layer, mask):
                weights.zero_()
    _list_removed_heads(model.config, head_mask)
    return encoder.with_model(model)


def zero_variant(encoder: TaskEncoder, variant: Variant) -> Any:
    """The model of a derived encoder as transformers can save it: zeros for heads without output, layers apart."""
    if variant.uniform:
        raise Refusal(
            f"{encoder.name} has heads with uniform attention, which no checkpoint can hold",
            "an encoder without such heads",
            "Save the original model, and call `uniform` when it is loaded",
        )
    model = copy.deepcopy(encoder.model)
    layers = transformer_layers(model)
    for index, layer in enumerate(layers):
        layers[index] = copy.deepcopy(layer)  # a layer that runs twice is saved twice
    if not variant.zeroed:
        return model
    head_mask = np.ones((encoder.layers, encoder.heads), np.bool_)
    for head in variant.zeroed:
        head_mask[head] = False
    return zero_heads(encoder.with_model(model), head_mask).model


def can_shrink(encoder: TaskEncoder) -> bool:
    """Whether heads can be removed from the matrices of the model's family."""
    family = _family(encoder)
    return family is not None and family.prunable


def shrinkable_families() -> list[str]:
    """Names of the families from whose matrices heads can be removed."""
    return [family.name for family in model_families() if family.prunable]


def read_head_mask(config: Any) -> HeadMask:
    """(layer, head) mask of the remaining heads, from the configuration of a pruned model."""
    return _build_head_mask(config.num_hidden_layers, config.num_attention_heads, getattr(config, ENTRY))


def _build_head_mask(layers: int, heads: int, removed: Mapping[str, list[int]]) -> HeadMask:
    mask = np.ones((int(layers), int(heads)), np.bool_)
    for layer, removed_heads in removed.items():
        mask[int(layer), list(removed_heads)] = False
    return mask


def _list_removed_heads(config: Any, head_mask: HeadMask) -> None:
    removed = {str(layer): np.flatnonzero(~mask).tolist() for layer, mask in enumerate(head_mask) if not mask.all()}
    setattr(config, ENTRY, removed)


def save_pruned(encoder: TaskEncoder, head_mask: HeadMask, folder: str | Path) -> None:
    """Write a model without the heads that are False in the mask, in the format of this module's docstring."""
    save_pretrained(zero_heads(encoder, head_mask), Path(folder))


def is_pruned(folder: Path) -> bool:
    """Whether a folder holds a pruned model."""
    try:
        return ENTRY in read_config(folder)
    except Refusal:
        return False  # whatever is wrong is reported when the folder is loaded


def load_pruned(
    folder: Path, *, name: str = "", device: str = "cpu", dtype: str = "float32", allow_pickle: bool = False
) -> HuggingFaceEncoder:
    """Load a pruned model: the full one, from which heads are removed if its family allows it."""
    encoder = load_directory(folder, name=name or str(folder), device=device, dtype=dtype, allow_pickle=allow_pickle)
    try:
        removed = getattr(encoder.model.config, ENTRY)
        head_mask = _build_head_mask(encoder.layers, encoder.heads, removed)
    except (ValueError, IndexError, TypeError, AttributeError) as error:
        raise Refusal(
            f"{folder} does not list the removed heads in a form that fits the model", EXPECTED_FILES, "Prune it again"
        ) from error
    layers = zip(transformer_layers(encoder.model), head_mask, strict=True)
    if any(weights.any() for layer, mask in layers for weights in _head_weights(layer, mask)):
        raise Refusal(
            f"{folder} lists heads as removed whose weights are not zero",
            EXPECTED_FILES,
            f"Delete {ENTRY!r} from {CONFIG} to use the model with all its heads, or prune it again",
        )
    return prune(encoder, head_mask) if can_shrink(encoder) else encoder


def _check_mask(encoder: TaskEncoder, head_mask: HeadMask) -> None:
    if head_mask.shape != (encoder.layers, encoder.heads):
        raise Refusal(
            f"A head mask of shape {head_mask.shape} does not fit {encoder.name}",
            f"one boolean for each of {encoder.layers} layers and {encoder.heads} heads",
            "Build the mask from the layers and heads of this encoder",
        )
    if encoder.is_pruned:
        raise Refusal(f"{encoder.name} is already pruned", "a model with all its heads", "Prune the unpruned model")
    transformer_layers(encoder.model)  # refuses shared layers with a reason


def _family(encoder: TaskEncoder) -> ModelFamily | None:
    return find_family(encoder.model.config.model_type)


def _family_name(encoder: TaskEncoder) -> str:
    family = _family(encoder)
    return family.name if family is not None else encoder.model.config.model_type


def _head_weights(layer: nn.Module, head_mask: HeadMask) -> Iterator[Tensor]:
    """The weights of the heads that are False: a view of each row or column of the projections that is theirs alone."""
    spec = _spec(layer)
    output = _weight(layer, spec.output_projection)
    columns = output if spec.conv1d_weights else output.T
    rows = [columns]
    for path in spec.qkv_projections or ():
        linear = _linear(layer, path)
        rows += [linear.weight, linear.bias]
    for index in _head_rows(~head_mask, len(columns)).tolist():
        yield from (weights[index] for weights in rows)


def _spec(layer: nn.Module) -> LayerSpec:
    spec = layer_spec(layer)
    assert spec is not None, f"{type(layer).__name__} is not a layer of a known family"
    return spec


def _weight(layer: nn.Module, path: str) -> Tensor:
    weight = layer.get_submodule(path).weight
    assert isinstance(weight, torch.Tensor), f"{path} has no weight"
    return weight


def _remove_heads(layer: nn.Module, head_mask: HeadMask) -> None:
    """Remove the rows of the query, key and value projections, and the columns of the output projection."""
    spec = _spec(layer)
    assert spec.qkv_projections is not None, f"{type(layer).__name__} is not prunable"
    output = _linear(layer, spec.output_projection)
    rows = _head_rows(head_mask, output.in_features)
    with torch.no_grad():
        for path in spec.qkv_projections:
            linear = _linear(layer, path)
            linear.weight, linear.bias = (torch.nn.Parameter(weights[rows]) for weights in (linear.weight, linear.bias))
            linear.out_features = len(rows)
        output.weight = torch.nn.Parameter(output.weight[:, rows])
    output.in_features = len(rows)
    attention: Any = layer.get_submodule(spec.attention)
    changes, new_index = head_changes(attention), np.cumsum(head_mask) - 1
    attention.head_changes = HeadChanges(
        frozenset(int(new_index[head]) for head in changes.zeroed if head_mask[head]),
        frozenset(int(new_index[head]) for head in changes.uniform if head_mask[head]),
    )
    if not head_mask.any():
        is_inside = spec.output_projection.startswith(f"{spec.attention}.")
        layer.set_submodule(spec.attention, _NoHeads(output if is_inside else None))


def _head_rows(head_mask: HeadMask, size: int) -> Tensor:
    """Indices of the rows, of `size` in all, that belong to heads that are True."""
    return torch.from_numpy(np.flatnonzero(np.repeat(head_mask, size // len(head_mask))))


def _linear(layer: nn.Module, path: str) -> nn.Linear:
    module = layer.get_submodule(path)
    assert isinstance(module, torch.nn.Linear), f"{path} is {type(module).__name__}"
    return module
