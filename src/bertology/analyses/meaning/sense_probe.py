"""Is there a subspace of word senses, and does another sentence disturb it (reif2019)?"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.maths.neighbours import Floats
from bertology.measures.division import Division, random_form
from bertology.measures.meaning.sense_joining import JOINED, Joining, alone, joined_states, joining, to_centroids
from bertology.measures.meaning.sense_material import Divided, divided, shuffled_senses
from bertology.measures.meaning.sense_projection import Probed
from bertology.measures.probes.probe_material import WORD_SITE
from bertology.measures.work import Work
from bertology.recording.recording import Recording
from bertology.results.estimate import Estimate, Estimates
from bertology.results.sampling import joined, pooled_over_sentences
from bertology.results.shapes import Curve, LayerCurve

NAME = "meaning/sense_probe"
Show = Literal["dimensions", "joined"]
Measures = dict[str, Estimates]

SEEN, OTHER = "accuracy", "accuracy, learned from other words"
RATIO, RATIO_JOINED = "ratio alone", "ratio joined to the other sense"
NEARER, NEARER_JOINED = "own sense alone", "own sense joined to the other"


@analysis(
    question="Is there a subspace of word senses, and does another sentence disturb it?",
    special="seen by the model; a word is the mean of its own pieces",
    cites=("reif2019",),
    sites=(WORD_SITE,),
    layers=("senses",),
)
def sense_probe(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    work: Work,
    *,
    show: Annotated[
        Show,
        "`dimensions`: maps of few dimensions (Curve); `joined`: the word's sentence joined to another (LayerCurve)",
    ] = "dimensions",
    dimensions: Annotated[str, "how many dimensions the maps have, with commas between; 0 for the width"] = "2,8,32,0",
    layer: Annotated[int, "with --show dimensions: the layer that is mapped; -1 the last"] = -1,
    most: Annotated[int, "with --show joined: so many occurrences are joined to other sentences"] = 100,
    train: Annotated[str, "a corpus with senses to learn from; empty: a part of the test corpus"] = "",
    train_limit: Annotated[int, "learn from the first N sentences of --train; 0 for all"] = 0,
    share: Annotated[float, "without --train: the share of the sentences to learn from, whole documents"] = 0.7,
    seeds: Annotated[int, "how many divisions and first maps; --show joined takes the first"] = 3,
    seed: Annotated[int, "the first of these seeds, and that of the bootstrap"] = 0,
) -> Curve | LayerCurve:
    """Share of words nearest to the centroid of their sense under a linear map of few dimensions, 0 to 1.

    The map is trained so that occurrences of a word with the same sense have a higher mean cosine than those with
    different senses; it starts as a random one with orthonormal rows and stops when pairs of held-out documents (30 %
    of training) gain nothing. Centroids are of training, and only words with several senses there are asked.
    `accuracy` has learned from the same words in other documents, the second measure from other words alone (in three
    folds), as a subspace of senses should allow; Reif et al. learn from 90 % of the words. Baselines: the `random map`
    itself; `no map`, all dimensions; `shuffled senses`: a map that has learned senses dealt anew; the most frequent
    sense; the same probe on random weights. Intervals are over test sentences and divisions.

    `--show joined` is their concatenation test. The ratio is the cosine of a word with the centroid of its sense over
    that with the opposite one, above 1 where it is nearer its own, of words with both cosines above 0; a few high
    ones pull its mean up, so `own sense` is the share of words that are nearer their own. Then the sentence is joined
    to one with the other sense, and beside it, as baselines, to one with the same sense and one without the word:
    what any more text does. `shuffled senses` has centroids of senses dealt anew. Two sentences are one text with a
    blank between them (theirs: joined by `and`).
    """
    division = Division(train, train_limit, share, seed)
    own = divided(recording, encoder, division, seeds, purpose=NAME)
    fresh = None
    if randomised is not None:
        fresh = divided(randomised, random_form(encoder), division, seeds, purpose=NAME)
    if show == "joined":
        return _joined(recording, encoder, own, fresh, most, seed)
    layers, width = own.tested.examples.features.shape[0], own.tested.examples.features.shape[2]
    if not -layers <= layer < layers:
        raise Refusal(f"There is no layer {layer}", f"a number from 0 to {layers - 1}, or -1", "Give another --layer")
    return _curve(own, fresh, layer, _numbers(dimensions, width), seed, work)


def _numbers(text: str, width: int) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not parts or not all(part.isdecimal() for part in parts):
        raise Refusal(
            f"--dimensions was given {text!r}", "whole numbers with commas between", "Write, for example, 2,8,32,0"
        )
    return sorted({min(int(part) or width, width) for part in parts})


def _curve(own: Divided, fresh: Divided | None, layer: int, sizes: list[int], seed: int, work: Work) -> Curve:
    probed = Probed(own, layer, seed)
    random = Probed(fresh, layer, seed) if fresh is not None else None
    rows: dict[str, list[Estimate]] = {}
    meter = work.meter("learning maps")
    for done, size in enumerate(sizes):
        found = {
            SEEN: probed.shared(partial(probed.by_probe, size)),
            OTHER: probed.shared(partial(probed.by_other_words, size)),
            "random map": probed.shared(partial(probed.by_random_map, size)),
            "shuffled senses": probed.shared(partial(probed.by_probe, size, shuffle=True)),
        }
        if random is not None:
            found["random weights"] = random.shared(partial(random.by_probe, size))
        for name, one in found.items():
            rows.setdefault(name, []).append(one)
        meter(done + 1, len(sizes))
    return _as_curve(probed, rows, sizes)


def _as_curve(probed: Probed, rows: dict[str, list[Estimate]], sizes: list[int]) -> Curve:
    curves = {name: joined(found) for name, found in rows.items()}
    count = (len(sizes),)
    whole = probed.shared(lambda run: probed.right(run, None)).everywhere(count)
    frequent = probed.shared(probed.by_frequency).everywhere(count)
    both = {name: curves.pop(name) for name in (SEEN, OTHER)}
    baselines: dict[str, Measures] = {name: {SEEN: one, OTHER: one} for name, one in curves.items()}
    baselines |= {name: {SEEN: one, OTHER: one} for name, one in (("no map", whole), ("most frequent sense", frequent))}
    unit = "share of occurrences of words with several senses, 0 to 1"
    return Curve(
        measures=both,
        baselines=baselines,
        units={SEEN: f"{unit} ({probed.divided.sizes})", OTHER: unit},
        along="dimensions",
        points=np.array(sizes, np.float64),
    )


def _joined(
    recording: Recording, encoder: Encoder | None, own: Divided, fresh: Divided | None, most: int, seed: int
) -> LayerCurve:
    if encoder is None:
        raise Refusal(
            "--show joined runs the model on joined sentences, and a recording cannot be run",
            "a model",
            "Give --model and --corpus instead of --recording",
        )
    asked = joining(own, most, seed)
    if not len(asked.cases):
        raise Refusal(
            "No tested word has two senses in training and sentences of other documents to be joined to",
            "words that occur several times with each of two senses",
            "Use a larger corpus with senses",
        )
    ways: dict[str, Measures] = {}
    cut = 0
    for name in JOINED:
        states, fits = joined_states(asked, name, recording, encoder)
        found = _near(asked, states, seed, fits=fits)
        ways[name] = {RATIO_JOINED: found[RATIO], NEARER_JOINED: found[NEARER]}
        cut += int((~fits).sum())
    measures = _near(asked, alone(asked), seed) | ways.pop(JOINED[0])
    baselines = {f"joined to {name}": found for name, found in ways.items()}
    generator = np.random.default_rng([seed, 31])
    senses = shuffled_senses(own.learned, own.runs[0][0], generator)
    baselines["shuffled senses"] = _near(asked, alone(asked), seed, senses=senses)
    if fresh is not None:
        again = Joining(fresh, asked.cases, asked.opposite, asked.partners)
        baselines["random weights"] = _near(again, alone(again), seed)
    unit = f"{len(asked.cases)} occurrences; {cut} joined inputs too long for the model"
    units = {RATIO: f"cosines, 1 as near to both senses ({unit})", RATIO_JOINED: "cosines, 1 as near to both senses"}
    units |= dict.fromkeys((NEARER, NEARER_JOINED), "share of occurrences, 0 to 1; 0.5 by chance")
    return LayerCurve(measures=measures, baselines=baselines, units=units)


def _near(
    asked: Joining,
    states: NDArray[Any],
    seed: int,
    *,
    fits: NDArray[np.bool_] | None = None,
    senses: NDArray[Any] | None = None,
) -> Measures:
    """(layer,) the mean ratio of both cosines, and the share of words nearer to their own sense."""
    own, opposite = to_centroids(asked, states, senses)
    there = np.isfinite(own) & np.isfinite(opposite) & (True if fits is None else fits)
    positive = there & (own > 0) & (opposite > 0)
    ratio = np.divide(own, opposite, out=np.zeros_like(own), where=positive)
    nearer = np.where(there, (own > opposite) + 0.5 * (own == opposite), 0.0)
    return {RATIO: _pooled(asked, ratio, positive, seed), NEARER: _pooled(asked, nearer, there, seed)}


def _pooled(asked: Joining, values: Floats, there: NDArray[np.bool_], seed: int) -> Estimates:
    """(layer,) the mean over those that are there, with an interval over sentences."""
    _, place = np.unique(asked.sentences, return_inverse=True)
    tops, bottoms = np.zeros((place.max() + 1, len(values))), np.zeros((place.max() + 1, len(values)))
    np.add.at(tops, place, np.where(there, values, 0.0).T)
    np.add.at(bottoms, place, there.T)
    return pooled_over_sentences(tops, bottoms, seed=seed)
