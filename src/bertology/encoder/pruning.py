"""Permanent removal of heads: smaller matrices and the same outputs as with the heads' output set to zero.

No transformers configuration can express layers with different numbers of heads, so that a pruned model is written
in its own format:

| file | |
|---|---|
| `config.json` | that of the full model, with `pruned_heads`: removed heads by layer, from 0 |
| `pruned.safetensors` | the remaining weights |
| the tokeniser | that of the full model |

It loads by the path of its folder, as any model does. transformers does not look for a weight file of this name, so
that no other tool misreads it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bertology.arrays import BoolArray
from bertology.encoder.attention_hook import Gates, LayerActivations
from bertology.encoder.checkpoint_validation import read_tensors
from bertology.encoder.encoder import ModelInputs, ModelOutput, Objective, TaskEncoder
from bertology.encoder.families import find_family, layer_spec, model_families
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.huggingface_loading import encoder_from_weights, silence_transformers
from bertology.encoder.layer_variants import transformer_layers
from bertology.errors import Refusal
from bertology.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor, nn

HeadMask = BoolArray

CONFIG, ENTRY, TENSORS, STANDARD_TENSORS = "config.json", "pruned_heads", "pruned.safetensors", "model.safetensors"
EXPECTED_FILES = f"{CONFIG} with an entry {ENTRY!r}, and the {TENSORS} and tokeniser written with it"


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
        objective: Objective | None = None,
    ) -> ModelOutput:
        """Run one forward pass; refuses to record attention, as layers differ in their number of heads."""
        if on_layer is not None:
            raise self._unsupported("Layers with different numbers of heads cannot be recorded")
        return super().forward(batch, hidden=hidden)

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
    if head_mask.shape != (encoder.layers, encoder.heads):
        raise Refusal(
            f"A head mask of shape {head_mask.shape} does not fit {encoder.name}",
            f"one boolean for each of {encoder.layers} layers and {encoder.heads} heads",
            "Build the mask from the layers and heads of this encoder",
        )
    if encoder.is_pruned:
        raise Refusal(f"{encoder.name} is already pruned", "a model with all its heads", "Prune the unpruned model")
    _refuse_family(encoder)
    model = copy.deepcopy(encoder.model)
    for layer, mask in zip(transformer_layers(model), head_mask, strict=True):
        if not mask.all():
            _remove_heads(layer, mask)
    removed = {str(layer): np.flatnonzero(~mask).tolist() for layer, mask in enumerate(head_mask) if not mask.all()}
    setattr(model.config, ENTRY, removed)
    parts = (model.eval(), encoder.hf_tokenizer, encoder.tokeniser, encoder.missing_weights)
    return PrunedEncoder(encoder.name, *parts, causal=encoder.causal)


def read_head_mask(config: Any) -> HeadMask:
    """(layer, head) mask of the remaining heads, from the configuration of a pruned model."""
    return _build_head_mask(config.num_hidden_layers, config.num_attention_heads, getattr(config, ENTRY))


def _build_head_mask(layers: int, heads: int, removed: Mapping[str, list[int]]) -> HeadMask:
    mask = np.ones((int(layers), int(heads)), np.bool_)
    for layer, removed_heads in removed.items():
        mask[int(layer), list(removed_heads)] = False
    return mask


def save_pruned(encoder: PrunedEncoder, folder: str | Path) -> None:
    """Write a pruned model to a folder in the format of this module's docstring."""
    folder = Path(folder)
    with silence_transformers():
        encoder.model.save_pretrained(folder, max_shard_size="1TB")
        encoder.hf_tokenizer.save_pretrained(folder)
    (folder / STANDARD_TENSORS).replace(folder / TENSORS)


def is_pruned(folder: Path) -> bool:
    """Whether a folder holds a pruned model."""
    return (folder / TENSORS).is_file()


