"""Which heads find the antecedent of a mention (clark2019, section 4.3), and do they mind its gender (zhao2018)?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import Sites, analysis
from bertology.errors import Refusal
from bertology.maths.resampling import resampled_ratios
from bertology.maths.selection import highest
from bertology.measures.heads.antecedents import Among, Search, new_words, searches, strongest_candidate
from bertology.measures.heads.head_choice import BEST, HELD_OUT, RANDOM, choice_table, first_half, joined_rows, named
from bertology.measures.heads.mentions import RULES, Rule, mentions_of
from bertology.measures.heads.word_questions import Question, Tally, tally
from bertology.measures.heads.word_questions import Rule as Baseline
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.results.shapes import Table

Numbers = NDArray[Any]

LABELS = ("all", "pronoun", "proper", "nominal")
ANY_CANDIDATE = "any candidate"
NEAREST = "nearest mention"
GENDERS = ("masculine", "feminine")
WINOBIAS = re.compile(r"(?P<fits>pro|anti)_stereotyped_type(?P<type>[12])\b.*")
"""The name of a file of WinoBias. In type 1 either occupation may be meant, in type 2 syntax allows but one."""
GAPS = (
    *((f"type {kind} pro-stereotyped", f"type {kind} anti-stereotyped", f"type {kind}") for kind in "12"),
    (*GENDERS, "pronoun"),
)
"""Two kinds of pronoun, and the label whose head is told on both."""


class _Asked:
    """The questions of a recording: each mention once, in the first window that has it."""

    def __init__(self, recording: Recording, among: Among) -> None:
        self._items = recording.corpus.items
        starts = new_words(recording.entries)
        self._searches: dict[tuple[int, int, int], dict[int, Search]] = {}
        for entry, start in zip(recording.entries, starts, strict=True):
            found = [one for one in searches(entry, among) if one.source >= start]
            self._searches[_key(entry)] = {one.source: one for one in found}
        self._among = among

    def questions(self, entry: Entry) -> list[Question]:
        """One question a mention: which word is the head of an antecedent?"""
        return [
            Question(source, _antecedents(one), self._labels(entry, one), source)
            for source, one in self._searches[_key(entry)].items()
        ]

    def _labels(self, entry: Entry, search: Search) -> tuple[str, ...]:
        labels = ["all", search.mention.kind]
        if search.mention.kind == "pronoun":
            labels += [gender for gender in GENDERS if gender == search.mention.features[1]]
            found = WINOBIAS.match(self._items[entry.item].source)
            if found:
                labels += [f"type {found['type']}", f"type {found['type']} {found['fits']}-stereotyped"]
        return tuple(labels)

    def by_rule(self, rule: Rule) -> Baseline:
        """A rule that finds a mention among the candidates."""

        def right(entry: Entry, questions: Sequence[Question]) -> Numbers:
            found = self._searches[_key(entry)]
            return np.array([[_is_right(found[q.source], rule) for q in questions]], np.float64)

        return Baseline(("",), right)

    def by_guess(self) -> Baseline:
        """A blind guess among the candidates."""

        def right(entry: Entry, questions: Sequence[Question]) -> Numbers:
            found = self._searches[_key(entry)]
            others = entry.pieces.words - 1
            sizes = [others if self._among == "words" else len(found[q.source].words) for q in questions]
            return np.array([[len(q.gold) / size for q, size in zip(questions, sizes, strict=True)]])

        return Baseline(("",), right)


def _key(entry: Entry) -> tuple[int, int, int]:
    return entry.item, entry.variant, entry.window


def _antecedents(search: Search) -> tuple[int, ...]:
    return tuple(word for word, right in zip(search.words, search.right, strict=True) if right)


def _is_right(search: Search, rule: Rule) -> bool:
    found = rule(search.mention, search.candidates)
    return found is not None and found.cluster == search.mention.cluster


def _sites(options: Mapping[str, Any]) -> Sites:
    return (strongest_candidate(options["among"]),)


@analysis(
    question="Which heads find the antecedent of a mention?",
    special="special tokens are no mentions: they can be neither asked about nor answered with",
    cites=("clark2019", "zhao2018", "webster2018"),
    sites=_sites,
    layers=("mentions",),
    version=2,
)
def coreference(
    recording: Recording,
    randomised: Recording | None,
    *,
    among: Annotated[
        Among,
        "what a head may answer with: heads of `preceding` mentions, of all other `mentions` (for GAP, where names may "
        "come after the pronoun), or all `words`",
    ] = "preceding",
    minimum: Annotated[int, "types of mention with fewer cases are listed but not scored"] = 20,
    seed: Annotated[int, "seed of the halves and of the bootstrap over texts"] = 0,
) -> Table:
    """Share of mentions whose head word attends most to the head word of an antecedent: 0 none, 1 all of them.

    Asked about are mentions that corefer with an earlier one in the text shown, by type: pronoun, proper name, other
    noun. Clark et al. do not say among what they look; by default it is the head words of all earlier mentions. The
    head word is the top of the mention in the tree, or found by its words where there is no tree. Beside the head: the
    nearest mention, the nearest with the same head word, four sieves of rules, a blind guess and the best head of
    random weights. Heads are chosen on one half of the texts and told on the other; see heads/dependency.

    Pronouns are told apart by gender, and in WinoBias by whether they fit the stereotype of the occupation (types 1 and
    2 apart: in type 2 the nearest occupation is always meant). The rows of gaps are differences of two accuracies of
    one head, the one chosen for the pronouns of both kinds, or the one with the `widest` gap: 0 treats both alike. The
    other occupation, which WinoBias does not mark, is a candidate too.

    Sentences are texts of their own unless the corpus is read by documents (--format-option unit=document). What the
    model is not shown, by --long or for being in another sentence, cannot be found: the first note counts it. In
    overlapping windows each mention is asked about once, where most stands before it.
    """
    site = strongest_candidate(among)
    counted = _counted(recording, site, among)
    if not counted.cases.any():
        raise Refusal(
            f"No mention of {recording.corpus.name} has an antecedent in the text that the model is shown",
            "inputs in which mentions corefer",
            "Read the corpus by documents, --format-option unit=document, with --long window where they are long",
        )
    fresh = None if randomised is None else _counted(randomised, site, among, counted.labels)
    table = choice_table(counted, fresh, against=NEAREST, minimum=minimum, seed=seed)
    notes = {**table.notes, "all": f"{table.notes['all']}; {_lost(recording, counted, among)}"}
    table = table.model_copy(update={"notes": notes})
    return _with_gaps(table, counted, fresh, minimum, seed)


def _counted(recording: Recording, site: Any, among: Among, labels: Sequence[str] = LABELS) -> Tally:
    asked = _Asked(recording, among)
    rules = {name: asked.by_rule(rule) for name, rule in RULES.items()} | {ANY_CANDIDATE: asked.by_guess()}
    return tally(recording, site, asked.questions, directions=("",), labels=labels, rules=rules)


def _lost(recording: Recording, counted: Tally, among: Among) -> str:
    """How many mentions that have an antecedent in their document were not asked about."""
    clusters: dict[tuple[str, int, str], int] = {}
    total = 0
    for number, item in enumerate(recording.corpus):
        for part in item.parts:
            for mention in mentions_of(part):
                place = (part.document, -1 if part.document else number, mention.cluster)
                clusters[place] = clusters.get(place, 0) + 1
                total += clusters[place] > 1
    if among == "mentions":
        total += _forward(recording)
    lost = total - int(counted.cases[:, 0].sum())
    return f"{lost} of {total} mentions have no antecedent in what the model was shown"


def _forward(recording: Recording) -> int:
    """How many pronouns are the first mention of what is named later in their text."""
    found = 0
    for item in recording.corpus:
        for part in item.parts:
            there = mentions_of(part)
            clusters = [mention.cluster for mention in there]
            found += sum(
                mention.kind == "pronoun"
                and clusters.index(mention.cluster) == place < _last(clusters, mention.cluster)
                for place, mention in enumerate(there)
            )
    return found


def _last(clusters: list[str], cluster: str) -> int:
    return len(clusters) - 1 - clusters[::-1].index(cluster)


def _with_gaps(table: Table, counted: Tally, fresh: Tally | None, minimum: int, seed: int) -> Table:
    """The table with a row for each difference between two kinds of pronoun."""
    for one, other, both in GAPS:
        if one in counted.labels and other in counted.labels:
            places = [counted.labels.index(name) for name in (one, other, both)]
            if (counted.cases[:, places].sum(0) >= minimum).all():
                name = f"{one} minus {other}"
                table = joined_rows(table, name, *_gap(counted, fresh, places, seed, widest=False))
                table = joined_rows(table, f"widest: {name}", *_gap(counted, fresh, places, seed, widest=True))
    return table


Row = dict[str, tuple[float, float, float, int]]


def _gap(
    counted: Tally, fresh: Tally | None, places: list[int], seed: int, *, widest: bool
) -> tuple[Row, dict[str, Row], str]:
    """What joins the table for one difference: its measures, its baselines and a note.

    `places` are the labels of the two kinds of pronoun and of both together. The head is the one that finds most
    antecedents of both, or the one whose accuracies lie furthest apart.
    """
    first = first_half(counted.keys, seed)
    own, heads = _of_heads(counted, first, places, seed, widest)
    baselines: dict[str, Row] = {}
    for name, hits in counted.rules.items():
        both = hits[:, 0][:, places[:2]]
        scopes = {HELD_OUT: ~first, BEST: np.ones_like(first)}
        baselines[name] = {m: _difference(both[s], counted.cases[s][:, places[:2]], seed) for m, s in scopes.items()}
    if fresh is not None:
        baselines[RANDOM], _ = _of_heads(fresh, first, places, seed, widest)
    which = "of the head with the widest gap" if widest else f"of the head for {counted.labels[places[2]]}"
    return own, baselines, f"{which}: held out {heads[0]}, best {heads[1]}"


def _of_heads(
    counted: Tally, first: NDArray[np.bool_], places: list[int], seed: int, widest: bool
) -> tuple[Row, tuple[str, str]]:
    """The difference of the head chosen on one half, told on the other; and of that chosen and told on all."""
    one, other, both = (counted.candidates(place) for place in places)
    cases = counted.cases[:, places]
    rows: Row = {}
    heads: list[int] = []
    for measure, choosing, scope in ((HELD_OUT, first, ~first), (BEST, np.ones_like(first), np.ones_like(first))):
        if widest:
            rates = [k[choosing].sum(0) / max(1, n) for k, n in zip((one, other), cases[choosing].sum(0), strict=False)]
            head = int(np.abs(rates[0] - rates[1]).argmax())
        else:
            head = highest(both[choosing], cases[choosing][:, 2]) or 0
        heads.append(head)
        pair = np.stack([one[:, head], other[:, head]], axis=1)
        rows[measure] = _difference(pair[scope], cases[scope][:, :2], seed)
    return rows, (named(counted, heads[0]), named(counted, heads[1]))


def _difference(hits: Numbers, cases: Numbers, seed: int) -> tuple[float, float, float, int]:
    """The first rate less the second with its interval over units, and how many units have cases of either."""
    n = int((cases > 0).any(1).sum())
    if not cases.any(0).all():
        return float("nan"), float("nan"), float("nan"), 0
    drawn = [resampled_ratios(hits[:, [k]], cases[:, k], seed=seed)[:, 0] for k in (0, 1)]
    low, high = np.nanpercentile(drawn[0] - drawn[1], [2.5, 97.5])
    value = float(np.subtract(*(hits.sum(0) / cases.sum(0))))
    return value, min(float(low), value), max(float(high), value), n
