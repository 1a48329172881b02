"""Edge probing: predict labels of spans and span pairs from single layers and mixes of layers (tenney2019edge)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.probing.answers import probe_answers
from bertology.analyses.probing.dataset import WORD_SITE, task_datasets
from bertology.analyses.probing.edge_labels import Edge, check_edge_label, edge_task
from bertology.analyses.probing.fitting import ProbeConfig, accuracy, parse_probe
from bertology.analyses.probing.layer_curves import ACCURACY, probe_curve
from bertology.analyses.probing.layer_mixing import fit_layer_mixes, layer_gains
from bertology.analyses.probing.options import MinExamplesOption, NormaliseLayersOption, ProbeOption
from bertology.analyses.probing.train_test_split import TrainTestSplit
from bertology.encoder.encoder import Encoder
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import range_over_seeds
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.shapes import LayerCurve

CUMULATIVE_SERIES = "model (all layers up to this one)"
CUMULATIVE_ACCURACY, GAIN, MIXING_WEIGHT = "cumulative accuracy", "accuracy gain of the layer", "scalar-mix weight"


@analysis(
    question="How well can labels of spans and span pairs be predicted from each layer (edge probing)?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens, a span the "
    "mean of its words.",
    citations=("tenney2019edge", "tenney2019"),
    sites=(WORD_SITE,),
    check_corpus=check_edge_label,
    version=5,
    answers=True,
)
def edge(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    label: Annotated[
        Edge | str,
        "Label to predict: pos, entity, chunk (one span); relation, role, coreference (two spans); or the name of a "
        "span or word label of the corpus (a column of its file).",
    ] = "pos",
    probe: ProbeOption = "linear",
    normalise_layers: NormaliseLayersOption = False,
    min_examples: MinExamplesOption = 10,
    split: TrainTestSplit = TrainTestSplit(),
) -> LayerCurve:
    """Accuracy of a probe for labels of spans or span pairs, 0 to 1, by layer and by mix of the layers up to it.

    The input of a probe is the vector of one span, or the concatenated vectors of two. `accuracy`, `macro F1`,
    `selectivity` and `compression` are those of probes on single layers, as in probes/word; a control label belongs to
    the word, the last word of the span or of the second mention, or the predicate. `cumulative accuracy` is that of a
    probe on a learned mix of layers 0 to l (a sum with softmax weights), `accuracy gain of the layer` what layer l adds
    to it, and `scalar-mix weight` its weight in the mix of all layers. probes/pipeline gives expected layer and centre
    of gravity.

    The paper projects every token to 256 units, pools a span by learned attention, predicts each label by a sigmoid and
    reports micro-F1; here a span is the mean of its words and labels exclude each other, so that accuracy equals
    micro-F1. The scaling factor of its mix is absorbed by the weights of the probe. Mix weights depend on the norms of
    the layers. Coreference: all pairs of mentions of one entity in an example, and as many pairs of mentions of
    different entities. The L2 penalty of the mix is 20 / (number of examples).
    """
    config = ProbeConfig(parse_probe(probe), split.seeds)
    name = f"probes/edge --label {label}"
    dataset, untrained = task_datasets(
        recording, randomised, encoder, edge_task(label, recording.corpus), split, min_examples, analysis_name=name
    )
    curve = probe_curve(dataset, untrained, config, unit_name="examples", control_type="word")
    mixes = fit_layer_mixes(dataset, config, normalise_layers=normalise_layers)
    n_layers = mixes.mixing_weights.shape[1]
    measures = dict(curve.measures) | {
        CUMULATIVE_ACCURACY: accuracy(dataset, mixes.cumulative_predictions, split.seed),
        # Layer 0 has no gain.
        GAIN: Estimates.concatenate([Estimates.empty(1), layer_gains(dataset, mixes, split.seed)]),
        MIXING_WEIGHT: range_over_seeds(mixes.mixing_weights),
    }
    baselines = {baseline: dict(estimates) for baseline, estimates in curve.baselines.items()}
    for baseline in ("majority class", "most frequent label of the word"):
        baselines[baseline][CUMULATIVE_ACCURACY] = baselines[baseline][ACCURACY]
    baselines["equal layer weights"] = {
        GAIN: Estimates.exact(np.zeros(n_layers)),
        MIXING_WEIGHT: Estimates.exact(np.full(n_layers, 1 / n_layers)),
    }
    units = dict(curve.units) | {
        CUMULATIVE_ACCURACY: "proportion of examples, 0 to 1",
        GAIN: "change in accuracy, -1 to 1",
        MIXING_WEIGHT: "weight in the mix, 0 to 1",
    }
    edge_curve = LayerCurve(measures=measures, baselines=baselines, units=units, sample=dataset.sample)

    def answers() -> Iterator[Answer]:
        """The predictions from each layer, and those from a mix of all layers up to it."""
        yield from curve.answers()
        yield from probe_answers(dataset, {CUMULATIVE_SERIES: mixes.cumulative_predictions}, split.seeds)

    return edge_curve.with_answers(answers)
