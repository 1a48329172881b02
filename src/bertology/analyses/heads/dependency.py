"""Which heads know which dependency: does a word attend most to its head, or its head to it (clark2019)?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from bertology.analyses.declaration import Sites, analysis
from bertology.corpus.grammar import is_relation, stanford_relation, universal_relation
from bertology.corpus.sentence import ROOT
from bertology.errors import Refusal
from bertology.measures.heads.head_choice import RANDOM, choice_table
from bertology.measures.heads.word_questions import ANY_WORD, FIXED_OFFSET, Question, Tally, tally
from bertology.recording.annotation import word_heads, word_layer
from bertology.recording.entry import Entry
from bertology.recording.recording import Recording
from bertology.recording.word_sites import strongest_word
from bertology.results.estimate import Estimates
from bertology.results.sampling import pooled_over_sentences
from bertology.results.shapes import HeadGrid, Table

Names = Literal["corpus", "universal", "stanford"]
Rows = Literal["mean", "first", "max"]
Show = Literal["relations", "heads"]

DIRECTIONS = ("dependent to head", "head to dependent")
ALL, INNER = "all", "all but root and punct"
POSSESSIVES = frozenset({"nmod:poss", "poss"})
CLITICS = frozenset({"'s", "’s", "s'", "s’", "'", "’"})
UNIT = "share of cases, 0 to 1"


def questions_of(entry: Entry, names: Names = "corpus", clitic: bool = False) -> list[Question]:
    """One question a word that has a head: which word is it?"""
    words = entry.input.words
    renamed = {"corpus": str, "universal": universal_relation, "stanford": stanford_relation}[names]
    found: list[Question] = []
    for word, (head, relation) in enumerate(zip(word_heads(entry), word_layer(entry, "relations"), strict=True)):
        if head is None:
            continue  # no tree: a part without annotation, or cut where it was too long
        name = renamed(relation) if relation is not None else "unnamed"
        inner = head != ROOT and (relation or "").split(":")[0] not in {"root", "punct"}
        follows = clitic and name in POSSESSIVES and word + 1 < len(words) and words[word + 1] in CLITICS
        kinds = dict.fromkeys((name.split(":")[0], name)) if head != ROOT else ()
        labels = (ALL, *([INNER] if inner else []), *kinds)
        found.append(Question(word, (head,), labels, word + 1 if follows else word))
    return found


def _sites(options: Mapping[str, Any]) -> Sites:
    return (strongest_word(options["rows"]),)


@analysis(
    question="Which heads know which dependency: does a word attend most to its head, or its head to it?",
    special="special tokens are no words: they can be neither asked about nor answered with",
    cites=("clark2019", "voita2019"),
    sites=_sites,
    layers=("heads",),
    version=2,
)
def dependency(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[
        Show, "`relations`: the best head of each relation (Table); `heads`: every head (HeadGrid)"
    ] = "relations",
    relation: Annotated[str, "only this relation with its subtypes, such as nsubj; all where empty"] = "",
    names: Annotated[
        Names, "names as the corpus has them, or those of Universal or Stanford Dependencies where edges are the same"
    ] = "corpus",
    clitic: Annotated[bool, "ask the clitic of a possessive ('s) for the possessor's head, as Clark et al. do"] = False,
    rows: Annotated[
        Rows, "attention from a split word: the `mean` over its pieces, the `first` (released code), their `max`"
    ] = "mean",
    minimum: Annotated[int, "relations with fewer cases are listed but not scored; Clark et al. ask for 100"] = 20,
    seed: Annotated[int, "seed of the halves and of the bootstrap over sentences"] = 0,
) -> Table | HeadGrid:
    """Share of words whose head is the word that gets most of their attention: 0 none, 1 all of them.

    `dependent to head`: the word a dependent attends to most, itself and special tokens aside, is its head. `head to
    dependent`: the word that attends most to a dependent is its head. Attention to a word is the sum over its pieces.

    Each relation's head and direction is chosen on one half of the sentences and its accuracy told on the other
    (`held-out accuracy`), beside the best fixed offset chosen and told likewise, a blind guess, and the best head of
    random weights. `best accuracy` is chosen and told on all sentences, as papers do; its interval holds for all heads
    in both directions at once. `rivals` counts the others that may truly be the best, given how many were tried. `p`
    tests the held-out head against the held-out offset, over sentences, and `held-out less best fixed offset` is how
    far it lies above: both are right or wrong about the same cases, and the interval resamples the pairs.

    A relation includes its subtypes, which have rows of their own as well. `all` includes punctuation, and roots, which
    are always wrong, as in the paper. The released code uses the row of the first piece (--rows first), though the
    paper says the mean, and tries offsets from -3 to 2; here to 3.
    """
    site = strongest_word(rows)
    first = (ALL, INNER) if not relation else ()

    def ask(entry: Entry) -> list[Question]:
        asked = questions_of(entry, names, clitic)
        return [q._replace(labels=(relation,)) for q in asked if relation in q.labels] if relation else asked

    counted = tally(recording, site, ask, directions=DIRECTIONS, labels=first)
    if not counted.cases.any():
        raise _nothing(recording, relation, names)
    fresh = None if randomised is None else tally(randomised, site, ask, directions=DIRECTIONS, labels=counted.labels)
    if show == "heads":
        return _grid(counted, fresh, minimum, seed)
    table = choice_table(counted, fresh, against=FIXED_OFFSET, minimum=minimum, seed=seed)
    return table.model_copy(update={"notes": _with_counts(table, counted)})


def _nothing(recording: Recording, relation: str, names: Names) -> Refusal:
    known = {label for entry in recording.entries for q in questions_of(entry, names) for label in q.labels}
    if not relation or not known:
        return Refusal(
            f"No word of {recording.corpus.name} has both a head and a piece",
            "inputs with a dependency tree that were recorded whole",
            "Give a treebank with --corpus; trees of inputs that were cut by --long are lost",
        )
    return Refusal(
        f"{recording.corpus.name} has no word with the relation {relation!r}",
        "one of " + ", ".join(sorted(known)),
        "Give one of these with --relation",
    )


def _with_counts(table: Table, counted: Tally) -> dict[str, str]:
    """The notes of the table, and what was left out of it."""
    notes = dict(table.notes)
    for label in counted.labels:
        if label not in {ALL, INNER} and not is_relation(label):
            notes[label] += "; no relation of Universal or Stanford Dependencies"
    if counted.left_out:
        notes[counted.labels[0]] += f"; {counted.left_out} words left out: they or their heads have no piece"
    return notes


def _grid(counted: Tally, fresh: Tally | None, minimum: int, seed: int) -> HeadGrid:
    """Every head and direction for each relation with enough cases, on all sentences."""
    enough = [n for n, cases in enumerate(counted.cases.sum(0)) if cases >= minimum] or [0]
    measures: dict[str, Estimates] = {}
    baselines: dict[str, dict[str, Estimates]] = {name: {} for name in (FIXED_OFFSET, ANY_WORD)}
    if fresh is not None:
        baselines[RANDOM] = {}
    for label in enough:
        cases = counted.cases[:, label, None, None]
        for number, direction in enumerate(DIRECTIONS):
            name = f"{counted.labels[label]}, {direction}"
            measures[name] = pooled_over_sentences(counted.hits[..., number, label], cases, seed=seed)
            grid = measures[name].shape
            for rule in (FIXED_OFFSET, ANY_WORD):
                hits = counted.rules[rule][..., label]
                best = hits[:, [int(hits.sum(0).argmax())]]
                baselines[rule][name] = pooled_over_sentences(best, cases[..., 0], seed=seed)[0].everywhere(grid)
            if fresh is not None:
                baselines[RANDOM][name] = pooled_over_sentences(fresh.hits[..., number, label], cases, seed=seed)
    return HeadGrid(measures=measures, baselines=baselines, units=dict.fromkeys(measures, UNIT))
