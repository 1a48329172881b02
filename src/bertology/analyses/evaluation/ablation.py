"""Evaluate a model under many interventions on heads or layers, on the same examples.

Layers below an intervention are computed once: each batch is run through the intact model, and every intervention is
resumed from its lowest layer; interventions on heads, from the head outputs of that layer. In the last layer only the
positions that the task head reads are computed. Interventions on heads with the same lowest layer are run together in
one batch of interventions x examples. A model that cannot be resumed from a layer takes one full forward pass per
intervention; the numbers are the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.evaluation.evaluation import Evaluation, EvaluationBatch
from bertology.analyses.evaluation.score_change import Scores
from bertology.arrays import BoolArray
from bertology.encoder.attention_hook import Gates, LayerActivations
from bertology.encoder.encoder import Encoder, ModelInputs, ModelOutput, TaskEncoder
from bertology.encoder.partial_forward import HeadOutputs
from bertology.encoder.resumable_encoder import ForwardTrace, ResumableEncoder, make_resumable
from bertology.errors import Refusal
from bertology.lazy import torch
from bertology.progress import ProgressCallback

if TYPE_CHECKING:
    from torch import Tensor

AblationMethod = Literal["uniform", "zero", "mean"]
"""How a head is disabled: uniform attention to all visible tokens, output set to zero, or to its mean."""

TOKENS_PER_PASS = {"cpu": 2048}
"""Tokens of a batch by device type, padding included; on a CPU larger batches leave its cache and are not faster."""
DEFAULT_TOKENS_PER_PASS = 65536
LOGITS_PER_PASS = 2**25
"""The logits of a language model are the largest tensor of a forward pass: 128 MB."""


@dataclass(frozen=True, eq=False)
class HeadAblation:
    """A set of disabled heads: a (layer, head) mask with at least one true value."""

    mask: BoolArray

    @property
    def first_layer(self) -> int:
        """The lowest layer with a disabled head."""
        return int(np.flatnonzero(self.mask.any(1))[0])

    @property
    def last_layer(self) -> int:
        """The highest layer with a disabled head."""
        return int(np.flatnonzero(self.mask.any(1))[-1])


@dataclass(frozen=True)
class LayerReordering:
    """The layers to run, in order: (0, 2, 1, 3) swaps, (0, 2, 3) skips, (0, 1, 1, 2, 3) repeats."""

    order: tuple[int, ...]


Intervention = HeadAblation | LayerReordering


@dataclass(frozen=True, eq=False)
class AblationRunner:
    """Runs an encoder under interventions; disabled heads follow `method`."""

    encoder: TaskEncoder
    method: AblationMethod = "uniform"
    mean_outputs: Tensor | None = None
    """(layer, head, size) mean head outputs, for the method `mean`."""
    full_passes: bool = False
    """Take one full forward pass per intervention, for comparison."""

    @cached_property
    def resumable(self) -> ResumableEncoder | None:
        """The encoder in resumable form; None if it cannot be resumed from a layer."""
        return None if self.full_passes else make_resumable(self.encoder)

    def evaluate(
        self, evaluation: Evaluation, interventions: Sequence[Intervention], cache: AnalysisCache
    ) -> list[Scores]:
        """Scores of the intact model, then of each intervention, on all examples; finished batches are cached."""
        meter = cache.progress_meter(f"{len(interventions)} interventions on {self.encoder.name}")
        scores = np.zeros((1 + len(interventions), 3, len(evaluation.examples)))
        arguments = [{"runner": self, "batch": batch, "interventions": interventions} for batch in evaluation.batches]
        values = cache.call_all(batch_scores, arguments, meter=meter, hand_on_progress=True)
        for batch, batch_values in zip(evaluation.batches, values, strict=True):
            scores[:, :, batch.examples] = batch_values
        return [Scores.from_arrays(*arrays) for arrays in scores]

    def outputs(
        self, batch: EvaluationBatch, interventions: Sequence[Intervention]
    ) -> Iterator[tuple[int, ModelOutput]]:
        """Outputs on a batch with the index of the intervention: the intact model first (-1), then in any order."""
        resumable = self.resumable
        if resumable is None:
            yield -1, self.encoder.forward(batch.inputs)
            for index, intervention in enumerate(interventions):
                yield index, self._full_pass(batch, intervention)
            return
        trace = resumable.trace(batch.inputs, task_head=batch.task_head, positions=batch.read_positions)
        yield -1, trace.output
        ablations: dict[int, dict[int, HeadAblation]] = {}
        for index, intervention in enumerate(interventions):
            if isinstance(intervention, LayerReordering):
                yield index, resumable.resume_reordered(trace, intervention.order)
            else:
                ablations.setdefault(intervention.first_layer, {})[index] = intervention
        repeats = self._repeats_per_pass(trace)
        for layer, by_index in ablations.items():
            head_outputs = resumable.head_outputs(trace, layer)
            for start in range(0, len(by_index), repeats):
                indices = list(by_index)[start : start + repeats]
                chunk = [by_index[index] for index in indices]
                yield from zip(indices, self._resume_together(resumable, trace, head_outputs, chunk), strict=True)

    def _resume_together(
        self,
        resumable: ResumableEncoder,
        trace: ForwardTrace,
        head_outputs: HeadOutputs,
        ablations: Sequence[HeadAblation],
    ) -> Iterator[ModelOutput]:
        """Outputs of several head ablations with the same lowest layer, from one pass."""
        n_rows = len(trace.inputs.input_ids)
        output = resumable.resume_gated(
            trace,
            head_outputs,
            stack_gates([self.gates(ablation) for ablation in ablations], n_rows),
            repeats=len(ablations),
            first_layer=ablations[0].first_layer,
            last_gated_layer=max(ablation.last_layer for ablation in ablations),
        )
        for start in range(0, len(ablations) * n_rows, n_rows):
            logits = {name: logits[start : start + n_rows] for name, logits in output.logits.items()}
            yield replace(trace.output, logits=logits)

    def _repeats_per_pass(self, trace: ForwardTrace) -> int:
        """How many interventions on a batch fit into one pass."""
        max_tokens = TOKENS_PER_PASS.get(torch.device(self.encoder.device).type, DEFAULT_TOKENS_PER_PASS)
        n_tokens = trace.inputs.input_ids.numel()
        n_logits = sum(logits.numel() for logits in trace.output.logits.values())
        return max(1, min(max_tokens // n_tokens, LOGITS_PER_PASS // max(1, n_logits)))

    def _full_pass(self, batch: EvaluationBatch, intervention: Intervention) -> ModelOutput:
        if isinstance(intervention, HeadAblation):
            return self.encoder.with_gates(self.gates(intervention)).forward(batch.inputs)
        raise Refusal(
            f"The layers of {self.encoder.name} cannot be skipped or swapped",
            "a model of a family whose layers bertology knows",
            "Choose another model; its heads can be disabled with interventions/head_ablation",
        )

    def gates(self, ablation: HeadAblation) -> Gates:
        """The gates that disable the heads."""
        mask = torch.from_numpy(ablation.mask.copy()).to(self.encoder.device)
        if self.method == "uniform":
            return Gates(uniform=mask)
        if self.method == "zero" or self.mean_outputs is None:
            return Gates(scale=(~mask).float())
        return Gates(scale=(~mask).float(), offset=self.mean_outputs * mask[..., None])


def batch_scores(
    runner: AblationRunner, batch: EvaluationBatch, interventions: Sequence[Intervention], progress: ProgressCallback
) -> list[list[list[float]]]:
    """[intact or intervention][loss, correct, total][example] of one batch."""
    scores = np.zeros((1 + len(interventions), 3, len(batch.examples)))
    with torch.no_grad():
        for done, (index, output) in enumerate(runner.outputs(batch, interventions)):
            counts = batch.score(output)
            scores[index + 1] = batch.loss(output).double().cpu().numpy(), counts.correct, counts.total
            progress(done, len(interventions))
    return scores.tolist()


def stack_gates(gates: Sequence[Gates], n_rows: int) -> Gates:
    """Gates for a batch that repeats `n_rows` rows once for each of `gates`."""
    stacked: dict[str, Tensor] = {}
    for name in (field.name for field in fields(Gates)):
        tensors: list[Tensor] = [tensor for gate in gates if (tensor := getattr(gate, name)) is not None]
        if tensors:
            stacked[name] = torch.stack(tensors, 2).repeat_interleave(n_rows, 2)
    return Gates(**stacked)


def prepare_ablation(
    encoder: Encoder, evaluation: Evaluation, method: AblationMethod = "uniform", *, full_passes: bool = False
) -> AblationRunner:
    """A runner for interventions on an encoder; refused if it has no heads, or has gates already."""
    if not isinstance(encoder, TaskEncoder) or encoder.gates is not None:
        raise Refusal(f"{encoder.name} has no heads or layers to ablate", "a transformer", "Choose another model")
    mean_outputs = None
    if method == "mean":
        mean_outputs = mean_head_outputs(encoder, [batch.inputs for batch in evaluation.batches])
    return AblationRunner(encoder, method, mean_outputs, full_passes)


def mean_head_outputs(encoder: Encoder, batches: Sequence[ModelInputs]) -> Tensor:
    """(layer, head, size) mean output of each head over all tokens of the batches, special tokens included."""
    sums: dict[int, Tensor] = {}
    n_tokens = 0
    for batch in batches:
        token_mask = batch.attention_mask.bool()
        n_tokens += int(token_mask.sum())

        def add_outputs(layer: LayerActivations, token_mask: Tensor = token_mask) -> None:
            assert layer.head_outputs is not None, "a forward pass computes head outputs"
            batch_sum = (layer.head_outputs.double() * token_mask[:, None, :, None]).sum((0, 2))
            sums[layer.layer] = sums.get(layer.layer, 0) + batch_sum

        with torch.no_grad():
            encoder.forward(batch, on_layer=add_outputs, logits=False)
    return torch.stack([sums[layer] for layer in range(encoder.layers)]).float() / n_tokens
