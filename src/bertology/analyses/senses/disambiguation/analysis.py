"""Nearest-neighbour word sense disambiguation, layer by layer (wiedemann2019)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Literal

import numpy as np
from annotated_types import Ge
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.analyses.probing.dataset import WORD_SITE
from bertology.analyses.probing.train_test_split import CorpusSplit, for_both_models
from bertology.analyses.senses.disambiguation.back_off import BackOffName, load_back_off
from bertology.analyses.word_senses.disambiguation import (
    ACCURACY,
    AMBIGUOUS_ACCURACY,
    BACK_OFF_ACCURACY,
    BACK_OFF_RATE,
    F1,
    MEASURES,
    BackOffFactory,
    SenseClassifier,
    SenseCorrectness,
    SenseRule,
    accuracy_gains,
    disambiguate,
    score_disambiguation,
    sense_answers,
)
from bertology.analyses.word_senses.occurrences import LAST_FOUR, SenseSplits, split_occurrences
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES, gain_measure
from bertology.results.shapes import LayerCurve, Matrix

SenseGrouping = Literal["none", "pos", "lemma"]
NAME = "senses/disambiguation"
GAIN = gain_measure(ACCURACY)
UNITS = {
    F1: "F1, 0 to 1, unseen words unanswered",
    ACCURACY: "proportion of occurrences, 0 to 1, fallback for unseen words included",
    AMBIGUOUS_ACCURACY: "proportion of occurrences with at least two senses in training, 0 to 1",
    BACK_OFF_RATE: "proportion of occurrences whose lemma is not in training, 0 to 1",
    BACK_OFF_ACCURACY: "proportion of unseen words, 0 to 1",
}


@analysis(
    question="How accurate is nearest-neighbour word sense disambiguation on each layer?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("wiedemann2019", "reif2019"),
    sites=(WORD_SITE,),
    annotations=("senses",),
    version=3,
    test_corpus="english+senses",
    answers=True,
)
def disambiguation(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    k: Annotated[int, Ge(1), "Number of nearest neighbours that vote."] = 1,
    method: Annotated[SenseRule, "`knn`: the nearest neighbours vote; `centroid`: the nearest sense centroid."] = "knn",
    clip_k: Annotated[
        bool,
        "Use no more neighbours than the word's rarest sense has training examples, as in the released code.",
    ] = True,
    same_pos: Annotated[bool, "Only senses seen in training with the same part of speech."] = False,
    fallback: Annotated[
        BackOffName,
        "Prediction for words not seen in training: `none`, the `most-frequent` sense by name, or the first `wordnet` "
        "sense.",
    ] = "most-frequent",
    wordnet_lexicon: Annotated[str, "Lexicon of the package wn, for --fallback wordnet."] = "omw-en:1.4",
    group_by: Annotated[SenseGrouping, "`none`: all words together; `pos` or `lemma`: separate scores."] = "none",
    split: CorpusSplit = CorpusSplit(n_seeds=5),
) -> LayerCurve | Matrix:
    """Accuracy of nearest-neighbour word sense disambiguation by layer, 0 to 1.

    The candidates are the senses of the lemma in the training data, represented by all training words with that sense;
    the k with the highest cosine vote. `last four layers` is their concatenation (Wiedemann et al., for BERT-large).
    Nothing is trained. Equal cosines share the vote: if all vectors are equal, as static vectors of one word are, the
    most frequent sense is predicted. Of several gold senses each counts as right, as in the official scorer of the
    unified framework (raganato2017); in training the first is the sense.

    - F1 leaves words not seen in training unanswered, as the released code does; accuracy uses the fallback for them,
      and counts a missing fallback as wrong. Both say little if most words have one sense: see `accuracy (ambiguous
      words)`.
    - `accuracy - accuracy (half the training data)` is what the second half of the training sentences adds, another
      half in each split: an accuracy that still rises says little about the model.
    - `proportion unseen` and `accuracy (unseen words)`: how many words are not in training, and how often the fallback
      is right.

    Baselines: the most frequent sense in training (ties: the first by name); a random candidate; `upper bound (senses
    seen in training)`: always right if the gold sense is a candidate; `shuffled senses`: training senses permuted
    within each lemma; `embedding layer`: layer 0, the word without context but, in BERT, with its position; the
    untrained model. The most frequent sense in training need not be that of the test data: with two equally frequent
    senses it can be right less than half of the time. Intervals resample test sentences and splits; n is the number of
    sentences with a scored word.

    The paper feeds lemmas to the model, and looks training words up by form and test words by lemma; here the model
    reads the text and both are looked up by lemma.
    """
    classifier = SenseClassifier(method, k, clip_k, same_pos)
    splits, untrained = for_both_models(
        partial(split_occurrences, split=split, analysis_name=NAME), recording, randomised, encoder
    )
    fallback_factory = load_back_off(fallback, wordnet_lexicon)
    results = _SenseResults.compute(splits, untrained, classifier, fallback_factory, split.seed)
    data = _build_curve(results) if group_by == "none" else _build_matrix(results, group_by)
    return data.with_answers(results.answers)


@dataclass(frozen=True)
class _SenseResults:
    """Correctness by the model's vectors, by those of the untrained model, and with shuffled training senses."""

    splits: SenseSplits
    randomised: SenseSplits | None
    correctness: list[SenseCorrectness]
    half_trained: list[SenseCorrectness]
    randomised_correctness: list[SenseCorrectness]
    control_correctness: list[SenseCorrectness]
    seed: int

    @classmethod
    def compute(
        cls,
        splits: SenseSplits,
        randomised: SenseSplits | None,
        classifier: SenseClassifier,
        fallback: BackOffFactory | None,
        seed: int,
    ) -> _SenseResults:
        """Predict all test occurrences."""
        untrained = disambiguate(randomised, classifier, fallback) if randomised is not None else []
        control = disambiguate(splits, classifier, fallback, shuffle_seed=seed)
        full, half = (disambiguate(part, classifier, fallback) for part in (splits, splits.with_half_training()))
        return cls(splits, randomised, full, half, untrained, control, seed)

    def answers(self) -> Iterator[Answer]:
        """The senses predicted by the model, by the untrained model and with shuffled training senses."""
        yield from sense_answers(self.splits, self.correctness, MODEL_SERIES)
        yield from sense_answers(self.splits, self.control_correctness, "shuffled senses")
        if self.randomised is not None:
            yield from sense_answers(self.randomised, self.randomised_correctness, "untrained model")

    def estimates(self, mask: NDArray[np.bool_] | None = None) -> dict[str, dict[str, Estimates]]:
        """Measures by representation: those of the model under "", and those of every baseline."""
        scores = score_disambiguation(self.splits, self.correctness, self.seed, mask=mask)
        if mask is None:
            for name, gain in accuracy_gains(self.splits, self.correctness, self.half_trained, self.seed).items():
                scores[name] = {**scores[name], GAIN: gain}
        control = score_disambiguation(self.splits, self.control_correctness, self.seed, mask=mask)
        scores["shuffled senses"] = control[""]
        shape = (len(self.splits.test.representations),)
        scores["embedding layer"] = {name: estimates[:1].broadcast_to(shape) for name, estimates in scores[""].items()}
        if self.randomised is not None:
            untrained = score_disambiguation(self.randomised, self.randomised_correctness, self.seed, mask=mask)
            scores["untrained model"] = untrained[""]
        return scores


