"""Word in context: same sense or not, from the cosine of two occurrences (pilehvar2019)."""

from __future__ import annotations

from functools import partial

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.probing.train_test_split import CorpusSplit, for_both_models
from bertology.analyses.senses.word_in_context.pairs import (
    OccurrencePairSplits,
    build_pair_splits,
    pair_cosines,
)
from bertology.analyses.word_senses.disambiguation import bootstrap_accuracy
from bertology.analyses.word_senses.occurrences import LAST_FOUR
from bertology.arrays import Array, BoolArray
from bertology.encoder.encoder import Encoder
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import range_over_seeds
from bertology.numerics.nearest_neighbours import FloatArray
from bertology.recording.recording import Recording
from bertology.results.shapes import LayerCurve

NAME = "senses/word_in_context"
ACCURACY, AUC = "accuracy", "ROC AUC"
Measures = dict[str, Estimates]


@analysis(
    question="Does the cosine between two occurrences of a word tell whether they have the same sense?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("pilehvar2019", "wiedemann2019"),
    sites=(WORD_SITE,),
    test_corpus="english+senses",
)
def word_in_context(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    split: CorpusSplit = CorpusSplit(train_fraction=0.5, n_seeds=5),
) -> LayerCurve:
    """Accuracy of deciding by a cosine threshold whether two occurrences have the same sense, 0 to 1 (chance: 0.5).

    A pair is one word in two sentences, which the model reads separately. The threshold is the same for all words; it
    is chosen on one half of the documents (or on --train-corpus) and scored on the other, layer by layer. From a
    sense-annotated corpus pairs are sampled: for each word as many with the same sense as with different senses, from
    different documents, no occurrence in two pairs of one kind. A corpus in WiC format (`wic`) has its own pairs, and
    the halves are halves of them.

    `ROC AUC` needs no threshold: how often a same-sense pair is more similar than a different-sense pair (chance: 0.5).
    Baselines: `majority class` of the pairs the threshold is chosen on; `same word form`; `shuffled labels`, permuted
    in both halves; `embedding layer`: layer 0, the word without context but, in BERT, with its position; `last four
    layers` concatenated; the untrained model. Intervals of the accuracy resample sentences of pairs and splits, those
    of ROC AUC are the range over splits; n is the number of sentences and of splits.
    """
    seed = split.seed
    splits, untrained = for_both_models(
        partial(build_pair_splits, split=split, analysis_name=NAME), recording, randomised, encoder
    )
    measures = _measure_pairs(splits, seed)
    layers = len(measures[ACCURACY].value) - 1
    forms, pairs = splits.test.forms, splits.pair_splits
    majority = [test.same_sense == (train.same_sense.mean() >= 0.5) for train, test in pairs]
    same_form = [test.same_sense == (forms[test.first] == forms[test.second]) for _, test in pairs]
    baselines: dict[str, Measures] = {
        "majority class": {ACCURACY: _rule_accuracy(splits, majority, seed, layers)},
        "same word form": {ACCURACY: _rule_accuracy(splits, same_form, seed, layers)},
        "shuffled labels": _first_layers(_measure_pairs(splits, seed, shuffle=True), layers),
        "embedding layer": {name: estimates[0].broadcast_to((layers,)) for name, estimates in measures.items()},
        LAST_FOUR: {name: estimates[layers].broadcast_to((layers,)) for name, estimates in measures.items()},
    }
    if untrained is not None:
        baselines["untrained model"] = _first_layers(_measure_pairs(untrained, seed), layers)
    train, test = pairs[0]
    return LayerCurve(
        measures=_first_layers(measures, layers),
        baselines=baselines,
        units={ACCURACY: "proportion of pairs, 0 to 1", AUC: "ROC AUC, 0 to 1"},
        sample={"training pairs": len(train), "test pairs": len(test), "splits": len(pairs)},
    )


def _first_layers(measures: Measures, n_layers: int) -> Measures:
    return {name: estimates[:n_layers] for name, estimates in measures.items()}


def _measure_pairs(splits: OccurrencePairSplits, seed: int, *, shuffle: bool = False) -> Measures:
    """Both measures by representation."""
    correct: list[BoolArray] = []
    aucs: list[list[float]] = []
    for number, halves in enumerate(splits.pair_splits):
        cosines = [pair_cosines(part, half) for part, half in zip((splits.train, splits.test), halves, strict=True)]
        labels = [half.same_sense for half in halves]
        if shuffle:
            generator = np.random.default_rng([seed, number, 13])
            labels = [generator.permutation(half) for half in labels]
        thresholds = np.array([best_threshold(values, labels[0]) for values in cosines[0]])
        correct.append((cosines[1] > thresholds[:, None]) == labels[1])
        aucs.append([_roc_auc(values, labels[1]) for values in cosines[1]])
    return {ACCURACY: _estimate_accuracy(splits, correct, seed), AUC: _auc_range(np.array(aucs))}


def _auc_range(aucs: FloatArray) -> Estimates:
    """(representation,) range over the splits whose test pairs have both labels."""
    defined = aucs[np.isfinite(aucs).all(1)]
    return range_over_seeds(defined) if len(defined) else Estimates.empty(aucs.shape[1])


def _estimate_accuracy(splits: OccurrencePairSplits, correct: list[BoolArray], seed: int) -> Estimates:
    """(representation,) accuracy of (representation, pair) predictions, over sentences and splits."""
    n_sentences, n_representations = len(splits.test.examples.inputs), correct[0].shape[0]
    n_correct = np.zeros((len(correct), n_sentences, n_representations))
    n_pairs = np.zeros((len(correct), n_sentences, 1))
    for split, (values, (_, test)) in enumerate(zip(correct, splits.pair_splits, strict=True)):
        sentences = splits.test.examples.input_index[test.first]
        np.add.at(n_correct[split], sentences, values.T)
        np.add.at(n_pairs[split], sentences, 1)
    return bootstrap_accuracy(n_correct, n_pairs, seed)


def _rule_accuracy(splits: OccurrencePairSplits, correct: list[BoolArray], seed: int, n_layers: int) -> Estimates:
    """The accuracy of a rule without vectors, the same for every layer."""
    return _estimate_accuracy(splits, [values[None] for values in correct], seed)[0].broadcast_to((n_layers,))


def best_threshold(values: Array, positive: BoolArray) -> float:
    """The threshold above which values are best taken for positive; the middle one if several are equally good.

    Infinite if it is best to predict the same class for all values.
    """
    levels = np.unique(values.astype(np.float64))
    if not len(levels):
        return float("nan")
    thresholds = np.concatenate([[-np.inf], (levels[1:] + levels[:-1]) / 2, [np.inf]])
    level = np.searchsorted(levels, values)
    # Correct above threshold t: positives from level t on, and negatives below it.
    change = np.bincount(level, np.where(positive, -1, 1), minlength=len(levels))
    n_correct = positive.sum() + np.concatenate([[0.0], np.cumsum(change)])
    best = np.flatnonzero(n_correct == n_correct.max())
    return float(thresholds[best[len(best) // 2]])


def _roc_auc(values: Array, positive: BoolArray) -> float:
    """ROC AUC of the values, 0 to 1; NaN if all pairs have the same label."""
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(positive, values)) if positive.any() and not positive.all() else float("nan")
