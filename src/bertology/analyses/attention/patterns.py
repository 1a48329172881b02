"""Which of Vig's six patterns does each head show: next, previous, related words, predictive words, delimiters?

(vig2019deconstructing)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import Sites, analysis
from bertology.maths.multiple_tests import holm, paired_above
from bertology.measures.attention.head_measures import uniform_attention
from bertology.measures.attention.pattern_targets import CONTROLLED, PATTERNS, pattern_site, target_masks
from bertology.measures.attention.special_tokens import SpecialTokens
from bertology.measures.attention.word_relations import Relations
from bertology.recording.recording import Recording
from bertology.recording.sites import ReducedSite
from bertology.results.estimate import Estimates
from bertology.results.sampling import mean_over_sentences
from bertology.results.shapes import Example, Examples, Head, HeadGrid, Table

Floats = NDArray[np.float64]
Show = Literal["scores", "labels", "examples"]

LEAST = dict.fromkeys(CONTROLLED, 0.3) | {"next word": 0.5, "previous word": 0.5, "delimiters": 0.6}
"""From which score on a head is labelled: half of the attention or more, less where words have few targets."""
LEVEL = 0.05
UNIT = "share of attention, 0 to 1"


@dataclass(frozen=True)
class _Scores:
    """(sentence, layer, head, pattern) scores, and what each baseline has there; NaN where it says nothing."""

    own: Floats
    baselines: Mapping[str, Floats]


def _sites(options: Mapping[str, Any]) -> Sites:
    relations = Relations(options["vectors"], options["closeness"], options["collocates"])
    return (pattern_site(relations, options["itself"]),)


@analysis(
    question="Which of Vig's six patterns does each head show: next, previous, related, predictive words, delimiters?",
    special="special tokens are no sources, and targets only of `delimiters`; with --special drop the other five are "
    "shares of the attention between ordinary pieces",
    cites=("vig2019deconstructing",),
    sites=_sites,
    version=3,
)
def patterns(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        Show,
        "`scores`: all heads (HeadGrid); `labels`: the heads that show a pattern, with a best and a counter-example "
        "(Table); `examples`: those sentences (Examples)",
    ] = "scores",
    special: Annotated[SpecialTokens, "keep attention to special tokens in the whole, or drop it"] = "keep",
    itself: Annotated[bool, "count a piece itself as a related one, as Vig's third picture does"] = False,
    vectors: Annotated[
        str, "words with near vectors in this table are related too: glove:PATH, or static:MODEL for input embeddings"
    ] = "",
    closeness: Annotated[float, "the cosine from which two words' vectors are near"] = 0.6,
    collocates: Annotated[
        str, "neighbours that are a collocation of this corpus (met 5 times, normalised PMI 0.5) predict each other"
    ] = "",
    least: Annotated[
        float, "a head is labelled from this score on; 0 for 0.5 (next, previous), 0.6 (delimiters), 0.3 (the others)"
    ] = 0.0,
    seed: Annotated[int, "seed of the bootstrap over sentences"] = 0,
) -> HeadGrid | Table | Examples:
    """Share of attention on the targets of each pattern: 0 none of it, 1 all; mean over pieces that have a target.

    - `next word`, `previous word`: all pieces of the word after or before, in the same sentence.
    - `related, same sentence`: other words of the sentence with the same lemma (the same lower-cased form where none
      is annotated), or with near vectors where --vectors is given. `related, other sentence`: the same in the other
      sentence of a pair.
    - `predictive words`: other pieces of the same word, other words of the same expression (annotated as fixed, flat,
      compound or goeswith), and collocates where --collocates is given.
    - `delimiters`: [CLS] and [SEP].

    Sources are ordinary pieces. Each sentence counts alike; one without a piece that has such a target does not count.
    `same offsets` is what the head puts on other pairs of the same sentence (of the two sentences) that are as far
    apart: a head that only minds distances scores no better. A head is labelled where its score is at least --least,
    its interval lies above that of every baseline, and the difference passes a one-sided paired t test over sentences
    at 0.05, with Holm's correction for all heads and patterns tried. Vig shows pictures of single heads and gives no
    definition; these are ours.
    """
    relations = Relations(vectors, closeness, collocates)
    site = pattern_site(relations, itself)
    scores = _scored(recording, randomised, site, special)
    if show == "scores":
        return _grid(scores, seed)
    labelled = _labelled(scores, least, seed)
    examples = _Chosen(recording, scores, relations, itself)
    if show == "examples":
        return Examples(examples=tuple(one for label in labelled for one in examples.of(label)))
    return _table(scores, labelled, examples, seed)


def _scored(recording: Recording, randomised: Recording | None, site: ReducedSite, special: SpecialTokens) -> _Scores:
    values = recording.stacked(site).astype(np.float64)
    even = uniform_attention(recording, site).astype(np.float64)[:, :, None]
    own, offsets = _split(values, special)
    uniform, _ = _split(even, special)
    baselines = {"uniform attention": np.broadcast_to(uniform, own.shape), "same offsets": offsets}
    if randomised is not None:
        baselines["random weights"] = _split(randomised.stacked(site).astype(np.float64), special)[0]
    return _Scores(own, baselines)


def _split(values: Floats, special: SpecialTokens) -> tuple[Floats, Floats]:
    """(..., pattern) scores and scores at the same offsets; the latter NaN for patterns of position."""
    six, three = len(PATTERNS), len(CONTROLLED)
    own, controls, shares = values[..., :six], values[..., six : six + three], values[..., six + three :]
    offsets = np.full_like(own, np.nan)
    offsets[..., 2:5] = controls
    if special == "keep":
        return own, offsets
    whole = np.concatenate([shares, np.full_like(own[..., :1], np.nan)], axis=-1)
    own, offsets = (np.divide(top, whole, out=np.full_like(own, np.nan), where=whole > 0) for top in (own, offsets))
    return own, offsets


def _named(values: Floats, seed: int) -> dict[str, Estimates]:
    estimates = mean_over_sentences(values, seed=seed)
    return {name: estimates[..., place] for place, name in enumerate(PATTERNS)}


def _grid(scores: _Scores, seed: int) -> HeadGrid:
    measures = _named(scores.own, seed)
    kept = [name for name in PATTERNS if measures[name].n.any()] or list(PATTERNS)
    baselines: dict[str, dict[str, Estimates]] = {}
    for baseline, values in scores.baselines.items():
        named = _named(values, seed)
        usable = CONTROLLED if baseline == "same offsets" else PATTERNS
        baselines[baseline] = {name: named[name] for name in kept if name in usable}
    baselines = {name: found for name, found in baselines.items() if found}
    units = dict.fromkeys(kept, UNIT)
    return HeadGrid(measures={name: measures[name] for name in kept}, baselines=baselines, units=units)


@dataclass(frozen=True)
class _Label:
    """A head that shows a pattern, and how sure we are after all that were tried."""

    head: Head
    pattern: int
    p: float

    def __str__(self) -> str:
        return f"{self.head} {PATTERNS[self.pattern]}"


def _labelled(scores: _Scores, least: float, seed: int) -> list[_Label]:
    """The heads that beat every baseline, strongest first within a pattern."""
    own = mean_over_sentences(scores.own, seed=seed)
    # A difference can be sure and still be next to nothing: the intervals must lie apart as well.
    highest = [mean_over_sentences(values, seed=seed).high for values in scores.baselines.values()]
    clear = ~(own.low <= np.stack(highest)).any(0)
    tried = [paired_above(scores.own - values) for values in scores.baselines.values()]
    known = np.isfinite(tried).any(0)
    worst = np.where(known, np.max(np.where(np.isfinite(tried), tried, -1.0), axis=0), np.nan)
    adjusted = holm(worst)
    enough = np.array([least or LEAST[name] for name in PATTERNS])
    chosen = np.argwhere(clear & (adjusted < LEVEL) & (own.value >= enough))
    found = [_Label(Head(int(a), int(b)), int(c), float(adjusted[a, b, c])) for a, b, c in chosen]
    return sorted(found, key=lambda label: (label.pattern, -own.value[(*label.head, label.pattern)]))


class _Chosen:
    """The sentences in which a labelled head shows its pattern most and least."""

    LEAST_SOURCES = 3

    def __init__(self, recording: Recording, scores: _Scores, relations: Relations, itself: bool) -> None:
        self._recording = recording
        self._scores = scores
        self._sources = [
            {name: mask.any(1) for name, mask in target_masks(entry, relations, itself).items()}
            for entry in recording.entries
        ]

    def of(self, label: _Label) -> tuple[Example, Example]:
        """The best sentence and the counter-example, among those with three sources or more where there are any."""
        name = PATTERNS[label.pattern]
        values = self._scores.own[(slice(None), *label.head, label.pattern)]
        counts = np.array([sources[name].sum() for sources in self._sources])
        usable = np.isfinite(values)
        rich = usable & (counts >= self.LEAST_SOURCES)
        places = np.flatnonzero(rich if rich.any() else usable)
        best, worst = places[values[places].argmax()], places[values[places].argmin()]
        return self._example(label, best, "best"), self._example(label, worst, "counter-example")

    def _example(self, label: _Label, place: int, which: str) -> Example:
        entry = self._recording.entries[place]
        words = entry.pieces.word[self._sources[place][PATTERNS[label.pattern]]]
        return Example(
            words=entry.input.words,
            marked={"sources": tuple(sorted({int(word) for word in words if word >= 0}))},
            score=float(self._scores.own[(place, *label.head, label.pattern)]),
            caption=f"{label}: {which}",
        )


def _table(scores: _Scores, labelled: list[_Label], examples: _Chosen, seed: int) -> Table:
    heads = [(label.head[0], label.head[1], label.pattern) for label in labelled]
    own = _of_heads(scores.own, heads)
    strengths = {name: _of_heads(values, heads) for name, values in scores.baselines.items()}
    measures = {
        "score": mean_over_sentences(own, seed=seed),
        "p": Estimates.exact(np.array([label.p for label in labelled]), n=len(own)),
    }
    baselines = {name: {"score": mean_over_sentences(values, seed=seed)} for name, values in strengths.items()}
    baselines["level"] = {"p": Estimates.exact(np.full(len(labelled), LEVEL))}
    notes: dict[str, str] = {}
    for label in labelled:
        shown = (f"{one.caption.split(': ')[1]} ({one.score:.2f}): {' '.join(one.words)}" for one in examples.of(label))
        notes[str(label)] = " | ".join(shown)
    units = {"score": UNIT, "p": "after Holm's correction for all heads and patterns, 0 to 1"}
    names = tuple(str(label) for label in labelled)
    return Table(measures=measures, baselines=baselines, units=units, rows_named=names, notes=notes)


def _of_heads(values: Floats, heads: list[tuple[int, int, int]]) -> Floats:
    """(sentence, label)."""
    return np.stack([values[:, a, b, c] for a, b, c in heads], axis=1) if heads else np.empty((len(values), 0))
