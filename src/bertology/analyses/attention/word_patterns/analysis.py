"""Word patterns: next, previous, related and predictive words, delimiters (Vig 2019)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np

from bertology.analyses.attention.word_patterns.targets import (
    CONTENT_PATTERNS,
    DELIMITERS,
    NEXT_WORD,
    PATTERNS,
    PREVIOUS_WORD,
    pattern_masks,
    pattern_site,
)
from bertology.analyses.declaration import Sites, analysis
from bertology.analyses.head_grids import UNIFORM_ATTENTION, UNTRAINED_MODEL, uniform_baseline
from bertology.analyses.head_selection.selection import SIGNIFICANCE_LEVEL, head_attributes
from bertology.analyses.label_criteria import CONTENT_SHARE, DELIMITER_SHARE, NEIGHBOUR_SHARE, HeadLabelling
from bertology.analyses.word_relations import WordRelations
from bertology.arrays import FloatArray
from bertology.estimates.estimate import Estimates
from bertology.estimates.hypothesis_tests import holm, paired_test
from bertology.estimates.resampling import bootstrap_mean
from bertology.number_ranges import PROPORTION
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.illustrations import Examples, HighlightedSentence
from bertology.results.shapes import Head, HeadGrid, Table
from bertology.statistics.batch_features import SpecialTokens

WordPatternsView = Literal["heads", "labels", "examples"]

CRITERIA = {
    NEXT_WORD: NEIGHBOUR_SHARE,
    PREVIOUS_WORD: NEIGHBOUR_SHARE,
    **dict.fromkeys(CONTENT_PATTERNS, CONTENT_SHARE),
    DELIMITERS: DELIMITER_SHARE,
}
MIN_SOURCES = 3
SAME_DISTANCE = "same-distance tokens"
SCORE, P_VALUE = "score", "p (Holm)"
UNIT = "share of attention, 0 to 1"


@dataclass(frozen=True)
class _PatternScores:
    """(sentence, layer, head, pattern) scores of the model and of each baseline; NaN if undefined."""

    scores: FloatArray
    baselines: Mapping[str, FloatArray]


def _sites(options: Mapping[str, Any]) -> Sites:
    relations = WordRelations(options["word_vectors"], options["min_cosine"], options["collocation_corpus"])
    return (pattern_site(relations, options["include_self"]),)


@analysis(
    question="Which heads attend to the next, previous, same or related word, to predictive words, or to delimiters?",
    special_tokens="Special tokens: excluded as sources, and as targets except of `delimiters`; --special-tokens "
    "exclude also removes attention to them from the denominator.",
    citations=("vig2019deconstructing",),
    sites=_sites,
    version=4,
    labels_heads=HeadLabelling(rank=5, criteria=CRITERIA),
)
def word_patterns(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        WordPatternsView,
        "`heads` (scores of every head), `labels` (heads that show a pattern) or `examples` (sentences for and against "
        "each label).",
    ] = "heads",
    special_tokens: Annotated[
        SpecialTokens,
        "`include` attention to special tokens in the denominator, or `exclude` it (does not affect `delimiters`).",
    ] = "include",
    include_self: Annotated[bool, "Count attention to the token itself as attention to a related word."] = False,
    relations: WordRelations = WordRelations(),
    min_score: Annotated[
        float,
        PROPORTION,
        "Minimum score for a head to be listed with --show labels (0: 0.5 for next and previous word, 0.6 for "
        "delimiters, 0.3 otherwise).",
    ] = 0.0,
    seed: Annotated[int, "Random seed (bootstrap)."] = 0,
) -> HeadGrid | Table | Examples:
    """Share of attention to the targets of each pattern: 0 none, 1 all; averaged over tokens that have a target.

    - `next word`, `previous word`: all tokens of the word after or before, in the same sentence.
    - `related words`: other words of the sentence with the same lemma (the same lower-cased form if lemmas are not
      annotated), or with similar vectors if --word-vectors is given. `related words (other sentence)`: the same in the
      other sentence of a pair.
    - `predictive words`: other tokens of the same word, other words of the same expression (annotated as fixed, flat,
      compound or goeswith), and collocates if --collocation-corpus is given.
    - `delimiters`: [CLS] and [SEP].

    Sources are non-special tokens. All sentences have equal weight; sentences without a token that has such a target
    are skipped. `same-distance tokens` is the head's attention to other pairs of the same sentence (or of the two
    sentences) at the same distances: a head that depends only on distance scores no better. With --show
    labels a head is listed if its score is at least --min-score and twice the highest baseline, its interval lies above
    those of all baselines, and the difference passes a one-sided paired test over sentences at 0.05, with Holm's
    correction for all heads and patterns. Half of the attention on a neighbour is the practice of Clark et al.; Vig
    shows figures of single heads and gives no definitions, so the others are ours.
    """
    scores = _pattern_scores(recording, randomised, pattern_site(relations, include_self), special_tokens)
    if show == "heads":
        return _build_grid(scores, seed)
    labels = _label_heads(scores, min_score, seed)
    examples = _PatternExamples(recording, scores, relations, include_self)
    if show == "examples":
        return Examples(examples=tuple(example for label in labels for example in examples.best_and_worst(label)))
    return _build_table(scores, labels, examples, seed)


def _pattern_scores(
    recording: Recording, randomised: Recording | None, site: ReducedSite, special_tokens: SpecialTokens
) -> _PatternScores:
    scores, controls = _scores_and_controls(recording.stack(site).astype(np.float64), special_tokens)
    uniform_values = uniform_baseline(recording, site).astype(np.float64)[:, :, None]
    uniform, _ = _scores_and_controls(uniform_values, special_tokens)
    baselines = {UNIFORM_ATTENTION: np.broadcast_to(uniform, scores.shape), SAME_DISTANCE: controls}
    if randomised is not None:
        values = randomised.stack(site).astype(np.float64)
        baselines[UNTRAINED_MODEL], _ = _scores_and_controls(values, special_tokens)
    return _PatternScores(scores, baselines)


def _scores_and_controls(values: FloatArray, special_tokens: SpecialTokens) -> tuple[FloatArray, FloatArray]:
    """(..., pattern) scores, and scores of same-distance tokens, which are NaN for patterns of position."""
    n_patterns, n_content = len(PATTERNS), len(CONTENT_PATTERNS)
    scores, content_controls, mass = np.split(values, [n_patterns, n_patterns + n_content], axis=-1)
    controls = np.full_like(scores, np.nan)
    controls[..., 2:5] = content_controls
    if special_tokens == "include":
        return scores, controls
    total = np.concatenate([mass, np.full_like(scores[..., :1], np.nan)], axis=-1)
    scores, controls = (
        np.divide(part, total, out=np.full_like(part, np.nan), where=total > 0) for part in (scores, controls)
    )
    return scores, controls


def _build_grid(scores: _PatternScores, seed: int) -> HeadGrid:
    measures = bootstrap_mean(scores.scores, seed=seed).by_name(PATTERNS)
    measured = [name for name in PATTERNS if measures[name].n.any()] or list(PATTERNS)
    baselines: dict[str, dict[str, Estimates]] = {}
    for baseline, values in scores.baselines.items():
        estimates = bootstrap_mean(values, seed=seed).by_name(PATTERNS)
        patterns = CONTENT_PATTERNS if baseline == SAME_DISTANCE else PATTERNS
        baselines[baseline] = {name: estimates[name] for name in measured if name in patterns}
    return HeadGrid(
        measures={name: measures[name] for name in measured},
        baselines={name: estimates for name, estimates in baselines.items() if estimates},
        units=dict.fromkeys(measured, UNIT),
    )


@dataclass(frozen=True)
class _PatternLabel:
    """A head that shows a pattern, with the p value after correction."""

    head: Head
    pattern: int
    p_value: float

    def __str__(self) -> str:
        return f"{self.head} {PATTERNS[self.pattern]}"


def _label_heads(scores: _PatternScores, min_score: float, seed: int) -> list[_PatternLabel]:
    """The heads that exceed every baseline, the strongest first within a pattern."""
    estimates = bootstrap_mean(scores.scores, seed=seed)
    # A difference can be significant and still tiny: the intervals must be disjoint as well.
    baselines = [bootstrap_mean(values, seed=seed) for values in scores.baselines.values()]
    is_clear = ~(estimates.low <= np.stack([baseline.high for baseline in baselines])).any(0)
    p_values = [paired_test(scores.scores - values) for values in scores.baselines.values()]
    is_tested = np.isfinite(p_values).any(0)
    largest = np.where(is_tested, np.max(np.where(np.isfinite(p_values), p_values, -1.0), axis=0), np.nan)
    adjusted = holm(largest)
    min_scores = np.array([min_score or CRITERIA[name].min_score for name in PATTERNS])
    min_ratios = np.array([CRITERIA[name].min_ratio for name in PATTERNS])
    highest = np.nan_to_num([baseline.value for baseline in baselines]).max(0)
    is_strong = estimates.value >= np.maximum(min_scores, min_ratios * highest)
    selected = np.argwhere(is_clear & is_strong & (adjusted < SIGNIFICANCE_LEVEL))
    labels = [
        _PatternLabel(Head(int(layer), int(head)), int(pattern), float(adjusted[layer, head, pattern]))
        for layer, head, pattern in selected
    ]
    return sorted(labels, key=lambda label: (label.pattern, -estimates.value[(*label.head, label.pattern)]))


class _PatternExamples:
    """The sentences in which a labelled head shows its pattern most and least."""

    def __init__(
        self, recording: Recording, scores: _PatternScores, relations: WordRelations, include_self: bool
    ) -> None:
        self._recording = recording
        self._scores = scores
        self._sources = [
            {name: mask.any(1) for name, mask in pattern_masks(recorded_input, relations, include_self).items()}
            for recorded_input in recording.inputs
        ]

    def best_and_worst(self, label: _PatternLabel) -> tuple[HighlightedSentence, HighlightedSentence]:
        """The best example and the counterexample, if possible with at least three sources."""
        best, worst = self._indices(label)
        return self._example(label, best, "best example"), self._example(label, worst, "counterexample")

    def note(self, label: _PatternLabel) -> str:
        """Both examples in one line."""
        names = zip(("best example", "counterexample"), self.best_and_worst(label), strict=True)
        return " | ".join(f"{name} ({example.score:.2f}): {' '.join(example.words)}" for name, example in names)

    def _indices(self, label: _PatternLabel) -> tuple[int, int]:
        values = self._scores.scores[(slice(None), *label.head, label.pattern)]
        n_sources = np.array([sources[PATTERNS[label.pattern]].sum() for sources in self._sources])
        is_usable = np.isfinite(values)
        has_enough = is_usable & (n_sources >= MIN_SOURCES)
        candidates = np.flatnonzero(has_enough if has_enough.any() else is_usable)
        best, worst = values[candidates].argmax(), values[candidates].argmin()
        return int(candidates[best]), int(candidates[worst])

    def _example(self, label: _PatternLabel, index: int, description: str) -> HighlightedSentence:
        recorded_input = self._recording.inputs[index]
        words = recorded_input.tokens.word_ids[self._sources[index][PATTERNS[label.pattern]]]
        return HighlightedSentence(
            words=recorded_input.text.words,
            highlights={"sources": tuple(sorted({int(word) for word in words if word >= 0}))},
            score=float(self._scores.scores[(index, *label.head, label.pattern)]),
            caption=f"{label}: {description}",
        )


def _build_table(
    scores: _PatternScores, labels: Sequence[_PatternLabel], examples: _PatternExamples, seed: int
) -> Table:
    def estimate(values: FloatArray) -> Estimates:
        columns = [values[(slice(None), *label.head, label.pattern)] for label in labels]
        selected = np.stack(columns, axis=1) if columns else np.empty((len(values), 0))
        return bootstrap_mean(selected, seed=seed)

    p_values = np.array([label.p_value for label in labels])
    baselines = {name: {SCORE: estimate(values)} for name, values in scores.baselines.items()}
    baselines["significance level"] = {P_VALUE: Estimates.exact(np.full(len(labels), SIGNIFICANCE_LEVEL))}
    return Table(
        measures={SCORE: estimate(scores.scores), P_VALUE: Estimates.exact(p_values, len(scores.scores))},
        baselines=baselines,
        units={SCORE: UNIT, P_VALUE: "probability, 0 to 1"},
        row_names=tuple(map(str, labels)),
        attributes={
            **head_attributes([label.head for label in labels]),
            "function": tuple(PATTERNS[label.pattern] for label in labels),
        },
        notes={str(label): examples.note(label) for label in labels},
    )