def load_pruned(folder: Path, *, name: str = "", device: str = "cpu", dtype: str = "float32") -> PrunedEncoder:
    """Load a pruned model.

    The full model is built first, with zeros for removed heads, so that it passes the checks of any model; then it is
    pruned again.
    """
    try:
        config: Any = json.loads((folder / CONFIG).read_text("utf-8"))
        layers = config.get("num_hidden_layers", config.get("n_layers"))
        heads = config.get("num_attention_heads", config.get("n_heads"))
        head_mask = _build_head_mask(layers, heads, config[ENTRY])
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal(f"{folder} does not list the removed heads", EXPECTED_FILES, "Copy the folder again") from error
    weights = _restore_full_size(read_tensors(folder / TENSORS, EXPECTED_FILES), head_mask, folder)
    full_encoder = encoder_from_weights(
        weights, config=folder, tokenizer=folder, name=name or str(folder), device=device, dtype=dtype
    )
    return prune(full_encoder, head_mask)


def _refuse_family(encoder: TaskEncoder) -> None:
    transformer_layers(encoder.model)  # refuses shared layers with a reason
    family = find_family(encoder.model.config.model_type)
    if family is None or not family.prunable:
        prunable = ", ".join(family.name for family in model_families() if family.prunable)
        raise Refusal(
            f"Heads of {encoder.name} ({family.name if family else encoder.model.config.model_type}) cannot be "
            "removed: they share weights or positions",
            f"a model of one of the families {prunable}",
            "Set the gates of these heads to 0 instead: the outputs are the same, without the speed-up",
        )


def _remove_heads(layer: nn.Module, head_mask: HeadMask) -> None:
    """Remove the rows of the query, key and value projections, and the columns of the output projection."""
    spec = layer_spec(layer)
    assert spec is not None and spec.qkv_projections is not None, f"{type(layer).__name__} is not prunable"
    output = _linear(layer, spec.output_projection)
    rows = _head_rows(head_mask, output.in_features)
    with torch.no_grad():
        for path in spec.qkv_projections:
            linear = _linear(layer, path)
            linear.weight, linear.bias = (torch.nn.Parameter(weights[rows]) for weights in (linear.weight, linear.bias))
            linear.out_features = len(rows)
        output.weight = torch.nn.Parameter(output.weight[:, rows])
    output.in_features = len(rows)
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


def _restore_full_size(tensors: Mapping[str, Tensor], head_mask: HeadMask, folder: Path) -> dict[str, Tensor]:
    """The weights at the size of the full model, with zeros for removed heads."""
    weights = dict(tensors)
    specs = dict.fromkeys(family.layer for family in model_families() if family.prunable)
    for layer, layer_mask in enumerate(head_mask):
        for spec in specs:
            suffix = f".{layer}.{spec.output_projection}.weight"
            for name in [name for name in tensors if name.endswith(suffix)]:
                layer_prefix = name.removesuffix(f"{spec.output_projection}.weight")
                width = len(tensors[name])
                weights[name] = _scatter_rows(tensors[name].T, layer_mask, width, name, folder).T.contiguous()
                for path in spec.qkv_projections or ():
                    for part, empty_shape in (("weight", (0, width)), ("bias", (0,))):
                        projection = f"{layer_prefix}{path}.{part}"
                        rows = tensors.get(projection, tensors[name].new_empty(empty_shape))
                        weights[projection] = _scatter_rows(rows, layer_mask, width, projection, folder)
    return weights


def _scatter_rows(rows: Tensor, head_mask: HeadMask, size: int, name: str, folder: Path) -> Tensor:
    """`size` rows: those of the remaining heads at their positions, zeros elsewhere."""
    indices = _head_rows(head_mask, size)
    if len(rows) != len(indices):
        raise Refusal(
            f"{name} in {folder} has {len(rows)} rows; {CONFIG} leaves {len(indices)}",
            EXPECTED_FILES,
            "Copy the folder again",
        )
    full = rows.new_zeros((size, *rows.shape[1:]))
    full[indices] = rows
    return full
