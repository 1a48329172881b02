"""Whether a probe trained on ambiguous data follows a positional or a structural rule (lin2019, section 3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from bertology.analyses.declaration import Cost, analysis
from bertology.analyses.probing.train_test_split import (
    CorpusSplit,
    TrainFormatOption,
    TrainFormatOptionsOption,
    TrainTestSplit,
    randomised_encoder,
)
from bertology.arrays import Array, FloatArray, IntArray
from bertology.corpus.example import Example
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_mean, exact_where_unanimous
from bertology.number_ranges import PENALTY
from bertology.numerics.batched_classifier import ClassifierConfig, fit_classifiers
from bertology.recording.recording import Recording
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES
from bertology.results.shapes import LayerCurve

NAME = "probes/hierarchical_generalisation"
TRAIN, TEST = "train", "test"
UNTRAINED = "untrained model"
ADDITIVE_INVERSE_PENALTY = 10.0
"""Inverse L2 penalty of the classifier on word forms and positions."""
FILE_SPLITS = {"gen": "generalisation", "gen_comp": "compound", "gen_apost": "possessive"}


@dataclass(frozen=True)
class _TargetSentence:
    """A sentence with a marked target: its split, words with tokens, index of the target, and (layer, word) states.

    `item` is its id, or its number in the corpus.
    """

    item: str
    split: str
    words: tuple[str, ...]
    target: int
    states: Array


@analysis(
    question="Trained where a positional rule and a structural rule agree, which one does a probe follow where they "
    "differ?",
    special_tokens="Special tokens: in the model's input, not analysed (the paper's input has none).",
    citations=("lin2019",),
    sites=("hidden",),
    annotations=("marked_words",),
    version=4,
    answers=True,
    cost=Cost(seconds_per_word=0.001),
)
def hierarchical_generalisation(
    recording: Recording,
    randomised: Recording | None,
    encoder: Encoder | None,
    *,
    train_corpus: Annotated[
        str, "Corpus to train on, by name or path; empty: the train split, or a part, of --corpus."
    ] = "",
    train_size: Annotated[int, "Maximum number of training sentences: the first of --train-corpus (0: all)."] = 0,
    train_format: TrainFormatOption = "",
    train_format_option: TrainFormatOptionsOption = "",
    l2_penalty: Annotated[
        float,
        PENALTY,
        "L2 penalty on the weights of the classifier: half of it times the squared norm of both classes' weights is "
        "added to the mean loss of n examples (scikit-learn: C = 2 / (penalty n)).",
    ] = 0.01,
    seed: Annotated[int, "Random seed (split of a corpus without splits, bootstrap)."] = 0,
) -> LayerCurve:
    """Proportion of sentences whose marked word a linear probe picks among all words, 0 to 1, by layer and split.

    The probe learns to tell the target (the main auxiliary, the subject noun, the n-th word) from all other words, each
    represented by its first token at one layer, and picks the word with the highest score. In the training and `test`
    data a positional rule ("the first auxiliary") works as well as a structural one; in the other splits only the
    structural rule does: `generalisation` (a relative clause on the subject), `compound`, `possessive`. A corpus
    without splits is split at random into training data and `test`. The paper trains one epoch with Adam; here the
    penalised objective is solved to convergence. Its released code also allows padding to be chosen.

    Baselines: a random word; the most frequent position in training; the first word whose form was a target in
    training, which is the positional rule if forms do not reveal the target; a classifier on word forms and positions
    without interactions; the untrained model, which can do no more than that. On the published main auxiliary set that
    classifier gets about four fifths of the generalisation split right: in training no target is the fourth or fifth
    word, where most first auxiliaries of that split are. In the published compounds, forms reveal the target: their
    first nouns are in no training sentence, and forms and positions, or the untrained model, get all of 400 right, as
    do the embeddings of a trained model. `generated:subject_noun` is similar (0.97; embeddings of `mini` 0.98) unless
    generated with `first=known`: then forms, untrained model and embeddings get 0 right, and the middle layers of
    `mini` up to 0.78. Intervals are over sentences.
    """
    split = CorpusSplit(
        train_corpus, train_size, train_format=train_format, train_format_option=train_format_option, seed=seed
    )
    train, test, unused = _train_test_sentences(recording, encoder, split)
    split_names = list(dict.fromkeys(sentence.split for sentence in test))
    shape = (recording["hidden"][0].shape[0],)

    def estimate_by_split(correct: FloatArray) -> dict[str, Estimates]:
        estimates: dict[str, Estimates] = {}
        for name in split_names:
            rows = [row for row, sentence in enumerate(test) if sentence.split == name]
            values = np.broadcast_to(correct[rows], (len(rows), *shape))
            estimates[f"accuracy ({name})"] = exact_where_unanimous(bootstrap_mean(values, seed=seed))
        return estimates

    choices = {MODEL_SERIES: _probe_choices(train, test, l2_penalty)}
    rules = _rule_baselines(train, test)
    measures = estimate_by_split(_correctness(test, choices[MODEL_SERIES]))
    baselines = {name: estimate_by_split(correct[:, None]) for name, correct in rules.items()}
    if randomised is not None:
        first, second, _ = _train_test_sentences(randomised, randomised_encoder(encoder), split)
        choices[UNTRAINED] = _probe_choices(first, second, l2_penalty)
        baselines[UNTRAINED] = estimate_by_split(_correctness(second, choices[UNTRAINED]))
    curve = LayerCurve(
        measures=measures,
        baselines=baselines,
        units=dict.fromkeys(measures, "proportion of sentences, 0 to 1"),
        sample={"training sentences": len(train), "test sentences": len(test), **unused},
    )
    return curve.with_answers(lambda: _answers(test, choices, rules))


def _answers(
    test: Sequence[_TargetSentence], choices: Mapping[str, IntArray], rules: Mapping[str, FloatArray]
) -> Iterator[Answer]:
    """The word that the probe of each layer picks, and the probability that a rule picks the target."""
    for row, sentence in enumerate(test):
        item = {"item": sentence.item, "text": " ".join(sentence.words), "split": sentence.split}
        gold = {"gold": sentence.words[sentence.target]}
        for series, by_layer in choices.items():
            for layer, word in enumerate(by_layer[row].tolist()):
                answer = {"prediction": sentence.words[word], "correct": float(word == sentence.target)}
                yield item | {"series": series, "layer": layer} | gold | answer
        for series, p_correct in rules.items():
            answer = {"prediction": None, "correct": float(p_correct[row])}
            yield item | {"series": series, "layer": None} | gold | answer


def example_split(example: Example) -> str:
    """The split of a generated example or of one from Open Sesame's files; empty if there is none."""
    file = example.source.rpartition(".")[2]
    return example.factors.get("split") or FILE_SPLITS.get(file, file)