def _build_curve(results: _SenseResults) -> LayerCurve:
    scores, layers = results.estimates(), len(results.splits.test.representations) - 1
    by_layer = {name: {key: e[:layers] for key, e in measures.items()} for name, measures in scores.items()}
    measures = by_layer.pop("")
    last_four = {key: estimates[layers:].broadcast_to((layers,)) for key, estimates in scores[""].items()}
    return LayerCurve(
        measures=measures,
        baselines=by_layer | {LAST_FOUR: last_four, "zero": {GAIN: Estimates.exact(np.zeros(layers))}},
        units={**UNITS, GAIN: "difference, -1 to 1"},
        sample={"training sentences": results.splits.n_training_sentences(), **results.splits.sample},
    )


def _build_matrix(results: _SenseResults, group_by: SenseGrouping) -> Matrix:
    test = results.splits.test
    labels = test.pos if group_by == "pos" else test.lemmas
    test_indices = np.concatenate([indices for _, indices in results.splits.splits])
    columns = [str(name) for name in sorted(set(labels[test_indices].tolist()))]
    if columns == [""]:
        raise Refusal(
            "--group-by pos was given, and the corpus has no parts of speech",
            "a corpus with parts of speech",
            "Remove --group-by, or use another corpus",
        )
    parts = [results.estimates(labels == name) for name in columns]

    def cells(name: str) -> dict[str, Estimates]:
        return {key: Estimates.stack([part[name][key] for part in parts], axis=1) for key in MEASURES}

    return Matrix(
        measures=cells(""),
        baselines={name: cells(name) for name in parts[0] if name},
        units=UNITS,
        row_names=test.representations,
        column_names=tuple(name or "(none)" for name in columns),
    )
