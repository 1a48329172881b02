"""At which layer each task of the classical NLP pipeline is solved, by probes on mixes of layers (tenney2019)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.probing.answers import probe_answers
from bertology.analyses.probing.code_length import half_of_training_data
from bertology.analyses.probing.dataset import WORD_SITE, ProbeDataset, task_dataset
from bertology.analyses.probing.edge_labels import EDGES, Edge
from bertology.analyses.probing.fitting import (
    ProbeConfig,
    ProbePredictions,
    accuracy,
    majority_baseline,
    majority_by_type,
    parse_probe,
)
from bertology.analyses.probing.layer_mixing import (
    LayerMixResult,
    expected_layer,
    expected_layer_shift,
    fit_layer_mixes,
    gain_concentration,
    stack_mixes,
)
from bertology.analyses.probing.options import MinExamplesOption, NormaliseLayersOption, ProbeOption
from bertology.analyses.probing.train_test_split import TrainTestSplit, randomised_encoder
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimate, Estimates
from bertology.estimates.resampling import range_over_seeds
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES, gain_measure
from bertology.results.shapes import Table

LAYER_0_ACCURACY, ALL_LAYERS_ACCURACY = "accuracy (layer 0)", "accuracy (all layers)"
EXPECTED_LAYER, CENTRE_OF_GRAVITY = "expected layer", "centre of gravity"
SHIFT = gain_measure(EXPECTED_LAYER)
GAIN_CONCENTRATION, WEIGHT_CONCENTRATION = "concentration of gains (KL)", "concentration of weights (KL)"
MAJORITY, MAJORITY_OF_WORD, UNTRAINED = "majority class", "most frequent label of the word", "untrained model"


@analysis(
    question="Does the order of layers follow the classical NLP pipeline: at which layer is each task solved?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens, a span the "
    "mean of its words.",
    citations=("tenney2019",),
    sites=(WORD_SITE,),
    version=3,
    answers=True,
    cost=Cost(seconds_per_sampled_word=0.025),
)
def pipeline(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    probe: ProbeOption = "linear",
    normalise_layers: NormaliseLayersOption = False,
    min_examples: MinExamplesOption = 10,
    split: TrainTestSplit = TrainTestSplit(),
) -> Table:
    """The layer at which each task is solved, 0 to the number of layers, for every task annotated in the corpus.

    `expected layer` is the mean layer, weighted by what each layer adds to the accuracy of a probe on a mix of all
    layers up to it; gains may be negative, and if they sum to less than 0.01 the expected layer is undefined. `centre
    of gravity` is the mean layer, weighted by the weights of the mix of all layers. `concentration` is the KL
    divergence in bits of gains (negative ones set to 0), or of weights, from uniform: 0 if all layers are equal, log2
    of the number of layers if all is in one layer. See probes/edge for the probes. Baselines: the most frequent label,
    and that of the word; equal layer weights; the untrained model. Intervals resample test sentences and seeds; those
    of mixing weights, which belong to no sentence, are ranges over seeds. An expected layer that is undefined in more
    than a twentieth of the resamples has no interval. `expected layer - expected layer (half the training data)` is how
    far the second half of the training sentences, another for each seed, moves the expected layer: if it is not small
    beside the distance between tasks, the probes still learn.
    """
    config = ProbeConfig(parse_probe(probe), split.seeds)
    datasets, refusals = _edge_datasets(recording, encoder, split, min_examples)
    if not datasets:
        raise refusals[0]

    def fit(dataset: ProbeDataset, seeds: tuple[int, ...] = split.seeds) -> LayerMixResult:
        return fit_layer_mixes(dataset, replace(config, seeds=seeds), normalise_layers=normalise_layers)

    by_series: dict[str, Sequence[LayerMixResult]] = {}

    def measure(
        model_datasets: Mapping[Edge, ProbeDataset], series: str, *, shift: bool = False
    ) -> dict[str, Estimates]:
        """(task,) estimates of each measure, and of the shift from half of the training data."""
        used = [model_datasets[edge] for edge in datasets]
        mixes = by_series[series] = [fit(dataset) for dataset in used]
        measures = _measures(used, mixes, split.seed)
        if not shift:
            return measures
        shifts: list[Estimates] = []
        for dataset, mix in zip(used, mixes, strict=True):
            half = stack_mixes([fit(half_of_training_data(dataset, seed), (seed,)) for seed in split.seeds])
            shifts.append(expected_layer_shift(dataset, mix, half, split.seed))
        return measures | {SHIFT: Estimates.stack(shifts)}

    n_layers, n_tasks = len(next(iter(datasets.values())).train.features), len(datasets)
    majority, majority_of_word = (
        Estimates.stack([accuracy(dataset, rule(dataset), split.seed)[0] for dataset in datasets.values()])
        for rule in (majority_baseline, majority_by_type)
    )
    baselines = {
        MAJORITY: {LAYER_0_ACCURACY: majority, ALL_LAYERS_ACCURACY: majority},
        MAJORITY_OF_WORD: {
            LAYER_0_ACCURACY: majority_of_word,
            ALL_LAYERS_ACCURACY: majority_of_word,
        },
        "equal layer weights": {
            EXPECTED_LAYER: Estimates.exact(np.full(n_tasks, n_layers / 2)),
            CENTRE_OF_GRAVITY: Estimates.exact(np.full(n_tasks, (n_layers - 1) / 2)),
            SHIFT: Estimates.exact(np.zeros(n_tasks)),
            GAIN_CONCENTRATION: Estimates.exact(np.zeros(n_tasks)),
            WEIGHT_CONCENTRATION: Estimates.exact(np.zeros(n_tasks)),
        },
    }
    measures = measure(datasets, MODEL_SERIES, shift=True)
    if randomised is not None:
        untrained, _ = _edge_datasets(randomised, randomised_encoder(encoder), split, min_examples)
        baselines[UNTRAINED] = measure(untrained, UNTRAINED)
    table = Table(
        measures=measures,
        baselines=baselines,
        units={
            LAYER_0_ACCURACY: "proportion of examples, 0 to 1",
            ALL_LAYERS_ACCURACY: "proportion of examples, 0 to 1",
            EXPECTED_LAYER: f"layer, 1 to {n_layers - 1} (outside if gains are negative)",
            SHIFT: "difference of layers",
            CENTRE_OF_GRAVITY: f"layer, 0 to {n_layers - 1}",
            GAIN_CONCENTRATION: "bits, 0 if all layers are equal",
            WEIGHT_CONCENTRATION: "bits, 0 if all layers are equal",
        },
        row_names=tuple(EDGES[edge].name for edge in datasets),
        attributes=_sample_attributes(list(datasets.values())),
        notes={EDGES[edge].name: EDGES[edge].description for edge in datasets},
    )
    return table.with_answers(lambda: _answers(datasets, by_series, split.seeds))


def _answers(
    datasets: Mapping[Edge, ProbeDataset],
    by_series: Mapping[str, Sequence[LayerMixResult]],
    seeds: tuple[int, ...],
) -> Iterator[Answer]:
    """What is predicted in each task from the layers up to `layer`, and by the most frequent label."""
    for number, (edge, dataset) in enumerate(datasets.items()):
        predictions = {series: mixes[number].cumulative_predictions for series, mixes in by_series.items()}
        predictions |= {MAJORITY: majority_baseline(dataset), MAJORITY_OF_WORD: majority_by_type(dataset)}
        for answer in probe_answers(dataset, predictions, seeds):
            yield {"row": EDGES[edge].name} | answer


def _edge_datasets(
    recording: Recording, encoder: Encoder | None, split: TrainTestSplit, min_examples: int
) -> tuple[dict[Edge, ProbeDataset], list[Refusal]]:
    """The tasks with enough examples in the corpus, and the refusals of the others."""
    datasets: dict[Edge, ProbeDataset] = {}
    refusals: list[Refusal] = []
    for edge, task in EDGES.items():
        name = f"probes/pipeline ({task.name})"
        try:
            datasets[edge] = task_dataset(recording, encoder, task, split, min_examples, analysis_name=name)
        except Refusal as refusal:
            refusals.append(refusal)
    return datasets, refusals


def _measures(datasets: list[ProbeDataset], mixes: list[LayerMixResult], seed: int) -> dict[str, Estimates]:
    """(task,) estimates of each measure."""
    accuracies = {LAYER_0_ACCURACY: 0, ALL_LAYERS_ACCURACY: -1}
    by_sentence = {EXPECTED_LAYER: expected_layer, GAIN_CONCENTRATION: gain_concentration}
    by_seed = {
        CENTRE_OF_GRAVITY: [mix.centre_of_gravity for mix in mixes],
        WEIGHT_CONCENTRATION: [mix.weight_concentration for mix in mixes],
    }
    pairs = list(zip(datasets, mixes, strict=True))

    def accuracy_at(dataset: ProbeDataset, mix: LayerMixResult, level: int) -> Estimate:
        predictions = mix.cumulative_predictions
        return accuracy(dataset, ProbePredictions(predictions.predicted[level][None], predictions.gold), seed)[0]

    return (
        {name: Estimates.stack([accuracy_at(*pair, level) for pair in pairs]) for name, level in accuracies.items()}
        | {name: Estimates.stack([measure(*pair, seed) for pair in pairs]) for name, measure in by_sentence.items()}
        | {name: Estimates.stack([range_over_seeds(values) for values in rows]) for name, rows in by_seed.items()}
    )


def _sample_attributes(datasets: list[ProbeDataset]) -> dict[str, tuple[int, ...]]:
    """The sizes of the datasets, one value per task."""
    names = dict.fromkeys(name for dataset in datasets for name in dataset.sample)
    return {name: tuple(dataset.sample.get(name, 0) for dataset in datasets) for name in names}
