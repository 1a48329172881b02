"""What is each head for: a fixed position, a syntactic relation, the rarest word (voita2019, section 5)?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from bertology.analyses.declaration import analysis
from bertology.errors import Refusal
from bertology.measures.heads.head_choice import RANDOM, first_half
from bertology.measures.heads.head_functions import (
    LEVEL,
    Function,
    Thresholds,
    baseline_hits,
    frequencies,
    function_questions,
    functions_of,
    kind_of,
)
from bertology.measures.heads.word_questions import Question, Tally, tally, units_of
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.recording.word_sites import strongest_word
from bertology.results.estimate import Estimates
from bertology.results.sampling import joined, pooled_over_sentences
from bertology.results.shapes import Example, Examples, Table

Numbers = NDArray[Any]
Show = Literal["heads", "examples"]
SITE = strongest_word()
SHOWING, LEAST_CASES, PAIRS_TOLD = 3, 2, 3
ORDER = ("positional", "syntactic", "rare word")
SCORE, GAIN, P = "score", "gain", "p"


@analysis(
    question="What is each head for: a fixed position, a syntactic relation, the rarest word?",
    special="special tokens are no words: they can be neither asked about nor answered with",
    cites=("voita2019", "clark2019"),
    sites=(SITE,),
    layers=("heads", "relations"),
)
def functions(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        Show, "`heads`: every head, its function, evidence and baseline (Table); `examples`: sentences (Examples)"
    ] = "heads",
    positional: Annotated[float, "share of words whose strongest word is at one position, to be positional"] = 0.9,
    syntactic: Annotated[float, "gain over the best fixed offset for a relation, to be syntactic"] = 0.1,
    rare: Annotated[float, "share of words that attend most to the rarest one, to be a head of rare words"] = 0.5,
    frequent: Annotated[int, "so many of the most frequent words are never the rarest"] = 500,
    counted_in: Annotated[str, "the corpus that says how frequent words are; the one recorded where empty"] = "",
    minimum: Annotated[int, "relations with fewer cases are no functions"] = 20,
    seed: Annotated[int, "seed of the halves and of the bootstrap over sentences"] = 0,
) -> Table | Examples:
    """Share of words from which a head attends most to the word its function asks for: 0 never, 1 always.

    - positional: the strongest word of nine in ten words lies at one distance, one to three words on or back.
    - syntactic: for a relation and a direction, the strongest word is the head (or a dependent) 10 points more often
      than what lies at the distance that is most frequent for the relation.
    - rare word: the strongest word of every other word is the rarest of the sentence, of those with a rarest word that
      is not one of the 500 most frequent. Voita et al. give no threshold; half is ours.

    Every head is nominated, on one half of the sentences, for the function of which that half is most sure among those
    whose threshold it reaches, a position first; the score, the baseline and the gain are those of the other half. A
    function counts only where that half reaches the threshold as well, the interval of the score lies above that of the
    baseline, and a paired t test says so after Holm's correction for all heads nominated. The baseline is a blind guess
    for positions and the best fixed offset otherwise; beside it the best head of random weights. Voita et al. count the
    word itself among the targets; here, as for Clark et al., it is not. Attention to a word is the sum over its pieces,
    from it the mean.

    Heads with a function come first. Their notes give three sentences of the second half that show it and one that does
    not, with the pairs of words; heads without one have what they came nearest to.
    """
    ask = _asking(recording, frequent, counted_in)
    counted = tally(recording, SITE, ask, directions=("",))
    found = functions_of(counted, Thresholds(positional, syntactic, rare), minimum=minimum, seed=seed)
    if not found:
        raise Refusal(
            f"{recording.corpus.name} is too small to type heads: no function has {minimum} cases in two halves",
            f"sentences of different words with at least {minimum} neighbours",
            "Give a larger corpus, or lower --minimum",
        )
    found.sort(key=lambda one: (not one.confirmed, ORDER.index(kind_of(one.label)) if one.confirmed else 0, one.head))
    examples = _Shown(recording, ask, counted, seed)
    if show == "examples":
        return Examples(examples=tuple(one for f in found if f.confirmed for one in examples.of(f)))
    fresh = None
    if randomised is not None:
        fresh = tally(randomised, SITE, ask, directions=("",), labels=counted.labels)
    return _table(found, counted, fresh, examples, seed)


def _asking(recording: Recording, frequent: int, counted_in: str) -> Any:
    if counted_in:
        from bertology.corpus.builtin import corpus_named

        texts: Sequence[Sequence[str]] = [part.words for part in corpus_named(counted_in).sentences]
    else:
        texts = [part.words for part in recording.corpus.sentences]
    counts, top = frequencies(texts, frequent)

    def ask(entry: Entry) -> list[Question]:
        return function_questions(entry, counts, top)

    return ask


def _table(found: list[Function], counted: Tally, fresh: Tally | None, examples: _Shown, seed: int) -> Table:
    first = first_half(counted.keys, seed)
    scores, beside = (joined([getattr(one, name) for one in found]) for name in ("score", "baseline"))
    labels = [counted.labels.index(one.label) for one in found]
    p = np.array([one.p for one in found])
    gains = _gains(found, counted, labels, first, seed)
    zero = Estimates.exact(np.zeros(len(found)))
    baselines: dict[str, dict[str, Estimates]] = {"baseline": {SCORE: beside}, "no gain": {GAIN: zero}}
    baselines["level"] = {P: Estimates.exact(np.full(len(found), LEVEL))}
    if fresh is not None:
        rates = fresh.hits[~first].sum(0).reshape(-1, len(fresh.labels))
        best = [int(rates[:, label].argmax()) for label in labels]
        hits = np.stack([fresh.candidates(label)[:, head] for label, head in zip(labels, best, strict=True)], 1)
        baselines[RANDOM] = {SCORE: pooled_over_sentences(hits[~first], counted.cases[~first][:, labels], seed=seed)}
    n = np.where(np.isfinite(p), scores.n, 0)
    return Table(
        measures={SCORE: scores, GAIN: gains, P: Estimates(value=p, low=p, high=p, n=n)},
        baselines=baselines,
        units={
            SCORE: "share of cases, 0 to 1, on the half that did not nominate",
            GAIN: "share of cases over the baseline, -1 to 1",
            P: "that the score is above the baseline, Holm's correction for all heads nominated, 0 to 1",
        },
        rows_named=tuple(str(one.head) for one in found),
        notes={str(one.head): _note(one, examples) for one in found},
    )


def _gains(found: list[Function], counted: Tally, labels: list[int], first: NDArray[np.bool_], seed: int) -> Estimates:
    """The paired difference of score and baseline, as one share of the same cases."""
    ruled = baseline_hits(counted, first)[:, labels]
    hits = np.stack([counted.hits[(slice(None), *f.head, 0, n)] for f, n in zip(found, labels, strict=True)], 1)
    return pooled_over_sentences((hits - ruled)[~first], counted.cases[~first][:, labels], seed=seed)


def _note(function: Function, examples: _Shown) -> str:
    if not function.confirmed:
        return f"no function found; nearest to {kind_of(function.label)}: {function.label}"
    told = [f"{kind_of(function.label)}: {function.label}"]
    told += [f"{one.caption.rpartition(': ')[2]}: {' '.join(one.words)}" for one in examples.of(function)]
    return " | ".join(told)


class _Shown:
    """Sentences of the second half that show a head's function most, and the one that shows it least."""

    def __init__(self, recording: Recording, ask: Any, counted: Tally, seed: int) -> None:
        units, _ = units_of(recording.entries)
        scored = ~first_half(counted.keys, seed)
        self._recording = recording
        self._asked = {
            place: ask(entry)
            for place, (entry, unit) in enumerate(zip(recording.entries, units, strict=True))
            if scored[unit]
        }

    def of(self, function: Function) -> list[Example]:
        """Three that show it and one that does not, among sentences with two cases or more where there are any."""
        ranked: list[tuple[float, str, int]] = []
        for place, asked in self._asked.items():
            answers = self._answers(function, place, asked)
            if len(answers) >= LEAST_CASES:
                right = np.mean([answer in gold for _, answer, gold in answers])
                ranked.append((-float(right), " ".join(self._recording.entries[place].input.words), place))
        ranked.sort(key=lambda one: (one[0], len(one[1]), one[1]))
        shown = [
            self._example(function, place, f"shown {number}")
            for number, (_, _, place) in enumerate(ranked[:SHOWING], 1)
        ]
        return [*shown, *(self._example(function, place, "least shown") for _, _, place in ranked[SHOWING:][-1:])]

    def _answers(
        self, function: Function, place: int, asked: Sequence[Question]
    ) -> list[tuple[int, int, tuple[int, ...]]]:
        """(source, answer, gold) of the questions of the function about one entry."""
        strongest = self._recording[SITE][place][(*function.head, 0)]
        shown = set(self._recording.entries[place].pieces.word.tolist())
        mine = [q for q in asked if function.label in q.labels and {q.source, *q.gold} <= shown]
        return [(q.source, int(strongest[q.source]), q.gold) for q in mine]

    def _example(self, function: Function, place: int, which: str) -> Example:
        entry = self._recording.entries[place]
        answers = self._answers(function, place, self._asked[place])
        right = sum(answer in gold for _, answer, gold in answers)
        words = entry.input.words
        first = sorted(answers, key=lambda one: (one[1] in one[2]) == (which == "least shown"))[:PAIRS_TOLD]
        pairs = ", ".join(f"{words[source]} > {words[answer]}" for source, answer, _ in first)
        return Example(
            words=words,
            marked={"from": tuple(one[0] for one in answers), "to": tuple(one[1] for one in answers)},
            score=right / len(answers),
            caption=f"{function.head} {function.label}: {which}, {right} of {len(answers)} ({pairs})",
        )
