"""A linear subspace of word senses, and the effect of an added sentence on it (reif2019)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import analysis
from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.probing.options import Layer, resolve_layer
from bertology.analyses.probing.train_test_split import CorpusSplit, for_both_models
from bertology.analyses.senses.subspace_probe.concatenation import (
    APPENDED_SENTENCES,
    SentenceConcatenation,
    centroid_cosines,
    concatenated_states,
    concatenation_test,
    single_sentence_states,
)
from bertology.analyses.senses.subspace_probe.probe import SenseProjectionProbe
from bertology.analyses.word_senses.occurrences import SenseSplits, shuffle_senses, split_occurrences
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_ratio, exact_where_unanimous
from bertology.number_ranges import COUNT, LAYER, MAX_COUNT, parse_whole_number, shorten_value
from bertology.numerics.nearest_neighbours import FloatArray
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import Curve, LayerCurve

NAME = "senses/subspace_probe"
SubspaceProbeView = Literal["ranks", "concatenation"]
Measures = dict[str, Estimates]
FULL = "full"

ACCURACY, OTHER_WORDS_ACCURACY = "accuracy", "accuracy (trained on other words)"
RATIO, RATIO_CONCATENATED = "similarity ratio", "similarity ratio (with other-sense sentence)"
BASELINE_NAMES = {
    "same sense": "with a same-sense sentence",
    "another word": "with a sentence without the word",
}
CLOSER, CLOSER_CONCATENATED = "nearer own sense", "nearer own sense (with other-sense sentence)"


@analysis(
    question="Is word sense encoded in a low-dimensional linear subspace, and does an added sentence "
    "with another sense "
    "disturb it?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("reif2019",),
    version=3,
    sites=(WORD_SITE,),
    annotations=("senses",),
    test_corpus="english+senses",
    answers=("ranks",),
)
def subspace_probe(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    cache: AnalysisCache,
    *,
    show: Annotated[
        SubspaceProbeView,
        "`ranks` (accuracy by rank) or `concatenation` (effect of adding a sentence with another sense).",
    ] = "ranks",
    ranks: Annotated[str, "Ranks of the linear maps, comma-separated; `full`: the model's width."] = "2,8,32,full",
    layer: Annotated[
        Layer, LAYER, "Layer to use; 0: embeddings, negative: counted from the last (-1); `auto`: the last."
    ] = "auto",
    sample_size: Annotated[int, "With --show concatenation: number of occurrences to test, sampled at random."] = 100,
    split: CorpusSplit = CorpusSplit(),
) -> Curve | LayerCurve:
    """Accuracy of the nearest sense centroid under a low-rank linear map, 0 to 1.

    The map is trained so that occurrences of a word with the same sense have a higher mean cosine than those with
    different senses. It starts as a random map with orthonormal rows and stops when pairs from held-out documents (30 %
    of the training data) no longer improve. Centroids come from the training data, and only words with several senses
    there are tested. `accuracy` is trained on the same words in other documents, `accuracy (trained on other words)`
    on other words only (three folds), as a subspace of senses should allow; Reif et al. train on 90 % of the words.
    Baselines: the initial `random projection`; `no projection`, all dimensions; `shuffled senses`: a map trained on
    permuted senses; the most frequent sense; the same probe on the untrained model. Intervals resample test sentences
    and splits.

    `--show concatenation` is their concatenation test. The similarity ratio is the cosine of a word with the centroid
    of its sense over that with the opposite sense: above 1 if it is nearer its own, over words with both cosines above
    0. A few high ratios raise its mean, so `nearer own sense` is the proportion of words that are nearer their own
    sense. Then a sentence with the other sense is appended; baselines append a sentence with the same sense, or one
    without the word, to show the effect of any additional text. `shuffled senses` uses centroids of permuted senses.
    The two sentences are joined by a space (Reif et al. join them by `and`).
    """
    splits, untrained = for_both_models(
        partial(split_occurrences, split=split, analysis_name=NAME), recording, randomised, encoder
    )
    if show == "concatenation":
        return _build_concatenation_curve(recording, encoder, splits, untrained, sample_size, split.seed)
    layers, width = splits.test.examples.features.shape[0], splits.test.examples.features.shape[2]
    probed_layer = resolve_layer(layer, layers, auto=layers - 1)
    return _build_curve(splits, untrained, probed_layer, _parse_ranks(ranks, width), split.seed, cache)


def _parse_ranks(text: str, width: int) -> list[int]:
    parts = [part.strip() for part in text.split(",") if part.strip()]
    ranks = [width if part == FULL else parse_whole_number(part, COUNT) for part in parts]
    valid = {min(rank, width) for rank in ranks if rank is not None}
    if not ranks or None in ranks:
        raise Refusal(
            f"--ranks was given {shorten_value(text)}",
            f"whole numbers from 1 to {MAX_COUNT:,} or `full`, comma-separated",
            "Try 2,8,32,full",
        )
    return sorted(valid)


def _build_curve(
    splits: SenseSplits, randomised: SenseSplits | None, layer: int, ranks: list[int], seed: int, cache: AnalysisCache
) -> Curve:
    probe = SenseProjectionProbe(splits, layer, seed)
    untrained = SenseProjectionProbe(randomised, layer, seed) if randomised is not None else None
    series: dict[str, list[Estimates]] = {}
    by_condition: list[tuple[str, int | None, list[FloatArray]]] = []
    progress = cache.progress_meter("training projections")
    for done, rank in enumerate(ranks):
        correct = {
            ACCURACY: probe.in_all_splits(partial(probe.probe_correct, rank)),
            OTHER_WORDS_ACCURACY: probe.in_all_splits(partial(probe.other_words_correct, rank)),
            "random projection": probe.in_all_splits(partial(probe.random_map_correct, rank)),
            "shuffled senses": probe.in_all_splits(partial(probe.probe_correct, rank, shuffle=True)),
        }
        for name, by_split in correct.items():
            series.setdefault(name, []).append(probe.accuracy(by_split))
            by_condition.append((name, rank, by_split))
        if untrained is not None:
            by_split = untrained.in_all_splits(partial(untrained.probe_correct, rank))
            series.setdefault("untrained model", []).append(untrained.accuracy(by_split))
            by_condition.append(("untrained model", rank, by_split))
        progress(done + 1, len(ranks))
    curves = {name: Estimates.concatenate(values) for name, values in series.items()}
    shape = (len(ranks),)
    for name, correct_in_split in (
        ("no projection", partial(probe.correct, projection=None)),
        ("most frequent sense", probe.most_frequent_correct),
    ):
        by_split = probe.in_all_splits(correct_in_split)
        curves[name] = probe.accuracy(by_split).broadcast_to(shape)
        by_condition.append((name, None, by_split))
    measures = {name: curves.pop(name) for name in (ACCURACY, OTHER_WORDS_ACCURACY)}

    def answers() -> Iterator[Answer]:
        """Whether each test occurrence has the right sense, by rank; `measure` says what the map was trained on."""
        for name, rank, by_split in by_condition:
            is_model = name in measures
            condition = {"series": MODEL_SERIES if is_model else name, "measure": name if is_model else None}
            yield from probe.answers(by_split, condition | {"rank": rank})

    curve = Curve(
        measures=measures,
        baselines={name: dict.fromkeys(measures, curve) for name, curve in curves.items()},
        units=dict.fromkeys(measures, "proportion of occurrences of ambiguous words, 0 to 1"),
        sample=probe.sense_splits.sample,
        x_name="rank",
        x=np.array(ranks, np.float64),
    )
    return curve.with_answers(answers)


def _build_concatenation_curve(
    recording: Recording,
    encoder: Encoder | None,
    splits: SenseSplits,
    randomised: SenseSplits | None,
    sample_size: int,
    seed: int,
) -> LayerCurve:
    if encoder is None:
        raise Refusal(
            "--show concatenation runs the model, and a recording cannot be run",
            "a model and a corpus",
            "Use --model and --corpus instead of --recording",
        )
    concatenation = concatenation_test(splits, sample_size, seed)
    if not len(concatenation.test_indices):
        raise Refusal(
            "No test word has two senses in training and sentences of other documents to append",
            "words that occur several times with each of two senses",
            "Use a larger sense-annotated corpus",
        )
    by_appended: dict[str, Measures] = {}
    n_too_long = 0
    for name in APPENDED_SENTENCES:
        states, fits = concatenated_states(concatenation, name, recording, encoder)
        appended = _centroid_measures(concatenation, states, seed, fits=fits)
        by_appended[name] = {RATIO_CONCATENATED: appended[RATIO], CLOSER_CONCATENATED: appended[CLOSER]}
        n_too_long += int((~fits).sum())
    single = single_sentence_states(concatenation)
    measures = _centroid_measures(concatenation, single, seed) | by_appended.pop(APPENDED_SENTENCES[0])
    baselines = {BASELINE_NAMES[name]: appended for name, appended in by_appended.items()}
    senses = shuffle_senses(splits.train, splits.splits[0][0], np.random.default_rng([seed, 31]))
    baselines["shuffled senses"] = _centroid_measures(concatenation, single, seed, senses=senses)
    if randomised is not None:
        untrained = SentenceConcatenation(
            randomised, concatenation.test_indices, concatenation.opposite_senses, concatenation.appended
        )
        baselines["untrained model"] = _centroid_measures(untrained, single_sentence_states(untrained), seed)
    units: dict[str, str] = dict.fromkeys(
        (RATIO, RATIO_CONCATENATED), "ratio of cosines (1: equally near to both senses)"
    )
    units |= dict.fromkeys((CLOSER, CLOSER_CONCATENATED), "proportion of occurrences, 0 to 1 (chance: 0.5)")
    sample = {"occurrences": len(concatenation.test_indices), "inputs too long for the model": n_too_long}
    return LayerCurve(measures=measures, baselines=baselines, units=units, sample=sample)


def _centroid_measures(
    concatenation: SentenceConcatenation,
    states: NDArray[Any],
    seed: int,
    *,
    fits: NDArray[np.bool_] | None = None,
    senses: NDArray[Any] | None = None,
) -> Measures:
    """(layer,) the mean ratio of both cosines, and the proportion of words nearer to their own sense."""
    same, opposite = centroid_cosines(concatenation, states, senses)
    defined = np.isfinite(same) & np.isfinite(opposite) & (True if fits is None else fits)
    positive = defined & (same > 0) & (opposite > 0)
    ratios = np.divide(same, opposite, out=np.zeros_like(same), where=positive)
    nearer = np.where(defined, (same > opposite) + 0.5 * (same == opposite), 0.0)
    return {
        RATIO: _pooled_mean(concatenation, ratios, positive, seed),
        CLOSER: exact_where_unanimous(_pooled_mean(concatenation, nearer, defined, seed)),
    }


def _pooled_mean(
    concatenation: SentenceConcatenation, values: FloatArray, mask: NDArray[np.bool_], seed: int
) -> Estimates:
    """(layer,) the mean over the occurrences in the mask, with an interval over sentences."""
    _, sentence = np.unique(concatenation.sentences, return_inverse=True)
    sums, counts = np.zeros((2, sentence.max() + 1, len(values)))
    np.add.at(sums, sentence, np.where(mask, values, 0.0).T)
    np.add.at(counts, sentence, mask.T)
    return bootstrap_ratio(sums, counts, seed=seed)
