"""The work of an atlas, estimated before it starts: measured on one model, and by the layers of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bertology.analyses import registry
from bertology.analyses.run import RunInputs
from bertology.atlas.judging import JudgingTask, model_files, stored_model
from bertology.claims.run import MAX_UNKNOWN
from bertology.claims.run_plan import estimate_claims
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import as_encoder, load
from bertology.errors import Refusal
from bertology.input_files import read_json_object
from bertology.number_ranges import MAX_COUNT
from bertology.recording.plan import WEIGHTS_PER_LAYER, WORK_PER_SECOND, RecordingConfig
from bertology.recording.recording_work import TOKENS_PER_WORD, count_words_per_input
from bertology.work_estimate import MESSAGE_SECONDS, WorkEstimate

PASSES = 10
"""More forward passes than the claims make over the corpus; only for what is not measured."""
LAYERS = ("num_hidden_layers", "n_layers", "n_layer", "num_layers")
WIDTH = ("hidden_size", "dim", "n_embd", "d_model")
"""What the number of layers, and their width, are called in the configurations of different families."""


def estimate_atlas(models: Sequence[Any], task: JudgingTask, n_workers: int) -> WorkEstimate:
    """Seconds and bytes of judging the models that are not stored; small work is estimated from counts alone."""
    pending = [model for model in models if not isinstance(model, str) or stored_model(model, task) is None]
    sizes = [_layer_size(model) for model in pending]
    known = [size for size in sizes if size is not None]
    rough = _rough_seconds(task, sum(size.weights for size in known), len(pending))
    if rough < MESSAGE_SECONDS and len(known) == len(pending):
        return WorkEstimate(rough / max(1, n_workers))
    for model, measured in zip(pending, sizes, strict=True):
        try:
            work = _estimate_model(model, task)
        except Refusal:  # it will stand on the page with the reason
            continue
        reference = measured or _LayerSize(1, 1)
        # A model of unknown size counts like the one that is measured.
        others = [reference if size is None or measured is None else size for size in sizes]
        seconds = [work.seconds * other.weights / reference.weights for other in others]
        n_bytes = [work.n_bytes * other.states / reference.states for other in others]
        # A model is judged by one worker: no number of workers is faster than the largest model.
        return WorkEstimate(max(sum(seconds) / max(1, n_workers), *seconds), sum(n_bytes))
    return WorkEstimate()


def sort_largest_first(models: Sequence[str]) -> list[str]:
    """The models in the order in which several workers finish soonest; those of unknown size last."""
    sizes = {model: _layer_size(model) for model in models}
    return sorted(models, key=lambda model: 0 if (size := sizes[model]) is None else -size.weights)


def _estimate_model(model: Any, task: JudgingTask) -> WorkEstimate:
    encoder: Encoder = load(model, **task.loading) if isinstance(model, str) else as_encoder(model)
    overflow = task.arguments.get("overflow")
    config = RecordingConfig(overflow=overflow or "skip")
    inputs = RunInputs(corpus=task.corpus, encoder=encoder, config=config, store=task.store)
    max_unknown = task.arguments.get("max_unknown", MAX_UNKNOWN)
    return estimate_claims(task.claims, inputs, max_unknown=max_unknown, overflow=overflow)


class _LayerSize(NamedTuple):
    """The layers of a model, whose weights take the time; files also hold embeddings, in 8 to 32 bits a number."""

    layers: int
    width: int

    @property
    def weights(self) -> int:
        """About so many weights."""
        return WEIGHTS_PER_LAYER * self.layers * self.width**2

    @property
    def states(self) -> int:
        """Numbers that all layers have for a token."""
        return self.layers * self.width


def _layer_size(model: Any) -> _LayerSize | None:
    """The size that a model's configuration says; None if it is in memory, or if its name does not say where it is."""
    files = model_files(model) if isinstance(model, str) else None
    file = next((file for file in files or () if file.name == "config.json"), None)
    if file is None:
        return None
    try:
        config = read_json_object(file, "the configuration of a model")
    except Refusal:  # judging it will tell what is wrong
        return None
    layers, width = (next((config[name] for name in names if name in config), 0) for names in (LAYERS, WIDTH))
    is_known = all(isinstance(number, int) and 0 < number < MAX_COUNT for number in (layers, width))
    return _LayerSize(layers, width) if is_known else None


def _rough_seconds(task: JudgingTask, n_weights: int, n_models: int) -> float:
    """Seconds on one core by counts: every weight with every token in every pass."""
    words, scale = count_words_per_input(task.corpus)
    n_words = int(words.sum() * scale)
    names = {run.analysis for claim in task.claims for run in claim.all_runs.values()}
    analyses = [analysis for name in names if (analysis := registry.find(name)) is not None]
    passes = PASSES * TOKENS_PER_WORD * n_words * n_weights / WORK_PER_SECOND
    return passes + n_models * sum(analysis.cost.estimate(n_words) for analysis in analyses)
