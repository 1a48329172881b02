"""Heads cut out of a model for good: smaller matrices, fewer products, the same answers as with those heads at 0.

A pruned model is written to a folder of its own form, because no configuration of transformers can say that layers
have different numbers of heads, nor fewer heads than width over head size:

| file | |
|---|---|
| `config.json` | as for the whole model, and `pruned_heads`: the heads that are gone by layer, from 0 |
| `pruned.safetensors` | the weights that are left |
| the tokeniser | as for the whole model |

It loads by the name of its folder, as any model does. The file of weights has a name that transformers does not look
for, so that nothing loads it as something else.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from bertology.encoder.attend import Gates, LayerActivations
from bertology.encoder.blocks import LAYERS
from bertology.encoder.encoder import Batch, Objective, Output
from bertology.encoder.huggingface import HuggingFaceEncoder
from bertology.encoder.transformer_files import assemble, quietly
from bertology.encoder.variant import blocks_of
from bertology.errors import Refusal

Heads = NDArray[np.bool_]

CONFIG, ENTRY, TENSORS, WHOLE = "config.json", "pruned_heads", "pruned.safetensors", "model.safetensors"
FORM = f"{CONFIG} with an entry {ENTRY!r}, {TENSORS} and the tokeniser, as they were written together"


ATTENDS: dict[str, str] = {
    **dict.fromkeys(
        ("BertLayer", "RobertaLayer", "XLMRobertaLayer", "CamembertLayer", "ElectraLayer"), "attention.self"
    ),
    "TransformerBlock": "attention",  # DistilBERT
}
"""The module that attends, in layers that count their heads by the size of what comes out of their projections."""


@dataclass(frozen=True, eq=False)
class PrunedEncoder(HuggingFaceEncoder):
    """A model some of whose heads are gone; it can be asked its task, but its attention is not there to be seen."""

    def gated(self, gates: Gates | None) -> HuggingFaceEncoder:
        """Refused: gates are for models that have all heads."""
        if gates is None:
            return self
        raise self._unseen("Heads that are gone cannot be gated")

    def run(
        self,
        batch: Batch,
        *,
        on_layer: Callable[[LayerActivations], None] | None = None,
        hidden: bool = False,
        objective: Objective | None = None,
    ) -> Output:
        """One forward pass; attention of layers with different numbers of heads is not shown."""
        if on_layer is not None:
            raise self._unseen("Layers with different numbers of heads cannot be recorded")
        return super().run(batch, hidden=hidden)

    def randomised(self, seed: int = 0, *, keep_embeddings: bool = False) -> HuggingFaceEncoder:
        """The same heads gone from a model of fresh weights."""
        fresh = super().randomised(seed, keep_embeddings=keep_embeddings)
        return prune(fresh, kept_heads(self.model.config))

    def _unseen(self, what: str) -> Refusal:
        return Refusal(
            f"{what}: {self.name} was pruned",
            "a model with all its heads",
            "Use the model that it was pruned from, with the gates of those heads at 0: it gives the same answers",
        )


class _NoHeads(nn.Module):
    """Stands where a layer has no head left: nothing attends, and only the bias of the projection comes out."""

    def __init__(self, out: nn.Linear | None) -> None:
        super().__init__()
        self.out_lin = out

    def forward(self, hidden_states: Tensor, *given: Any, **named: Any) -> tuple[Tensor, None]:
        """Contexts of no size, or what the projection makes of them."""
        nothing = hidden_states.new_empty((*hidden_states.shape[:-1], 0))
        return nothing if self.out_lin is None else self.out_lin(nothing), None


def prune(encoder: HuggingFaceEncoder, kept: Heads) -> PrunedEncoder:
    """The model with only the heads that are True in (layer, head); the encoder itself is left as it is."""
    if kept.shape != (encoder.layers, encoder.heads):
        raise Refusal(
            f"Heads of shape {kept.shape} do not fit {encoder.name}",
            f"one boolean for each of {encoder.layers} layers and {encoder.heads} heads",
            "Say for each head of this encoder whether it is kept",
        )
    if isinstance(encoder, PrunedEncoder):
        raise Refusal(f"{encoder.name} was pruned before", "a model with all its heads", "Prune the whole model")
    _refuse_family(encoder)
    model = copy.deepcopy(encoder.model)
    for layer, heads in zip(blocks_of(model), kept, strict=True):
        if not heads.all():
            _cut(layer, heads)
    gone = {str(layer): np.flatnonzero(~heads).tolist() for layer, heads in enumerate(kept) if not heads.all()}
    setattr(model.config, ENTRY, gone)
    parts = (model.eval(), encoder.tokenizer, encoder.tokeniser, encoder.absent)
    return PrunedEncoder(encoder.name, *parts, causal=encoder.causal)


def kept_heads(config: Any) -> Heads:
    """(layer, head) which heads are left, by a configuration with the entry of this form."""
    kept = np.ones((int(config.num_hidden_layers), int(config.num_attention_heads)), np.bool_)
    for layer, heads in getattr(config, ENTRY).items():
        kept[int(layer), heads] = False
    return kept


def save_pruned(encoder: PrunedEncoder, folder: str | Path) -> None:
    """Write a pruned model to a folder of the form that this file's head describes."""
    place = Path(folder)
    with quietly():
        encoder.model.save_pretrained(place, max_shard_size="1TB")
        encoder.tokenizer.save_pretrained(place)
    (place / WHOLE).replace(place / TENSORS)


