"""Coreference: do heads attend from a mention to its antecedent (Clark et al. 2019, section 4.3)?

The gender of pronouns and the stereotypes of WinoBias (Zhao et al. 2018) are compared for the same head.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import compress
from typing import Annotated

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import UNTRAINED_MODEL
from bertology.analyses.head_selection.gold_links import (
    CHANCE,
    NO_TARGET,
    GoldLink,
    LinkBaseline,
    LinkCounts,
    count_links,
)
from bertology.analyses.head_selection.selection import (
    BEST_ACCURACY,
    HELD_OUT_ACCURACY,
    append_row,
    candidate_head,
    selection_table,
)
from bertology.analyses.heads.coreference.antecedents import (
    AntecedentQuery,
    CandidateSet,
    antecedent_queries,
    first_unseen_words,
    strongest_candidate_site,
)
from bertology.analyses.heads.coreference.mentions import ANTECEDENT_RULES, AntecedentRule, Mention, extract_mentions
from bertology.analyses.label_criteria import OTHER, WORD_CHOICE, HeadLabelling
from bertology.arrays import Array, BoolArray, FloatArray
from bertology.encoder.token_batch import RecordedInput
from bertology.errors import Refusal
from bertology.estimates.cross_fitting import combine_splits, cross_fit, random_halves
from bertology.estimates.estimate import Estimate
from bertology.estimates.resampling import percentile_interval, ratio, resampled_ratios
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.shapes import AttributeValue, Table

ALL_MENTIONS = "all mentions"
LABELS = (ALL_MENTIONS, "pronoun", "proper name", "common noun")
NEAREST_MENTION, RULE_BASED = "nearest mention", "rule-based"
GENDERS = ("masculine", "feminine")
WINOBIAS = re.compile(r"(?P<fits>pro|anti)_stereotyped_type(?P<type>[12])\b.*")
"""The name of a WinoBias file. In type 1 either occupation may be meant, in type 2 syntax allows only one."""
GAPS = (
    *((f"type {kind} pro-stereotyped", f"type {kind} anti-stereotyped", f"type {kind}") for kind in "12"),
    (*GENDERS, "pronoun"),
)
"""Two kinds of pronouns, and the label whose head is evaluated on both."""


class _CoreferenceLinks:
    """The links of a recording: each mention once, in the first window that contains it."""

    def __init__(self, recording: Recording, candidates: CandidateSet) -> None:
        self._examples = recording.corpus.examples
        self._candidates = candidates
        self._queries: dict[tuple[int, int, int], dict[int, AntecedentQuery]] = {}
        for recorded_input, first_word in zip(recording.inputs, first_unseen_words(recording.inputs), strict=True):
            queries = antecedent_queries(recorded_input, candidates)
            self._queries[_input_key(recorded_input)] = {q.source: q for q in queries if q.source >= first_word}

    def links(self, recorded_input: RecordedInput) -> list[GoldLink]:
        """One link per mention, to the head words of its antecedents."""
        return [
            GoldLink(
                source,
                tuple(compress(query.candidate_words, query.is_antecedent)),
                self._labels(recorded_input, query),
                source,
            )
            for source, query in self._queries[_input_key(recorded_input)].items()
        ]

    def _labels(self, recorded_input: RecordedInput, query: AntecedentQuery) -> tuple[str, ...]:
        labels = [ALL_MENTIONS, query.mention.mention_type]
        if query.mention.mention_type == "pronoun":
            labels += [gender for gender in GENDERS if gender == query.mention.features[1]]
            match = WINOBIAS.match(self._examples[recorded_input.example_index].source)
            if match:
                labels += [f"type {match['type']}", f"type {match['type']} {match['fits']}-stereotyped"]
        return tuple(labels)

    def rule_baseline(self, rule: AntecedentRule) -> LinkBaseline:
        """A rule that chooses one of the candidate mentions."""

        def p_correct(recorded_input: RecordedInput, links: Sequence[GoldLink]) -> Array:
            queries = self._queries[_input_key(recorded_input)]
            return np.array([[_is_correct(queries[link.source], rule) for link in links]], np.float64)

        def choose(recorded_input: RecordedInput, links: Sequence[GoldLink]) -> Array:
            queries = self._queries[_input_key(recorded_input)]
            return np.array([[_chosen_word(queries[link.source], rule) for link in links]])

        return LinkBaseline(("",), p_correct, choose)

    def chance_baseline(self) -> LinkBaseline:
        """A random candidate."""

        def p_correct(recorded_input: RecordedInput, links: Sequence[GoldLink]) -> Array:
            queries = self._queries[_input_key(recorded_input)]
            n_others = recorded_input.tokens.n_words - 1
            n_candidates = [
                n_others if self._candidates == "all-words" else len(queries[link.source].candidate_words)
                for link in links
            ]
            return np.array([[len(link.targets) / n for link, n in zip(links, n_candidates, strict=True)]])

        return LinkBaseline(("",), p_correct)


def _input_key(recorded_input: RecordedInput) -> tuple[int, int, int]:
    return recorded_input.example_index, recorded_input.input_index, recorded_input.window_index


def _is_correct(query: AntecedentQuery, rule: AntecedentRule) -> bool:
    predicted = rule(query.mention, query.candidates)
    return predicted is not None and predicted.cluster == query.mention.cluster


def _chosen_word(query: AntecedentQuery, rule: AntecedentRule) -> int:
    """The head word of the mention that a rule chooses."""
    predicted = rule(query.mention, query.candidates)
    return NO_TARGET if predicted is None else query.candidate_words[query.candidates.index(predicted)]


@analysis(
    question="Which heads attend from a mention to its antecedent?",
    special_tokens="Special tokens: excluded as sources and targets.",
    citations=("clark2019", "zhao2018", "webster2018"),
    sites=lambda options: (strongest_candidate_site(options["candidates"]),),
    annotations=("mentions",),
    version=3,
    answers=True,
    labels_heads=HeadLabelling(rank=3, criteria={OTHER: WORD_CHOICE}, ignored_baselines=(RULE_BASED,)),
)
def coreference(
    recording: Recording,
    randomised: Recording | None,
    *,
    candidates: Annotated[
        CandidateSet,
        "Words a head may choose as antecedent: head words of `preceding` mentions, of `all-mentions` (for GAP, where "
        "names may follow the pronoun), or `all-words`.",
    ] = "preceding",
    min_examples: Annotated[int, "Minimum number of examples for a type of mention to be scored."] = 20,
    seed: Annotated[int, "Random seed (splits into halves, bootstrap)."] = 0,
) -> Table:
    """Proportion of mentions whose head word attends most to the head word of an antecedent: 0 none, 1 all.

    The mentions are those that corefer with an earlier one in the model's input, by type: pronoun, proper name, common
    noun. Clark et al. do not say which candidates they compare; the default is the head words of all earlier mentions.
    The head word is the root of the mention in the dependency tree, or found by rules if there is no tree. Baselines
    are the nearest mention, the nearest with the same head word, a rule-based system of four sieves, chance, and the
    best head of the untrained model. Heads are selected on one half of the texts and evaluated on the other, over many
    random halves; see heads/dependency.

    Pronouns are also scored by gender, and in WinoBias by whether they fit the stereotype of the occupation (types 1
    and 2 separately: in type 2 the nearest occupation is always the antecedent). Rows with a difference compare two
    accuracies of one head: the one selected for both kinds of pronouns, or the one with the `largest gap`; 0 means that
    the head treats both alike. The other occupation, which WinoBias does not mark, is a candidate as well.

    Sentences are separate texts unless the corpus is read by documents (--format-option unit=document). Antecedents
    outside the model's input, because of --overflow or because they are in another sentence, cannot be found; they
    are counted below the table. In overlapping windows each mention is used once, in the window with most preceding
    text.
    """
    site = strongest_candidate_site(candidates)
    counts = _count_links(recording, site, candidates, LABELS)
    if not counts.total.any():
        raise Refusal(
            f"No mention of {recording.corpus.name} has an antecedent in the model's input",
            "inputs with coreferent mentions",
            "Read the corpus by documents with --format-option unit=document, and --overflow window for long ones",
        )
    untrained = None if randomised is None else _count_links(randomised, site, candidates, counts.labels)
    table = selection_table(counts, untrained, baseline=NEAREST_MENTION, min_examples=min_examples, seed=seed)
    table = table.model_copy(update={"sample": _sample(recording, counts, candidates)})
    return _with_gap_rows(table, counts, untrained, min_examples, seed)


def _count_links(
    recording: Recording, site: ReducedSite, candidates: CandidateSet, labels: Sequence[str]
) -> LinkCounts:
    links = _CoreferenceLinks(recording, candidates)
    baselines = {name: links.rule_baseline(rule) for name, rule in ANTECEDENT_RULES.items()}
    baselines[CHANCE] = links.chance_baseline()
    return count_links(recording, site, links.links, directions=("",), labels=labels, baselines=baselines)


def _sample(recording: Recording, counts: LinkCounts, candidates: CandidateSet) -> dict[str, int]:
    """The number of anaphoric mentions, and of those whose antecedents are not in the model's input."""
    cluster_sizes: dict[tuple[str, int, str], int] = {}
    total = 0
    for index, example in enumerate(recording.corpus):
        for segment in example.segments:
            for mention in extract_mentions(segment):
                cluster = (segment.document, -1 if segment.document else index, mention.cluster)
                cluster_sizes[cluster] = cluster_sizes.get(cluster, 0) + 1
                total += cluster_sizes[cluster] > 1
    if candidates == "all-mentions":
        total += _count_cataphora(recording)
    skipped = total - int(counts.total[:, 0].sum())
    return {"anaphoric mentions": total, "mentions without an antecedent in the model's input": skipped}


