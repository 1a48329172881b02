"""Gain from contextual features on complex, ambiguous and rare words or texts (arora2020)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Annotated

import numpy as np

from bertology.analyses.cache import AnalysisCache
from bertology.analyses.declaration import analysis
from bertology.analyses.evaluation.answers import example_item
from bertology.analyses.features.context_gain.property_halves import (
    HALF_NAMES,
    PROPERTIES,
    ScoredUnits,
    describe_unit,
    is_correct,
    scored_units,
    split_scores,
)
from bertology.analyses.frozen_features.dataset import DatasetOptions, build_dataset
from bertology.analyses.frozen_features.downstream_models import ClassifierOption, parse_classifiers
from bertology.analyses.frozen_features.extractors import DEFAULT_FEATURES, FeaturesOption, parse_features
from bertology.analyses.frozen_features.predictions import extract_all, predict_all
from bertology.arrays import FloatArray
from bertology.corpus.corpus import Corpus
from bertology.encoder.encoder import Encoder
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.lazy import torch
from bertology.numerics.rank_correlation import spearman
from bertology.results.answers import Answer
from bertology.results.measured_shape import MODEL_SERIES, change_measure
from bertology.results.shapes import AttributeValue, Table

NAME = "features/context_gain"
RANDOM_HALVES, ZERO = "random halves", "zero"


@analysis(
    question="Do structurally complex, ambiguous and rare words gain more from contextual features than other words?",
    special_tokens="Special tokens: in the model's input, not analysed; a word is the mean of its tokens.",
    citations=("arora2020",),
    version=5,
    answers=True,
)
def context_gain(
    encoder: Encoder,
    corpus: Corpus,
    cache: AnalysisCache,
    *,
    features: FeaturesOption = DEFAULT_FEATURES,
    classifier: ClassifierOption = "linear",
    max_entity_words: Annotated[int, "Evaluate only entities of at most this many words (0: all)."] = 0,
    options: DatasetOptions = DatasetOptions(),
) -> Table:
    """Proportion of entities, words or texts predicted correctly, 0 to 1, and differences between features, -1 to 1.

    Each test unit has three properties, computed without a model. Structural complexity: the number of words of an
    entity; for a text, the mean distance between a word and its governor (missing without trees); for other tagged
    words, the distance to the governor. Ambiguity: the number of labels of a word in the training data, mean over the
    words of an entity; for a text, the entropy in bits of the mean of p(class | word). Rarity: 1 / (1 + training
    count), mean over the words of an entity; for a text, the proportion of words that are not in the training data.
    Units are split at the median of each property (ties go where the halves are more even).

    `A - B` is the gain of feature A over B. Arora et al. find a larger gain of BERT in the upper halves: rows `upper -
    lower half` above 0. Entities are scored by recall (boundaries and type), as wrong predictions have no properties;
    the paper does not say how it scores halves. Baselines: for differences, random halves (the gain over all units, and
    no difference); for scores, the majority class, for token tasks also the most frequent label of the word; for
    changes, zero. `change of (A - B) from half the training data` is what the second half of the training texts of each
    seed adds to the gain: one that still changes says little about the features. Intervals resample texts and seeds.
    The attributes give the distribution of each property and its rank correlations: long entities contain frequent
    words, so look at rarity with --max-entity-words 1 too.
    """
    dataset = build_dataset(corpus, options, analysis_name=NAME)
    extractors = parse_features(features, encoder)
    if len(extractors) < 2:
        raise Refusal(f"--features was given {features!r}", "two or more, to compare", "For example model,static")
    units = scored_units(dataset, max_entity_words)
    if not units.gold:
        raise Refusal(
            f"{NAME}: none of the {len(dataset.test)} test texts has an entity",
            "at least one entity",
            "Use a larger corpus, or leave --max-entity-words out",
        )
    (classifier_name, *_) = parse_classifiers(classifier, dataset.task.name, "--classifier")
    vectors = extract_all(dataset, extractors, cache)
    half_predictions, predictions = (
        predict_all(dataset, vectors, classifier_name, cache, train_size=size)
        for size in (dataset.half_train_size, dataset.max_train_size)
    )
    baseline_predictions = dataset.task.baseline_predictions(dataset.train, dataset.test)
    scores = [is_correct(dataset, units, predicted) for predicted in predictions]
    scores += [
        is_correct(dataset, units, [predicted] * len(dataset.seed_splits))
        for predicted in baseline_predictions.values()
    ]
    gains = [
        correct - is_correct(dataset, units, predicted)
        for correct, predicted in zip(scores[: len(extractors)], half_predictions, strict=True)
    ]

    def split_by_all(scores: Sequence[FloatArray], lowest: float = 0.0) -> tuple[Estimates, Estimates]:
        """The means on the halves by each property, and what random halves would give."""
        by_property = [
            split_scores(units, scores, index, seed=options.seed, lowest=lowest) for index in range(len(PROPERTIES))
        ]
        return Estimates.concatenate([by_half for by_half, _ in by_property]), Estimates.concatenate(
            [random for _, random in by_property]
        )

    halves, random_halves = split_by_all(scores)
    changes, _ = split_by_all(gains, lowest=-1.0)
    names = [extractor.name for extractor in extractors]
    measures, baselines = _measure_columns(names, list(baseline_predictions), halves, random_halves)
    change_names = [change_measure(f"{first} - {second}") for first, second in combinations(names, 2)]
    measures |= {name: changes[:, column] for column, name in enumerate(change_names, len(names))}
    baselines[ZERO] = dict.fromkeys(change_names, Estimates.exact(np.zeros(len(changes.value)), len(dataset.test)))
    plural = "entities" if units.unit_name == "entity" else f"{units.unit_name}s"
    table = Table(
        row_names=tuple(f"{name}: {half}" for name in PROPERTIES for half in HALF_NAMES),
        measures=measures,
        baselines=baselines,
        units={
            name: f"proportion of {plural}, 0 to 1" if name in names else "difference of proportions, -1 to 1"
            for name in measures
        },
        sample=dataset.sample | {f"test {plural}": len(units.gold)},
        attributes=_attributes(units),
    )

    def answers() -> Iterator[Answer]:
        """Whether each test unit is predicted correctly, by feature or baseline and seed, with its properties."""
        numbers = Counter[int]()
        for unit, text in enumerate(units.text_index.tolist()):
            numbers[text] += 1
            example = dataset.test[text]
            item = example_item(example, text)
            item |= {"item": f"{item['item']}:{numbers[text]}", "gold": describe_unit(example, units.gold[unit])}
            properties = zip(PROPERTIES, units.properties[unit].tolist(), strict=True)
            item |= {name: None if np.isnan(value) else value for name, value in properties}
            for name, correct in zip([*names, *baseline_predictions], scores, strict=True):
                is_model = name in names
                condition = {"series": MODEL_SERIES if is_model else name, "feature": name if is_model else None}
                for split, is_right in zip(dataset.seed_splits, correct[:, unit].tolist(), strict=True):
                    yield item | condition | {"seed": split.seed, "correct": is_right}

    return table.with_answers(answers)


def _measure_columns(
    names: list[str], baseline_names: list[str], estimates: Estimates, random_halves: Estimates
) -> tuple[dict[str, Estimates], dict[str, dict[str, Estimates]]]:
    """Scores of features with the baselines' scores, and differences of two features with those on random halves."""
    all_names = [*names, *baseline_names]
    columns = {name: column for column, name in enumerate(all_names)}
    pairs = list(combinations(all_names, 2))
    differences = {f"{a} - {b}": len(all_names) + k for k, (a, b) in enumerate(pairs) if a in names and b in names}
    measures: dict[str, Estimates] = {name: estimates[:, columns[name]] for name in names}
    measures |= {name: estimates[:, column] for name, column in differences.items()}
    baselines: dict[str, dict[str, Estimates]] = {}
    for baseline in baseline_names:
        scores: Estimates = estimates[:, columns[baseline]]
        baselines[baseline] = dict.fromkeys(names, scores)
    baselines[RANDOM_HALVES] = {name: random_halves[:, column] for name, column in differences.items()}
    return measures, baselines