def _train_test_sentences(
    recording: Recording, encoder: Encoder | None, split: TrainTestSplit
) -> tuple[list[_TargetSentence], list[_TargetSentence], dict[str, int]]:
    """Training and test sentences, sorted, and training sentences left out."""
    unused: dict[str, int] = {}
    split_names = {example_split(example) for example in recording.corpus}
    if split.train_corpus or TRAIN not in split_names or len(split_names) == 1:
        data = split.split(recording, encoder, ("hidden",), analysis_name=NAME, annotations=("marked_words",))
        train, test = _target_sentences(*data.train, TRAIN), _target_sentences(*data.test, TEST)
        unused = data.sample
    else:
        sentences = _target_sentences(recording, range(len(recording)), TRAIN)
        train = [sentence for sentence in sentences if sentence.split == TRAIN]
        test = [sentence for sentence in sentences if sentence.split != TRAIN]
    if not train or not test:
        raise Refusal(
            f"{recording.corpus.name} has {len(train)} training and {len(test)} test sentences with one marked target",
            "both",
            "Use generated:main_auxiliary, generated:subject_noun or generated:nth_token, or --train-corpus",
        )
    train.sort(key=lambda sentence: (sentence.split, *sentence.words))
    test.sort(key=lambda sentence: (sentence.split, *sentence.words))
    return train, test, unused