def _count_cataphora(recording: Recording) -> int:
    """The number of pronouns that precede all other mentions of their cluster."""
    n_cataphora = 0
    for segment in (segment for example in recording.corpus for segment in example.segments):
        mentions_by_cluster: dict[str, list[Mention]] = {}
        for mention in extract_mentions(segment):
            mentions_by_cluster.setdefault(mention.cluster, []).append(mention)
        n_cataphora += sum(
            first.mention_type == "pronoun" and len(others) > 0 for first, *others in mentions_by_cluster.values()
        )
    return n_cataphora


def _with_gap_rows(
    table: Table, counts: LinkCounts, randomised: LinkCounts | None, min_examples: int, seed: int
) -> Table:
    """The table with rows for the differences between two kinds of pronouns."""
    for first, second, both in GAPS:
        if first not in counts.labels or second not in counts.labels:
            continue
        labels = [counts.labels.index(name) for name in (first, second, both)]
        if (counts.total[:, labels].sum(0) >= min_examples).all():
            name = f"{first} - {second}"
            table = _append_gap_row(table, name, counts, randomised, labels, seed, largest_gap=False)
            table = _append_gap_row(table, f"largest gap: {name}", counts, randomised, labels, seed, largest_gap=True)
    return table


def _append_gap_row(
    table: Table,
    name: str,
    counts: LinkCounts,
    randomised: LinkCounts | None,
    labels: list[int],
    seed: int,
    *,
    largest_gap: bool,
) -> Table:
    """The table with one difference: its measures, baselines, heads and a note.

    `labels` are the two kinds of pronouns and both together. The head is the one that finds most antecedents of both,
    or the one whose accuracies differ most.
    """
    halves = random_halves(counts.unit_texts, seed=seed)
    gaps, attributes = _head_gaps(counts, halves, labels, seed, largest_gap)
    baselines: dict[str, dict[str, Estimate]] = {}
    for baseline, correct in counts.baseline_correct.items():
        gap = _difference(correct[:, 0, labels[:2]], counts.total[:, labels[:2]], seed)
        baselines[baseline] = {HELD_OUT_ACCURACY: gap, BEST_ACCURACY: gap}
    if randomised is not None:
        baselines[UNTRAINED_MODEL], _ = _head_gaps(randomised, halves, labels, seed, largest_gap)
    which = "with the largest gap" if largest_gap else f"selected for {counts.labels[labels[2]]}"
    note = f"Head {which}; the interval of the best head is by bootstrap."
    return append_row(table, name, gaps, baselines, attributes, note)


