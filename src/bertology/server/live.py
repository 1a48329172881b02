"""One text in one model, now: attention of the layers asked for, numbers of every head, predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from time import perf_counter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.encoder.encoder import TaskEncoder, describe_changes
from bertology.encoder.predictions import LayerPredictions, Predictions, predictions_by_layer, read_predictions
from bertology.encoder.token_batch import RecordedInput, TokenBatch
from bertology.encoder.tokens import SpecialToken
from bertology.lazy import torch
from bertology.numerics.attention_rollout import AttentionRollout, residual_attention
from bertology.recording.recording import EncoderSummary, Recording
from bertology.server.interventions import InterventionRequest
from bertology.server.texts import TextRequest
from bertology.views.model_run import SITES, VALUE_NORMS, recorded_model_run
from bertology.views.payload import ModelRun, QuantisedRows, quantise

if TYPE_CHECKING:
    from torch import Tensor

    from bertology.encoder.attention_hook import LayerActivations

LiveQuantity = Literal["attention", "norm", "gradient"]
LAYER_READING = (
    "Read at each layer by the task head of the last layer, which was trained on the last layer only: a low "
    "probability below it need not mean that nothing is known there."
)
OBJECTIVES_BY_HEAD = frozenset({"label", "nsp", "choice", "sop"})


class LiveRequest(TextRequest):
    """What is looked at: only these layers (from 1; null: all) and quantities are computed and sent.

    `client` and `sequence` let a newer request of the same page end an older one.
    """

    intervention: InterventionRequest = InterventionRequest()
    layers: list[int] | None = Field(default=None, max_length=200)
    quantities: list[LiveQuantity] = Field(default=["attention"], max_length=3)
    neurons: bool = False
    rollout: bool = False
    measures: bool = True
    strips: bool = False
    predictions: bool = True
    layer_predictions: bool = False
    n_candidates: int = Field(default=10, ge=1, le=50)
    client: str = Field(default="", max_length=64)
    sequence: int = Field(default=0, ge=0)


class SentenceMeasure(BaseModel):
    """A number of every head on this one text: (layer, head), and what uniform attention gives.

    The latter is null in causal models, where each token sees another number of tokens.
    """

    name: str
    unit: str
    values: list[list[float]]
    uniform: float | None


class StrongestTargets(BaseModel):
    """The token that each token attends to most, and its weight, in every head: (layer, head, token)."""

    targets: list[list[list[int]]]
    weights: list[list[list[float]]]


class LiveAnswer(BaseModel):
    """One text in one model.

    The chunks of `run` are the layers in `layers`, by their numbers in the unchanged model; `running_layers` are those
    that run. `rollout` has one head. `changes` says what was changed in the model.
    """

    model: str
    scope: str = "one text"
    sequence: int
    n_tokens: int
    running_layers: list[int]
    layers: list[int]
    run: ModelRun
    rollout: QuantisedRows | None
    measures: list[SentenceMeasure]
    strips: StrongestTargets | None
    predictions: Predictions | None
    layer_predictions: list[LayerPredictions]
    changes: dict[str, list[str]]
    notes: list[str]
    milliseconds: float


@dataclass
class _Collector:
    """What is kept of each layer while a pass runs; `check` may end the pass."""

    batch: TokenBatch
    request: LiveRequest
    numbers: Sequence[int]
    check: Callable[[], None]
    arrays: dict[str, dict[int, NDArray[np.float32]]] = field(default_factory=dict[str, Any])
    measures: list[Any] = field(default_factory=list[Any])
    strongest: list[Any] = field(default_factory=list[Any])
    rollout: AttentionRollout = field(default_factory=AttentionRollout)

    def on_layer(self, layer: LayerActivations) -> None:
        self.check()
        if self.request.measures:
            self.measures.append(_head_measures(layer.attention[0].float(), self.batch))
        if self.request.strips:
            weights, targets = layer.attention[0].float().max(-1)
            self.strongest.append((targets.tolist(), weights.tolist()))
        rollout = None
        if self.request.rollout:
            rollout = self.rollout.add(residual_attention(layer.attention.float(), "mean", 0.5))
        number = self.numbers[layer.layer]
        if self.request.layers is not None and number not in self.request.layers:
            return
        self._keep("attention", layer.layer, layer.attention[0])
        self._keep("value_norms", layer.layer, VALUE_NORMS.reduce(layer, self.batch, None)[0].unsqueeze(1))
        if rollout is not None:
            self._keep("rollout", layer.layer, rollout)
        if "norm" in self.request.quantities:
            self._keep("norm", layer.layer, SITES["norm"].reduce(layer, self.batch, None)[0])
        if self.request.neurons:
            assert layer.query is not None and layer.key is not None, "a forward pass has queries and keys"
            self._keep("query", layer.layer, layer.query[0])
            self._keep("key", layer.layer, layer.key[0])

    def on_gradient_layer(self, layer: LayerActivations) -> None:
        self.check()
        if self.request.layers is None or self.numbers[layer.layer] in self.request.layers:
            self._keep("gradient", layer.layer, SITES["gradient"].reduce(layer, self.batch, None)[0])

    def _keep(self, name: str, layer: int, values: Tensor) -> None:
        self.arrays.setdefault(name, {})[layer] = values.detach().float().cpu().numpy()

    def stack(self, name: str) -> NDArray[np.float32] | None:
        """(layer, head, row, size) of the layers that were kept."""
        layers = self.arrays.get(name)
        return np.stack([layers[index] for index in sorted(layers)]) if layers else None


def compute_live(
    encoder: TaskEncoder,
    recorded: RecordedInput,
    request: LiveRequest,
    *,
    running_layers: Sequence[int],
    check: Callable[[], None],
    reference: Predictions | None = None,
) -> LiveAnswer:
    """Run the model on the text; the encoder has the intervention already."""
    start = perf_counter()
    with torch.inference_mode():
        batch = TokenBatch([recorded], encoder.device)
        collector = _Collector(batch, request, running_layers, check)
        output = encoder.forward(batch.model_inputs, on_layer=collector.on_layer)
    notes: list[str] = []
    if "gradient" in request.quantities:
        notes.append(_add_gradients(encoder, recorded, collector))
    predictions, by_layer = None, list[LayerPredictions]()
    if request.predictions:
        predictions = read_predictions(
            encoder, recorded.tokens, output.logits, n_candidates=request.n_candidates, reference=reference
        )
    if request.layer_predictions:
        check()
        by_layer, note = layer_readings(encoder, recorded, request.n_candidates)
        notes.append(note)
    rollout = collector.stack("rollout")
    return LiveAnswer(
        model=encoder.name,
        sequence=request.sequence,
        n_tokens=len(recorded.tokens),
        running_layers=list(running_layers),
        layers=[running_layers[index] for index in sorted(collector.arrays.get("attention", {}))],
        run=_model_run(encoder, recorded, request, collector),
        rollout=None if rollout is None else quantise(rollout),
        measures=_named_measures(encoder, collector.measures, recorded),
        strips=_strips(collector.strongest),
        predictions=predictions,
        layer_predictions=by_layer,
        changes=describe_changes(encoder),
        notes=notes,
        milliseconds=1000 * (perf_counter() - start),
    )


def layer_readings(
    encoder: TaskEncoder, recorded: RecordedInput, n_candidates: int
) -> tuple[list[LayerPredictions], str]:
    """The predictions read at every layer, and what that means; none where the model cannot be read so."""
    if not encoder.task_heads:
        return [], f"{encoder.name} has no task head, so that nothing is read at its layers."
    resumable = None if encoder.gates is not None else _resumable(encoder)
    if resumable is None:
        return [], "The layers of this model, as it is changed, cannot be read one by one."
    with torch.inference_mode():
        inputs = TokenBatch([recorded], encoder.device).model_inputs
        return predictions_by_layer(resumable, recorded.tokens, inputs, n_candidates=n_candidates), LAYER_READING


@lru_cache(8)
def _resumable(encoder: TaskEncoder) -> Any:
    from bertology.encoder.resumable_encoder import make_resumable

    return make_resumable(encoder)


def _add_gradients(encoder: TaskEncoder, recorded: RecordedInput, collector: _Collector) -> str:
    from bertology.recording.objectives import build_objective, objective_task_head

    name = "prediction" if encoder.task_heads & OBJECTIVES_BY_HEAD else "auto"
    batch = TokenBatch([recorded], encoder.device)
    fed, objective = build_objective(encoder, name, batch, 0)
    collector.batch = TokenBatch([recorded], encoder.device, fed)
    encoder.forward(fed, on_layer=collector.on_gradient_layer, objective=objective)
    masked = int((fed.input_ids != batch.model_inputs.input_ids).sum())
    return f"Gradients are of the task head {objective_task_head(encoder, name)}" + (
        f", with {masked} tokens masked for its loss." if masked else "."
    )


def _model_run(encoder: TaskEncoder, recorded: RecordedInput, request: LiveRequest, collector: _Collector) -> ModelRun:
    """The picture as pages of views have it, of a recording with this one input and the layers that were kept."""
    sites = {key: [values] for key, name in _SITE_KEYS.items() if (values := collector.stack(name)) is not None}
    norms = sites.get(VALUE_NORMS.storage_key)
    if norms is not None:
        sites[VALUE_NORMS.storage_key] = [norms[0][:, :, 0]]
    n_tokens = len(recorded.tokens)
    sites.setdefault("attention", [np.zeros((0, encoder.heads, n_tokens, n_tokens), np.float32)])
    summary = EncoderSummary(
        encoder.name,
        "",
        encoder.layers,
        encoder.heads,
        encoder.width,
        encoder.causal,
        attention_windows=encoder.attention_windows,
    )
    kind = "sentence" if len(recorded.text.segments) == 1 else "pair"
    corpus = Corpus((Example(recorded.text.segments, kind),), name="text")
    shown = [name for name in ("attention", *_DERIVED) if _DERIVED.get(name, name) in sites]
    # Queries and keys are kept together.
    run = recorded_model_run(Recording(summary, corpus, (recorded,), sites), 0, shown, neurons="query" in sites)
    kept = sorted(collector.arrays.get("attention", {}))
    windows = [run.attention_windows[layer] for layer in kept] if run.attention_windows else []
    numbers = [collector.numbers[layer] for layer in kept]
    is_whole = numbers == list(range(1, encoder.layers + 1))
    changes: dict[str, Any] = {"layer_numbers": [] if is_whole else numbers, "attention_windows": windows}
    # The arcs of a text are not those of another one.
    return run.model_copy(update=changes | ({"trees": []} if request.edits else {}))


_DERIVED = {name: site.storage_key for name, site in SITES.items()}
_SITE_KEYS = {
    "attention": "attention",
    "query": "query",
    "key": "key",
    VALUE_NORMS.storage_key: "value_norms",
    **{key: name for name, key in _DERIVED.items()},
}
"""The sites of a recording, and the arrays that hold them here."""


_UNITS = {
    "entropy": "nats, 0 to log n",
    "highest weight": "0 to 1",
    "attention to the previous token": "share, 0 to 1",
    "attention to the next token": "share, 0 to 1",
    "attention to itself": "share, 0 to 1",
    "attention to special tokens": "share, 0 to 1",
}


def _head_measures(attention: Tensor, batch: TokenBatch) -> list[list[float]]:
    """[measure][head]: means over all tokens of (head, from, to) attention."""
    n = attention.shape[-1]
    entropy = torch.special.entr(attention).sum(-1).mean(-1)
    diagonals = [attention.diagonal(offset, -2, -1).sum(-1) / max(1, n - abs(offset)) for offset in (-1, 1, 0)]
    special = attention[..., batch.special_kinds[0] != SpecialToken.NONE].sum(-1).mean(-1)
    return [values.tolist() for values in (entropy, attention.max(-1).values.mean(-1), *diagonals, special)]


def _named_measures(
    encoder: TaskEncoder, layers: Sequence[Sequence[Sequence[float]]], recorded: RecordedInput
) -> list[SentenceMeasure]:
    if not layers:
        return []
    n_tokens = len(recorded.tokens)
    n_special = int((recorded.tokens.special_kinds != SpecialToken.NONE).sum())
    each = 1 / n_tokens
    uniform = (float(np.log(n_tokens)), each, each, each, each, n_special / n_tokens)
    return [
        SentenceMeasure(
            name=name,
            unit=unit,
            values=[list(layer[i]) for layer in layers],
            uniform=None if encoder.causal else uniform[i],
        )
        for i, (name, unit) in enumerate(_UNITS.items())
    ]


def _strips(strongest: Sequence[tuple[Any, Any]]) -> StrongestTargets | None:
    if not strongest:
        return None
    return StrongestTargets(targets=[targets for targets, _ in strongest], weights=[w for _, w in strongest])