def is_pruned(folder: Path) -> bool:
    """Whether a folder holds a model of this form."""
    return (folder / TENSORS).is_file()


def load_pruned(folder: Path, *, name: str = "", device: str = "cpu", dtype: str = "float32") -> PrunedEncoder:
    """The model in a folder of this form.

    It is made whole first, with zeros for the heads that are gone, so that it stands the same trials as any model, and
    cut again.
    """
    config = _stated(folder)
    try:
        stored = load_file(folder / TENSORS)
    except (OSError, SafetensorError) as error:
        raise Refusal(f"{folder / TENSORS} cannot be read ({error})", FORM, "Copy the folder again") from error
    kept = kept_heads(config)
    whole = assemble(
        _filled(stored, kept, folder),
        config=folder,
        tokenizer=folder,
        name=name or str(folder),
        device=device,
        dtype=dtype,
    )
    return prune(whole, kept)


@dataclass(frozen=True)
class _Stated:
    num_hidden_layers: int
    num_attention_heads: int
    pruned_heads: Mapping[str, list[int]]


def _stated(folder: Path) -> _Stated:
    try:
        config: Any = json.loads((folder / CONFIG).read_text("utf-8"))
        layers = config.get("num_hidden_layers", config.get("n_layers"))
        heads = config.get("num_attention_heads", config.get("n_heads"))
        return _Stated(int(layers), int(heads), {str(layer): list(some) for layer, some in config[ENTRY].items()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Refusal(f"{folder} does not say which heads are gone", FORM, "Copy the folder again") from error


def _refuse_family(encoder: HuggingFaceEncoder) -> None:
    kinds = {type(layer).__name__ for layer in blocks_of(encoder.model)}
    if not kinds <= set(ATTENDS):
        raise Refusal(
            f"The heads of {encoder.name} ({', '.join(sorted(kinds))}) cannot be cut out: they share weights, or "
            "positions, with the others",
            "a model of the family of BERT, RoBERTa, ELECTRA or DistilBERT",
            "Keep the heads and give them the gate 0 instead: the answers are the same, and no faster",
        )


@torch.no_grad()
def _cut(layer: nn.Module, heads: Heads) -> None:
    """Remove the rows into the heads that are False, and the columns out of them."""
    anatomy, attends = LAYERS[type(layer).__name__], ATTENDS[type(layer).__name__]
    out = _linear(layer, anatomy.projection)
    places = _places(heads, out.in_features)
    for path in anatomy.into or ():
        linear = _linear(layer, path)
        linear.weight, linear.bias = (nn.Parameter(weights[places]) for weights in (linear.weight, linear.bias))
        linear.out_features = len(places)
    out.weight = nn.Parameter(out.weight[:, places])
    out.in_features = len(places)
    if not heads.any():
        within = anatomy.projection.startswith(f"{attends}.")
        layer.set_submodule(attends, _NoHeads(out if within else None))


def _places(heads: Heads, size: int) -> Tensor:
    """The rows, of `size` in all, that belong to heads that are True."""
    return torch.from_numpy(np.flatnonzero(np.repeat(heads, size // len(heads))))


def _linear(layer: nn.Module, path: str) -> nn.Linear:
    found = layer.get_submodule(path)
    assert isinstance(found, nn.Linear), f"{path} is {type(found).__name__}"
    return found


def _filled(stored: Mapping[str, Tensor], kept: Heads, folder: Path) -> dict[str, Tensor]:
    """The weights at the size of the whole model, zeros where heads are gone."""
    found = dict(stored)
    for layer, heads in enumerate(kept):
        for anatomy in dict.fromkeys(LAYERS[kind] for kind in ATTENDS):
            ending = f".{layer}.{anatomy.projection}.weight"
            for name in [name for name in stored if name.endswith(ending)]:
                before = name.removesuffix(f"{anatomy.projection}.weight")
                width = len(stored[name])
                found[name] = _spread(stored[name].T, heads, width, name, folder).T.contiguous()
                for path in anatomy.into or ():
                    for part, empty in (("weight", (0, width)), ("bias", (0,))):
                        into = f"{before}{path}.{part}"
                        rows = stored.get(into, stored[name].new_empty(empty))
                        found[into] = _spread(rows, heads, width, into, folder)
    return found


def _spread(rows: Tensor, heads: Heads, size: int, name: str, folder: Path) -> Tensor:
    """Rows of the heads that are True at their places among `size`, zeros at the others."""
    places = _places(heads, size)
    if len(rows) != len(places):
        raise Refusal(
            f"{name} in {folder} has {len(rows)} rows of heads; by {CONFIG} {len(places)} are left",
            FORM,
            "Copy the folder again",
        )
    whole = rows.new_zeros((size, *rows.shape[1:]))
    whole[places] = rows
    return whole
