"""Change in score when layers are skipped, swapped, repeated or dropped."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Literal

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import analysis
from bertology.analyses.evaluation.options import EvaluationOptions
from bertology.analyses.evaluation.score_change import (
    LOSS,
    LOSS_P_VALUE,
    SCORE,
    SCORE_P_VALUE,
    ScoreChangeReport,
    score_answers,
    score_change,
)
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.estimates.estimate import Estimates
from bertology.results.measured_shape import CostMeasures
from bertology.results.shapes import LayerCurve

OPERATIONS = ("skip", "swap", "repeat", "drop")


@analysis(
    question="How much does the task score change when a layer is skipped, swapped, repeated or dropped with all above "
    "it?",
    special_tokens="Special tokens: included.",
    citations=("kovaleva2019",),
    version=3,
    answers=True,
)
def layer_ablation(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    operation: Annotated[
        Literal["all", "skip", "swap", "repeat", "drop"],
        "`skip` a layer, `swap` it with the next, `repeat` it, `drop` it and all layers above, or `all` of these.",
    ] = "all",
    options: EvaluationOptions = EvaluationOptions(),
) -> LayerCurve:
    """Change in score (-1 to 1) and loss (nats per example) when layers are moved; 0: no effect.

    A layer is moved as a whole, attention and feed-forward block with their LayerNorms, and the next layer reads the
    output of the previous one; nothing is retrained. (interventions/head_ablation `--ablate layer` disables only the
    attention of a layer, as in kovaleva2019.) The score is the task's: accuracy, F1 of entities or answers, or accuracy
    on masked tokens (15 % of all). Intervals resample examples, the same before and after; those of the score reach at
    least 3/n to either side, as a score that is the same in all n examples may change in others. p values are those of
    two-sided paired tests with Holm's correction for all layers and operations. Dropping the first layer and
    all above it leaves the embeddings; the last layer has no next layer to swap with.
    """
    # Listing analyses must not import torch.
    from bertology.analyses.evaluation.ablation import LayerReordering, prepare_ablation
    from bertology.analyses.evaluation.evaluation import prepare_evaluation

    evaluation = prepare_evaluation(encoder, corpus, **asdict(options))
    names = OPERATIONS if operation == "all" else (operation,)
    layers = tuple(range(encoder.layers))
    # The last layer cannot be swapped with the next.
    orders = {
        name: [_reorder(name, layer, layers) for layer in (layers[:-1] if name == "swap" else layers)] for name in names
    }
    interventions = [LayerReordering(order) for by_layer in orders.values() for order in by_layer]
    intact, *reordered = prepare_ablation(encoder, evaluation).evaluate(evaluation, interventions, cache)
    report = ScoreChangeReport(evaluation, intact)
    change = score_change(intact, reordered, seed=options.seed)
    series = {SCORE: change.score, LOSS: change.loss, SCORE_P_VALUE: change.score_p, LOSS_P_VALUE: change.loss_p}
    measures: dict[str, Estimates] = {}
    units: dict[str, str] = {}
    baselines: dict[str, dict[str, Estimates]] = {}
    costs: dict[str, CostMeasures] = {}
    start = 0
    for name, by_layer in orders.items():
        names = {measure: f"{measure} ({name})" for measure in series}
        for measure, full_name in names.items():
            missing = Estimates.empty(encoder.layers - len(by_layer))
            measures[full_name] = Estimates.concatenate([series[measure][start : start + len(by_layer)], missing])
            units[full_name] = report.units()[measure]
            for baseline, values in report.baselines((encoder.layers,)).items():
                if measure in values:
                    baselines.setdefault(baseline, {})[full_name] = values[measure]
        costs[name] = CostMeasures(loss=names[LOSS], score=names[SCORE], p_value=names[LOSS_P_VALUE])
        start += len(by_layer)
    conditions = [f"{name} layer {layer + 1}" for name, by_layer in orders.items() for layer in range(len(by_layer))]
    scores = {"intact model": intact} | dict(zip(conditions, reordered, strict=True))
    curve = LayerCurve(
        measures=measures,
        baselines=baselines,
        units=units,
        sample=report.sample(),
        reference=evaluation.reference(intact, seed=options.seed),
        costs=report.costs("layer").model_copy(update={"operations": costs}),
        first_layer=1,
    )
    return curve.with_answers(lambda: score_answers(evaluation, scores))


def _reorder(operation: str, layer: int, layers: tuple[int, ...]) -> tuple[int, ...]:
    """The order of layers after an operation on one of them."""
    match operation:
        case "skip":
            return layers[:layer] + layers[layer + 1 :]
        case "swap":
            return (*layers[:layer], layer + 1, layer, *layers[layer + 2 :])
        case "repeat":
            return layers[: layer + 1] + layers[layer:]
        case _:
            return layers[:layer]
