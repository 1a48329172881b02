"""Does a word's similarity in two contexts tell whether it has the same sense (pilehvar2019)?"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.encoder.encoder import Encoder
from bertology.maths.neighbours import Floats
from bertology.maths.thresholds import area_under_curve, best_threshold
from bertology.measures.division import Division, random_form
from bertology.measures.meaning.sense_answers import share_of
from bertology.measures.meaning.sense_material import LAST
from bertology.measures.meaning.sense_pairs import PairMaterial, Pairs, pair_cosines, pair_material
from bertology.measures.probes.probe_material import WORD_SITE
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimates
from bertology.results.sampling import over_seeds
from bertology.results.shapes import LayerCurve
from bertology.results.spread import FROM_LOWEST

NAME = "meaning/context_pairs"
ACCURACY, AREA = "accuracy", "area under the curve"
Measures = dict[str, Estimates]
Answers = NDArray[np.bool_]
Rule = Callable[[PairMaterial, Pairs, Pairs], Answers]


@analysis(
    question="Does a word's similarity in two contexts tell whether it has the same sense?",
    special="seen by the model; a word is the mean of its own pieces",
    cites=("pilehvar2019", "wiedemann2019"),
    sites=(WORD_SITE,),
)
def context_pairs(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    train: Annotated[str, "a corpus to choose the threshold on; empty: a part of the test corpus"] = "",
    train_limit: Annotated[int, "the first N sentences of --train; 0 for all"] = 0,
    share: Annotated[float, "without --train: the share of the sentences to choose on, whole documents"] = 0.5,
    seeds: Annotated[int, "how many divisions, each with its own pairs"] = 5,
    seed: Annotated[int, "the first of these seeds, and that of the bootstrap"] = 0,
) -> LayerCurve:
    """Share of pairs told to have the same sense or not by a threshold on their cosine, 0 to 1; 0.5 by chance.

    A pair is one word in two sentences that the model sees one at a time. The threshold, one for all words, is chosen
    on one half of the documents (or on --train) and scored on the other, layer by layer. From a corpus with senses
    pairs are drawn: as many with the same sense as with different ones, of each word, the two from different
    documents, no occurrence in two pairs of one kind. From a corpus in the form of WiC (format `wic`) its own pairs
    are taken, and the halves are of its pairs.

    `area under the curve` needs no threshold: how often a pair of the same sense is more alike than one of different
    senses; 0.5 by chance. Baselines: `majority` says what most pairs are of those that the threshold is chosen on;
    `same form` says yes where the word is written alike; `shuffled pairs` has labels dealt anew in both halves;
    `embedding layer` is layer 0, the word without its context but, in BERT, with its position; `last four` has the
    last four layers end to end. Intervals of the accuracy are over the sentences of pairs and over divisions, those
    of the area from the lowest division to the highest; n is sentences and divisions.
    """
    division = Division(train, train_limit, share, seed)
    own = pair_material(recording, encoder, division, seeds, purpose=NAME)
    found = _measured(own, seed)
    layers = len(found[ACCURACY].value) - 1
    baselines: dict[str, Measures] = {
        "majority": {ACCURACY: _rule(own, _majority, seed, layers)},
        "same form": {ACCURACY: _rule(own, _same_form, seed, layers)},
        "shuffled pairs": _cut(_measured(own, seed, shuffle=True), layers),
        "embedding layer": {name: one[0].everywhere((layers,)) for name, one in found.items()},
        LAST: {name: one[layers].everywhere((layers,)) for name, one in found.items()},
    }
    if randomised is not None:
        fresh = pair_material(randomised, random_form(encoder), division, seeds, purpose=NAME)
        baselines["random weights"] = _cut(_measured(fresh, seed), layers)
    sizes = f"{len(own.halves[0][0])} pairs to choose a threshold on, {len(own.halves[0][1])} to report on"
    units = {
        ACCURACY: f"share of pairs, 0 to 1 ({sizes}, in the first of {len(own.halves)} divisions)",
        AREA: f"share of two pairs put in order, 0 to 1; {FROM_LOWEST} division to the highest",
    }
    return LayerCurve(measures=_cut(found, layers), baselines=baselines, units=units)


def _cut(found: Measures, layers: int) -> Measures:
    return {name: one[:layers] for name, one in found.items()}


def _measured(own: PairMaterial, seed: int, *, shuffle: bool = False) -> Measures:
    """Both measures by view."""
    right: list[Answers] = []
    areas: list[list[float]] = []
    for number, halves in enumerate(own.halves):
        cosines = [pair_cosines(part, half) for part, half in zip((own.known, own.asked), halves, strict=True)]
        labels = [half.same for half in halves]
        if shuffle:
            generator = np.random.default_rng([seed, number, 13])
            labels = [generator.permutation(one) for one in labels]
        thresholds = np.array([best_threshold(view, labels[0]) for view in cosines[0]])
        right.append((cosines[1] > thresholds[:, None]) == labels[1])
        areas.append([area_under_curve(view, labels[1]) for view in cosines[1]])
    return {ACCURACY: _share(own, right, seed), AREA: _spread(np.array(areas))}


def _spread(areas: Floats) -> Estimates:
    """(view,) over the divisions in which both kinds of pairs are left to report on."""
    there = areas[np.isfinite(areas).all(1)]
    if len(there):
        return over_seeds(there)
    nothing = np.full(areas.shape[1], np.nan)
    return Estimates(value=nothing, low=nothing, high=nothing, n=np.zeros(areas.shape[1], np.int64))


def _share(own: PairMaterial, right: list[Answers], seed: int) -> Estimates:
    """(view,) the share of (view, pair) answers that are right, over sentences and divisions."""
    sentences, views = len(own.asked.examples.entries), right[0].shape[0]
    tops, bottoms = np.zeros((len(right), sentences, views)), np.zeros((len(right), sentences, 1))
    for run, (values, (_, told)) in enumerate(zip(right, own.halves, strict=True)):
        places = own.asked.examples.entry[told.first]
        np.add.at(tops[run], places, values.T)
        np.add.at(bottoms[run], places, 1)
    return share_of(tops, bottoms, seed)


def _majority(own: PairMaterial, first: Pairs, second: Pairs) -> Answers:
    return second.same == (first.same.mean() >= 0.5)


def _same_form(own: PairMaterial, first: Pairs, second: Pairs) -> Answers:
    forms = own.asked.forms
    return second.same == (forms[second.first] == forms[second.second])


def _rule(own: PairMaterial, rule: Rule, seed: int, layers: int) -> Estimates:
    """What a rule that sees no vectors tells right, beside every layer."""
    right = [rule(own, *halves)[None] for halves in own.halves]
    return _share(own, right, seed)[0].everywhere((layers,))
