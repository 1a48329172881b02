"""Word in context: same sense or not, from the cosine of two occurrences (pilehvar2019)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
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
from bertology.corpus.readers.wic import DIFFERENT, SAME
from bertology.encoder.encoder import Encoder
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import range_over_seeds
from bertology.numerics.nearest_neighbours import FloatArray
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import LayerCurve

NAME = "senses/word_in_context"
ACCURACY, AUC = "accuracy", "ROC AUC"
Measures = dict[str, Estimates]


@analysis(
    question="Does the cosine between two occurrences of a word tell whether they have the same sense?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("pilehvar2019", "wiedemann2019"),
    version=2,
    sites=(WORD_SITE,),
    test_corpus="english+senses",
    answers=True,
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
    decisions = {MODEL_SERIES: _decide_pairs(splits)}
    measures = _measure_decisions(splits, decisions[MODEL_SERIES], seed)
    layers = len(measures[ACCURACY].value) - 1
    forms, pairs = splits.test.forms, splits.pair_splits
    majority = [test.same_sense == (train.same_sense.mean() >= 0.5) for train, test in pairs]
    same_form = [test.same_sense == (forms[test.first] == forms[test.second]) for _, test in pairs]
    rules = {"majority class": majority, "same word form": same_form}
    shuffled = _measure_decisions(splits, _decide_pairs(splits, shuffle_seed=seed), seed)
    baselines: dict[str, Measures] = {
        **{name: {ACCURACY: _rule_accuracy(splits, correct, seed, layers)} for name, correct in rules.items()},
        "shuffled labels": _first_layers(shuffled, layers),
        "embedding layer": {name: estimates[:1].broadcast_to((layers,)) for name, estimates in measures.items()},
        LAST_FOUR: {name: estimates[layers:].broadcast_to((layers,)) for name, estimates in measures.items()},
    }
    if untrained is not None:
        decisions["untrained model"] = _decide_pairs(untrained)
        untrained_measures = _measure_decisions(untrained, decisions["untrained model"], seed)
        baselines["untrained model"] = _first_layers(untrained_measures, layers)
    train, test = pairs[0]
    curve = LayerCurve(
        measures=_first_layers(measures, layers),
        baselines=baselines,
        units={ACCURACY: "proportion of pairs, 0 to 1", AUC: "ROC AUC, 0 to 1"},
        sample={"training pairs": len(train), "test pairs": len(test), "splits": len(pairs), **splits.unused},
    )
    return curve.with_answers(lambda: _answers(splits, decisions, rules))


def _first_layers(measures: Measures, n_layers: int) -> Measures:
    return {name: estimates[:n_layers] for name, estimates in measures.items()}


@dataclass(frozen=True)
class _PairDecisions:
    """Decisions on the test pairs of a split: (representation, pair) cosines and decisions, and (pair,) labels."""

    cosines: FloatArray
    is_same: BoolArray
    labels: BoolArray


def _decide_pairs(splits: OccurrencePairSplits, *, shuffle_seed: int | None = None) -> list[_PairDecisions]:
    """Decide by the threshold that is best for the training pairs of each split, or for permuted labels."""
    decisions: list[_PairDecisions] = []
    for number, halves in enumerate(splits.pair_splits):
        cosines = [pair_cosines(part, half) for part, half in zip((splits.train, splits.test), halves, strict=True)]
        labels = [half.same_sense for half in halves]
        if shuffle_seed is not None:
            generator = np.random.default_rng([shuffle_seed, number, 13])
            labels = [generator.permutation(half) for half in labels]
        thresholds = np.array([best_threshold(values, labels[0]) for values in cosines[0]])
        decisions.append(_PairDecisions(cosines[1], cosines[1] > thresholds[:, None], labels[1]))
    return decisions


def _measure_decisions(splits: OccurrencePairSplits, decisions: list[_PairDecisions], seed: int) -> Measures:
    """Both measures by representation."""
    correct = [split.is_same == split.labels for split in decisions]
    aucs = [[_roc_auc(values, split.labels) for values in split.cosines] for split in decisions]
    return {ACCURACY: _estimate_accuracy(splits, correct, seed), AUC: _auc_range(np.array(aucs))}


def _answers(
    splits: OccurrencePairSplits, decisions: dict[str, list[_PairDecisions]], rules: dict[str, list[BoolArray]]
) -> Iterator[Answer]:
    """The decision on each test pair of each split, by representation."""
    test = splits.test
    for number, (_, pairs) in enumerate(splits.pair_splits):
        for row, occurrences in enumerate(zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)):
            inputs = [test.examples.inputs[int(test.examples.input_index[index])] for index in occurrences]
            words = [int(test.word_index[index]) for index in occurrences]
            names = [
                f"{i.text.segments[0].id or i.example_index + 1}:{word + 1}"
                for i, word in zip(inputs, words, strict=True)
            ]
            is_same = bool(pairs.same_sense[row])
            item = {
                "item": " ".join(names),
                "text": " | ".join(i.text.segments[0].text for i in inputs),
                "word": str(test.lemmas[occurrences[0]]),
                "split": number + 1,
                "gold": _sense_label(is_same),
            }
            for series, by_split in decisions.items():
                split = by_split[number]
                for representation, name in enumerate(test.representations):
                    decision = bool(split.is_same[representation, row])
                    yield item | {
                        "series": series,
                        "representation": name,
                        "cosine": float(split.cosines[representation, row]),
                        "prediction": _sense_label(decision),
                        "correct": float(decision == is_same),
                    }
            for series, correct in rules.items():
                decision = is_same == bool(correct[number][row])
                yield item | {
                    "series": series,
                    "representation": None,
                    "cosine": None,
                    "prediction": _sense_label(decision),
                    "correct": float(correct[number][row]),
                }


def _sense_label(is_same: bool) -> str:
    return SAME if is_same else DIFFERENT


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
    return _estimate_accuracy(splits, [values[None] for values in correct], seed).broadcast_to((n_layers,))


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