def _target_sentences(recording: Recording, indices: Sequence[int], default_split: str) -> list[_TargetSentence]:
    """The sentences with one target; those without a split, or with only the train split, get the default one."""
    has_splits = len({example_split(example) for example in recording.corpus}) > 1
    sentences: list[_TargetSentence] = []
    for index in indices:
        recorded_input = recording.inputs[index]
        targets = recorded_input.text.segments[0].marked_words.get("target", ())
        first_tokens = {word: tokens[0] for word, tokens in sorted(recorded_input.tokens.positions_by_word().items())}
        if len(targets) != 1 or targets[0] not in first_tokens or recorded_input.window_index:
            continue
        name = example_split(recording.corpus[recorded_input.example_index]) or default_split
        if name == TRAIN and not has_splits:
            name = default_split
        states = np.asarray(recording["hidden"][index])[:, list(first_tokens.values())]
        words = tuple(recorded_input.text.words[word].lower() for word in first_tokens)
        item = recorded_input.text.segments[0].id or str(recorded_input.example_index + 1)
        sentences.append(_TargetSentence(item, name, words, list(first_tokens).index(targets[0]), states))
    return sentences


def _probe_choices(train: Sequence[_TargetSentence], test: Sequence[_TargetSentence], l2_penalty: float) -> IntArray:
    """(test sentence, layer) the index of the word that the probe of the layer picks."""
    features = np.concatenate([sentence.states for sentence in train], 1)
    labels = _is_target(train).astype(np.int64)
    config = ClassifierConfig(l2_penalties=(l2_penalty,), max_iterations=300, tolerance=1e-5)
    probes = fit_classifiers(features, labels[None], 2, config)
    log_probs = probes.predict_log_proba(np.concatenate([sentence.states for sentence in test], 1))[:, 0]
    ends = np.cumsum([len(sentence.words) for sentence in test])
    scores = np.split(log_probs[..., 1] - log_probs[..., 0], ends[:-1], axis=1)
    return np.stack([by_layer.argmax(1) for by_layer in scores])


def _correctness(test: Sequence[_TargetSentence], choices: IntArray) -> FloatArray:
    """(test sentence, layer) 1 if the target is picked, else 0."""
    return (choices == np.array([sentence.target for sentence in test])[:, None]).astype(np.float64)


def _is_target(sentences: Sequence[_TargetSentence]) -> Array:
    """(word of all sentences,) whether it is the target of its sentence."""
    return np.concatenate([np.arange(len(sentence.words)) == sentence.target for sentence in sentences])


def _rule_baselines(train: Sequence[_TargetSentence], test: Sequence[_TargetSentence]) -> dict[str, FloatArray]:
    """(test sentence,) probability that a rule without a model picks the target."""
    ((position, _),) = Counter(sentence.target for sentence in train).most_common(1)
    known_targets = {sentence.words[sentence.target] for sentence in train}

    def first_known_target(sentence: _TargetSentence) -> float:
        known = [index for index, word in enumerate(sentence.words) if word in known_targets]
        return float(known[0] == sentence.target) if known else 1 / len(sentence.words)

    return {
        "word form and position": _additive_baseline(train, test),
        "chance": np.array([1 / len(sentence.words) for sentence in test]),
        "usual position": np.array([float(sentence.target == position) for sentence in test]),
        "first known target word": np.array([first_known_target(sentence) for sentence in test]),
    }


def _additive_baseline(train: Sequence[_TargetSentence], test: Sequence[_TargetSentence]) -> FloatArray:
    """(test sentence,) 1 if a classifier on word form and position picks the target, else 0."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression

    def word_features(sentence: _TargetSentence) -> list[dict[str, int]]:
        return [{f"form {word}": 1, f"position {position}": 1} for position, word in enumerate(sentence.words)]

    vectoriser = DictVectorizer()
    features = vectoriser.fit_transform([features for sentence in train for features in word_features(sentence)])
    classifier = LogisticRegression(C=ADDITIVE_INVERSE_PENALTY, max_iter=1000).fit(features, _is_target(train))

    def is_correct(sentence: _TargetSentence) -> float:
        scores = np.asarray(classifier.decision_function(vectoriser.transform(word_features(sentence))))
        return float(scores.argmax() == sentence.target)

    return np.array([is_correct(sentence) for sentence in test])