def _head_gaps(
    counts: LinkCounts, halves: BoolArray, labels: list[int], seed: int, largest_gap: bool
) -> tuple[dict[str, Estimate], dict[str, AttributeValue]]:
    """The differences and heads, selected on one half and evaluated on the other, and both on all texts."""
    first, second, both = (counts.candidates(label).astype(np.float64) for label in labels)
    total = counts.total[:, labels].astype(np.float64)

    def half_scores(half: FloatArray) -> FloatArray:
        if not largest_gap:
            return half @ both
        n = half @ total
        return np.abs(ratio(half @ first, n[:, :1]) - ratio(half @ second, n[:, 1:2]))

    best = int(half_scores(np.ones((1, len(total)))).argmax())
    gaps = {BEST_ACCURACY: _difference(np.stack([first[:, best], second[:, best]], 1), total[:, :2], seed)}
    attributes: dict[str, AttributeValue] = {"best_head": str(candidate_head(counts, best))}
    fit = cross_fit(halves, total, half_scores)
    if fit is not None:
        gaps[HELD_OUT_ACCURACY] = _cross_fitted_difference(fit.scores(first), fit.scores(second), total)
        candidate, proportion = fit.most_selected
        head = candidate_head(counts, candidate)
        attributes |= {"head": str(head), "layer": head[0] + 1, "chosen_in": round(proportion, 3)}
    return gaps, attributes


def _cross_fitted_difference(first: FloatArray, second: FloatArray, total: FloatArray) -> Estimate:
    """The first rate minus the second, from (split, unit) correct answers and (unit, kind) totals."""
    rates, influences = zip(
        *(_rate_influences(correct, total[:, kind]) for kind, correct in enumerate((first, second))), strict=True
    )
    used = (total[:, :2] > 0).any(1)
    return combine_splits(rates[0] - rates[1], (influences[0] - influences[1])[:, used], lowest=-1.0)


def _rate_influences(correct: FloatArray, total: FloatArray) -> tuple[FloatArray, FloatArray]:
    rates = correct.sum(1) / total.sum()
    return rates, (correct - rates[:, None] * total) / total.sum()


def _difference(correct: Array, total: Array, seed: int) -> Estimate:
    """The first rate minus the second with its interval over units; n is the number of units with either kind."""
    if not total.any(0).all():
        return Estimate(np.nan, np.nan, np.nan, 0)
    n = int((total > 0).any(1).sum())
    first, second = (resampled_ratios(correct[:, [k]], total[:, k], seed=seed)[:, 0] for k in (0, 1))
    low, high = percentile_interval(first - second)
    value = float(np.subtract(*(correct.sum(0) / total.sum(0))))
    return Estimate(value, min(float(low), value), max(float(high), value), n)
