"""At which layer can labels of spans and pairs of spans be told (tenney2019edge, tenney2019)?"""

from __future__ import annotations

from typing import Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.encoder.encoder import Encoder
from bertology.measures.division import Division, random_form
from bertology.measures.probes.edge_cases import Edge
from bertology.measures.probes.layer_mixing import edge_task, mixed
from bertology.measures.probes.options import Seed, Seeds, Share, Train, TrainLimit
from bertology.measures.probes.probe_material import WORD_SITE
from bertology.measures.probes.probe_report import ACCURACY, probe_curve
from bertology.measures.probes.probe_scores import accuracy, setting_of
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import over_seeds
from bertology.results.shapes import LayerCurve
from bertology.results.spread import BY_SEED

UP_TO, GAIN, WEIGHT = "accuracy of layers up to here", "gain", "mixing weight"


@analysis(
    question="At which layer can labels of spans and pairs of spans be told?",
    special="seen by the model; a span is the mean of its words, a word the mean of its pieces",
    cites=("tenney2019edge", "tenney2019"),
    sites=(WORD_SITE,),
    version=3,
)
def edge(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    task: Annotated[Edge, "what to tell: of one span upos, entity, chunk; of two relation, role, coreference"] = "upos",
    probe: Annotated[str, "linear, rank:N, mlp:N, mlp:N:N, or of two spans bilinear:N, with N units"] = "linear",
    each_scaled: Annotated[bool, "scale every layer alike before mixing, so that long vectors weigh no more"] = False,
    minimum: Annotated[int, "a label counts from this many cases in training"] = 10,
    train: Train = "",
    train_limit: TrainLimit = 0,
    share: Share = 0.7,
    seeds: Seeds = 3,
    seed: Seed = 0,
) -> LayerCurve:
    """Share of spans, or pairs of spans, whose label is told right, 0 to 1, by each layer and by layers up to each.

    Probes see the vectors of one span, or of two end to end. `accuracy`, `macro F1`, `selectivity` and `compression`
    are of probes on single layers, as in probes/token; a control label belongs to the word, the last word of the span
    or of the second mention, or the predicate. `accuracy of layers up to here` is of a probe on a learned mixture of
    layers 0 to l (their sum by softmax weights), `gain` what layer l adds to it, `mixing weight`
    the weights of the mixture of all layers. Expected layer and centre of gravity are told by probes/pipeline.

    The paper projects every piece to 256 units, pools a span by learned attention, has a sigmoid for each label and
    reports micro-F1; here a span is the mean of its words and labels exclude each other, so that accuracy is
    micro-F1. Its mixture has a factor besides, which the weights of the probe stand for here. Mixing weights depend
    on how long the vectors of layers are. Coreference: all pairs of mentions of one entity in one item, and as many
    of two. The mixture's penalty is 20 over the number of cases.
    """
    setting, division = setting_of(probe, seeds, seed), Division(train, train_limit, share, seed)
    own = edge_task(recording, encoder, division, task, minimum, purpose="probes/edge")
    fresh = None
    if randomised is not None:
        fresh = edge_task(randomised, random_form(encoder), division, task, minimum, purpose="probes/edge")
    curve = probe_curve(own, fresh, setting, seed=seed, cases="cases", type="word")
    found = mixed(own, setting, each_scaled=each_scaled)
    layers = found.weights.shape[1]
    first = np.full((len(setting.seeds), 1), np.nan)
    measures = dict(curve.measures) | {
        UP_TO: accuracy(own, found.cumulative, seed),
        GAIN: _known(over_seeds(np.concatenate([first, found.gains], 1))),
        WEIGHT: over_seeds(found.weights),
    }
    baselines = {name: dict(some) for name, some in curve.baselines.items()}
    for name, some in baselines.items():
        if name == "majority" or name.startswith("most frequent"):
            baselines[name] = some | {UP_TO: some[ACCURACY]}
    baselines["every layer alike"] = {
        GAIN: Estimates.exact(np.zeros(layers)),
        WEIGHT: Estimates.exact(np.full(layers, 1 / layers)),
    }
    units = dict(curve.units) | {
        UP_TO: "share of cases, 0 to 1",
        GAIN: f"accuracy more than without this layer, -1 to 1; {BY_SEED}",
        WEIGHT: f"share of the mixture, 0 to 1; {BY_SEED}",
    }
    return LayerCurve(measures=measures, baselines=baselines, units=units)


def _known(estimates: Estimates) -> Estimates:
    """Without a count where there is no value."""
    n = np.where(np.isfinite(estimates.value), estimates.n, 0)
    return Estimates(value=estimates.value, low=estimates.low, high=estimates.high, n=n)