def _attributes(units: ScoredUnits) -> Mapping[str, tuple[AttributeValue, ...]]:
    """The distribution of each property over the units, and its Spearman correlations, the same in all its rows."""
    by_property: list[dict[str, AttributeValue]] = []
    for index in range(len(PROPERTIES)):
        values = units.properties[:, index]
        defined = values[np.isfinite(values)]
        facts: dict[str, AttributeValue] = {"n_defined": len(defined), "n_undefined": len(values) - len(defined)}
        if len(defined):
            minimum, median, maximum = defined.min(), np.median(defined), defined.max()
            facts |= {"minimum": float(minimum), "median": float(median), "maximum": float(maximum)}
        for other, name in enumerate(PROPERTIES):
            if other != index:
                facts[f"Spearman with {name}"] = _correlation(units, index, other)
        by_property.append(facts)
    names = dict.fromkeys(name for facts in by_property for name in facts)
    return {name: tuple(facts.get(name) for facts in by_property for _ in HALF_NAMES) for name in names}


def _correlation(units: ScoredUnits, index: int, other_index: int) -> float | None:
    first, second = torch.from_numpy(units.properties[:, [index, other_index]].T.copy())
    correlation = float(spearman(first, second, first.isfinite() & second.isfinite()))
    return None if np.isnan(correlation) else correlation
