"""Interventions on a model: heads off, uniform, replaced by their mean or the only ones kept; layers left out."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from pydantic import Field

from bertology.corpus.corpus import Corpus
from bertology.encoder.attention_hook import Gates
from bertology.encoder.encoder import Head, TaskEncoder
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.encoder.variants import parse_heads, parse_layers
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.server.texts import RequestModel

if TYPE_CHECKING:
    from torch import Tensor

HeadName = Annotated[str, Field(pattern=r"^\d{1,3}-\d{1,4}$")]
MAX_HEADS = 1000
MAX_DERIVED = 8
N_MEAN_INPUTS = 64
"""Mean head outputs are over so many inputs of the corpus."""


class InterventionRequest(RequestModel):
    """Heads by name (`4-4`) and layers by number, both as they are in the unchanged model; empty: unchanged."""

    off: list[HeadName] = Field(default=[], max_length=MAX_HEADS)
    uniform: list[HeadName] = Field(default=[], max_length=MAX_HEADS)
    mean: list[HeadName] = Field(default=[], max_length=MAX_HEADS)
    keep: list[HeadName] = Field(default=[], max_length=MAX_HEADS)
    layers_off: list[int] = Field(default=[], max_length=MAX_HEADS)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is changed."""
        return not (self.off or self.uniform or self.mean or self.keep or self.layers_off)


class DerivedModels:
    """Encoders derived from loaded models, the last few of which are kept."""

    def __init__(self) -> None:
        self._derived: OrderedDict[tuple[str, str], TaskEncoder] = OrderedDict()
        self._means: dict[tuple[str, str], Tensor] = {}
        self._lock = threading.Lock()

    def derive(self, encoder: TaskEncoder, intervention: InterventionRequest, corpus: Corpus | None) -> TaskEncoder:
        """The encoder with the intervention; `mean` needs a corpus that the mean is over."""
        if intervention.is_empty:
            return encoder
        key = encoder.name, intervention.model_dump_json()
        with self._lock:
            if key in self._derived:
                self._derived.move_to_end(key)
                return self._derived[key]
        means = self._mean_outputs(encoder, corpus) if intervention.mean else None
        derived = apply_intervention(encoder, intervention, means)
        with self._lock:
            self._derived[key] = derived
            while len(self._derived) > MAX_DERIVED:
                self._derived.popitem(last=False)
        return derived

    def _mean_outputs(self, encoder: TaskEncoder, corpus: Corpus | None) -> Tensor:
        if corpus is None:
            raise Refusal("A mean needs a corpus, and none was read", "a corpus", "Wait until it has been read")
        key = encoder.name, corpus.fingerprint
        if key not in self._means:
            self._means[key] = corpus_mean_outputs(encoder, corpus)
        return self._means[key]


def corpus_mean_outputs(encoder: TaskEncoder, corpus: Corpus) -> Tensor:
    """(layer, head, size) mean outputs of the heads over the first inputs of a corpus that the model can take."""
    from bertology.analyses.evaluation.ablation import mean_head_outputs

    texts = [text for example in corpus[: 2 * N_MEAN_INPUTS] for text in example.text_inputs]
    recorded = [RecordedInput(0, 0, 0, t, tokens) for t, tokens in zip(texts, encoder.tokenise(texts), strict=True)]
    fitting = [each for each in recorded if len(each.tokens) <= encoder.max_length][:N_MEAN_INPUTS]
    if not fitting:
        raise Refusal("No text of the corpus fits the model", "texts to take the mean over", "Use another corpus")
    return mean_head_outputs(encoder, [TokenBatch([each], encoder.device).model_inputs for each in fitting])


def apply_intervention(encoder: TaskEncoder, intervention: InterventionRequest, means: Tensor | None) -> TaskEncoder:
    """The derived encoder: heads first, by their names in the unchanged model, then layers, then means."""
    derived: Any = encoder
    if intervention.keep:
        derived = derived.keeping(*intervention.keep)
    if intervention.off:
        derived = derived.without(*intervention.off)
    if intervention.uniform:
        derived = derived.uniform(*intervention.uniform)
    kept = kept_layers(encoder, intervention)
    if len(kept) < encoder.layers:
        derived = derived.with_layers(*kept)
    if intervention.mean:
        assert means is not None, "means are computed before"
        derived = derived.with_gates(_mean_gates(encoder, intervention.mean, kept, means))
    return derived


def kept_layers(encoder: TaskEncoder, intervention: InterventionRequest) -> list[int]:
    """The numbers of the layers that run, from 1; refused if none is left."""
    removed = (
        {index + 1 for index in parse_layers(encoder, intervention.layers_off)} if intervention.layers_off else set()
    )
    kept = [layer for layer in range(1, encoder.layers + 1) if layer not in removed]
    if not kept:
        raise Refusal("All layers are off", "at least one layer that runs", "Switch one on again")
    return kept


def _mean_gates(encoder: TaskEncoder, names: Sequence[str], kept: Sequence[int], means: Tensor) -> Gates:
    mask = torch.zeros(encoder.layers, encoder.heads, dtype=torch.bool)
    for head in parse_heads(encoder, names):
        mask[head] = True
    rows = [layer - 1 for layer in kept]
    return Gates(scale=(~mask[rows]).float(), offset=means[rows] * mask[rows][..., None])


def random_control(encoder: TaskEncoder, intervention: InterventionRequest, seed: int) -> InterventionRequest | None:
    """The same intervention on other heads of the same layers, or on other layers, chosen at random.

    None if a layer does not have enough other heads, or the model not enough other layers.
    """
    rng = np.random.default_rng(seed)
    changed = {
        head
        for names in (intervention.off, intervention.uniform, intervention.mean, intervention.keep)
        for head in (parse_heads(encoder, names) if names else ())
    }
    fields: dict[str, list[Any]] = {}
    try:
        for name in ("off", "uniform", "mean", "keep"):
            names = getattr(intervention, name)
            heads = parse_heads(encoder, names) if names else []
            fields[name] = [str(head) for head in _other_heads(encoder, heads, changed, rng)]
        others = [layer for layer in range(1, encoder.layers + 1) if layer not in intervention.layers_off]
        n_removed = len(set(intervention.layers_off))
        fields["layers_off"] = sorted(rng.choice(others, n_removed, replace=False).tolist()) if n_removed else []
    except ValueError:  # too few to choose from
        return None
    return None if len(fields["layers_off"]) == encoder.layers else InterventionRequest(**fields)


def _other_heads(
    encoder: TaskEncoder, heads: Sequence[Head], changed: set[Head], rng: np.random.Generator
) -> list[Head]:
    chosen: list[Head] = []
    for layer in sorted({head[0] for head in heads}):
        n = len({head for head in heads if head[0] == layer})
        others = [index for index in range(encoder.heads) if Head(layer, index) not in changed]
        chosen += [Head(layer, index) for index in sorted(rng.choice(others, n, replace=False).tolist())]
    return chosen
