"""Which heads link a predicate with what fills its roles (kovaleva2019, section 4.2.1)?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from bertology.analyses.declaration import Sites, analysis
from bertology.corpus.sentence import Sentence, Span
from bertology.errors import Refusal
from bertology.measures.attention.head_measures import everywhere, means_by_label, uniform_attention
from bertology.measures.heads.head_choice import RANDOM, choice_table
from bertology.measures.heads.role_pairs import DIRECTIONS, LABELS, Select, is_core, propositions, role_weights
from bertology.measures.heads.word_questions import FIXED_OFFSET, Question, tally
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.recording.word_sites import strongest_word
from bertology.results.estimate import Estimates
from bertology.results.shapes import HeadGrid, Table

Show = Literal["weights", "roles"]
ALL, CORE = "all", "core roles"
ELSEWHERE = "as far apart elsewhere"


def questions_of(entry: Entry, select: Select) -> list[Question]:
    """One question a word that fills a role: which predicate? A word that fills the same role twice is asked once."""
    wanted: dict[tuple[int, str], set[int]] = {}
    start = 0
    for part in entry.input.parts:
        for frame, arguments in propositions(part, select):
            for one in arguments:
                wanted.setdefault((start + _head_of(part, one), one.label), set()).add(start + frame.predicate)
        start += len(part)
    found: list[Question] = []
    for (word, role), predicates in wanted.items():
        others = tuple(sorted(predicates - {word}))
        if others:
            found.append(Question(word, others, (ALL, *([CORE] if is_core(role) else []), role), word))
    return found


def _head_of(part: Sentence, span: Span) -> int:
    """The word of a span whose head lies outside it, the last one where there is no tree."""
    inside = range(span.start, span.end)
    tops = [word for word in inside if part.heads is not None and part.heads[word] not in inside]
    return tops[0] if tops else span.end - 1


def _sites(options: Mapping[str, Any]) -> Sites:
    if options["show"] == "roles":
        return (strongest_word(),)
    return (role_weights(options["select"], options["legacy"]),)


@analysis(
    question="Which heads link a predicate with what fills its roles?",
    special="special tokens fill no roles: weights to them are part of the whole, and they are no answers",
    cites=("kovaleva2019", "clark2019"),
    sites=_sites,
    layers=("frames",),
    version=3,
)
def roles(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        Show, "`weights`: how strongly every head links them (HeadGrid); `roles`: the best head of each role (Table)"
    ] = "weights",
    select: Annotated[
        Select,
        "`far`: roles more than two words from the predicate; `paper`: also only short sentences of one predicate with "
        "a core role; `all` roles",
    ] = "far",
    legacy: Annotated[bool, "pair pieces first with first and so on, as the released code does"] = False,
    minimum: Annotated[int, "roles with fewer cases are listed but not scored"] = 20,
    seed: Annotated[int, "seed of the halves and of the bootstrap over sentences"] = 0,
) -> HeadGrid | Table:
    """Most attention from a piece of a role to a piece of its predicate: 0 none, 1 all of that piece's attention.

    For each proposition the highest weight of any such pair, in both directions; the mean over propositions, then over
    sentences. Kovaleva et al. look from role to predicate only, and their code pairs the two lists of tokens one by one
    (--legacy) where the paper says all pairs. They take FrameNet's exemplars; any corpus with predicates and roles will
    do here. The highest of several weights is high by chance: `as far apart elsewhere` is the same for the same pairs
    moved one to four pieces along the sentence, what a head that minds distances only would have.

    As `roles`: share of words in a role from which the predicate gets the most attention of all words (or is the word
    that attends most to them), each role's head chosen on one half of the sentences and told on the other; see
    heads/dependency.
    """
    if show == "roles":
        return _table(recording, randomised, select, minimum, seed)
    site = role_weights(select, legacy)
    measured = means_by_label(recording.stacked(site), site, seed)
    if not measured[LABELS[0]].n.any():
        raise _nothing(recording, select)
    grid = measured[LABELS[0]].shape
    even = means_by_label(uniform_attention(recording, site), site, seed)
    baselines: dict[str, dict[str, Estimates]] = {
        "uniform attention": {name: everywhere(even[name], grid) for name in DIRECTIONS},
        ELSEWHERE: {name: measured[f"{name}, elsewhere"] for name in DIRECTIONS},
    }
    if randomised is not None:
        fresh = means_by_label(randomised.stacked(site), site, seed)
        baselines[RANDOM] = {name: fresh[name] for name in DIRECTIONS}
    units = dict.fromkeys(DIRECTIONS, "highest weight of a pair of pieces, 0 to 1")
    return HeadGrid(measures={name: measured[name] for name in DIRECTIONS}, baselines=baselines, units=units)


def _table(recording: Recording, randomised: Recording | None, select: Select, minimum: int, seed: int) -> Table:
    site = strongest_word()

    def ask(entry: Entry) -> list[Question]:
        return questions_of(entry, select)

    counted = tally(recording, site, ask, directions=DIRECTIONS, labels=(ALL, CORE))
    if not counted.cases.any():
        raise _nothing(recording, select)
    fresh = None if randomised is None else tally(randomised, site, ask, directions=DIRECTIONS, labels=counted.labels)
    return choice_table(counted, fresh, against=FIXED_OFFSET, minimum=minimum, seed=seed)


def _nothing(recording: Recording, select: Select) -> Refusal:
    return Refusal(
        f"No predicate of {recording.corpus.name} has a role that counts with --select {select}",
        "a predicate and a role with pieces of their own",
        "Use --select all, or a corpus with longer sentences",
    )
