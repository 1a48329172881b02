"""Dependency relations: does a word attend most to its governor, or its governor to it (Clark et al. 2019)?"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from bertology.analyses.declaration import analysis
from bertology.analyses.head_grids import UNTRAINED_MODEL
from bertology.analyses.head_selection.functions import TO_DEPENDENT, TO_GOVERNOR
from bertology.analyses.head_selection.gold_links import CHANCE, FIXED_OFFSET, GoldLink, LinkCounts, count_links
from bertology.analyses.head_selection.selection import selection_table
from bertology.analyses.label_criteria import OTHER, WORD_CHOICE, HeadLabelling
from bertology.corpus.sentence import ROOT
from bertology.corpus.tagsets import (
    Subtypes,
    SubtypesOption,
    is_relation,
    relation_labels,
    stanford_relation,
    universal_relation,
)
from bertology.encoder.token_batch import RecordedInput, word_annotations, word_governors
from bertology.errors import Refusal
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import bootstrap_proportion
from bertology.recording.recording import Recording
from bertology.recording.sites import strongest_word_site
from bertology.results.shapes import HeadGrid, Table

RelationNames = Literal["corpus", "universal", "stanford"]
FromWord = Literal["mean", "first", "max"]
DependencyView = Literal["relations", "heads"]

DIRECTIONS = (TO_GOVERNOR, TO_DEPENDENT)
ALL_RELATIONS, INNER_EDGES = "all relations", "all but root and punct"
POSSESSIVES = frozenset({"nmod:poss", "poss"})
CLITICS = frozenset({"'s", "’s", "s'", "s’", "'", "’"})


def dependency_links(
    recorded_input: RecordedInput,
    relation_names: RelationNames = "corpus",
    possessive_clitic: bool = False,
    subtypes: Subtypes = "included",
) -> list[GoldLink]:
    """One link per word that has a governor, from the word to its governor."""
    words = recorded_input.text.words
    rename = {"corpus": str, "universal": universal_relation, "stanford": stanford_relation}[relation_names]
    links: list[GoldLink] = []
    for word, (governor, relation) in enumerate(
        zip(word_governors(recorded_input), word_annotations(recorded_input, "relations"), strict=True)
    ):
        if governor is None:
            continue  # no tree: a segment without annotation, or truncated
        name = rename(relation) if relation is not None else "unnamed"
        inner = governor != ROOT and (relation or "").split(":")[0] not in {"root", "punct"}
        use_clitic = possessive_clitic and name in POSSESSIVES and word + 1 < len(words) and words[word + 1] in CLITICS
        relations = relation_labels(name, subtypes) if governor != ROOT else ()
        labels = (ALL_RELATIONS, *([INNER_EDGES] if inner else []), *relations)
        links.append(GoldLink(word, (governor,), labels, word + 1 if use_clitic else word))
    return links


@analysis(
    question="Which head predicts which dependency relation best, and is it better than a fixed offset?",
    special_tokens="Special tokens: excluded as sources and targets.",
    citations=("clark2019", "voita2019"),
    sites=lambda options: (strongest_word_site(options["from_word"]),),
    annotations=("governors",),
    version=3,
    answers=("relations",),
    labels_heads=HeadLabelling(rank=2, criteria={OTHER: WORD_CHOICE}),
)
def dependency(
    recording: Recording,
    randomised: Recording | None,
    *,
    show: Annotated[DependencyView, "`relations` (best head per relation) or `heads` (every head)."] = "relations",
    relation: Annotated[str, "Only this dependency relation and its subtypes, such as nsubj; empty: all."] = "",
    relation_names: Annotated[
        RelationNames,
        "Names of relations: as in the `corpus`, or mapped to `universal` or `stanford` dependencies where the edges "
        "agree.",
    ] = "corpus",
    subtypes: SubtypesOption = "included",
    possessive_clitic: Annotated[
        bool, "Test the possessive clitic ('s) instead of the possessor, as Clark et al. do."
    ] = False,
    from_word: Annotated[
        FromWord,
        "Attention from a word split into tokens: the `mean` over its tokens, its `first` token (released code) or "
        "the `max`.",
    ] = "mean",
    min_examples: Annotated[int, "Minimum number of examples for a relation to be scored (Clark et al. use 100)."] = 20,
    seed: Annotated[int, "Random seed (splits into halves, bootstrap)."] = 0,
) -> Table | HeadGrid:
    """Proportion of words whose governor receives most of their attention: 0 none, 1 all.

    `dependent to governor`: the word that a dependent attends to most, apart from itself and special tokens, is its
    governor. `governor to dependent`: the word that attends most to a dependent is its governor. Attention to a word is
    the sum over its tokens. Of equally strong words a random one is taken, which is right at the rate of chance; the
    sample below the table has the proportion of such ties. They occur where attention was rounded or underflows.

    The head and direction of each relation are selected on one half of the sentences and evaluated on the other, in
    both directions, for 100 random halves. `accuracy (held out)` is the mean, `head` the head selected most often and
    `chosen_in` the proportion of selections that chose it: near 1, the head is the same whichever sentences are used.
    The ends of the interval are means over splits of the ends of t intervals over sentences. Baselines are the best
    fixed offset, selected on all sentences, chance, and the best head of the untrained model. `accuracy - best fixed
    offset` is the difference on the same examples. `p (Holm)` combines the p values of paired tests over sentences in
    all splits (e times their geometric mean) and is corrected for the number of relations. With fewer than five
    sentences there is neither interval nor p value.

    `accuracy of the best head (not held out)` is selected and evaluated on all sentences, as in papers; its interval is
    simultaneous for all heads and directions. `heads not significantly worse` counts the other heads and directions
    that may be the best, given how many were tried.

    A relation includes its subtypes, which also have their own rows (--subtypes). `all relations` includes punctuation,
    and roots, which are always wrong, as in the paper. The released code uses the row of the first token (--from-word
    first), though the paper says the mean, and tries offsets from -3 to 2; here to 3.
    """
    site = strongest_word_site(from_word)
    first_labels = (ALL_RELATIONS, INNER_EDGES) if not relation else ()

    def extract_links(recorded_input: RecordedInput) -> list[GoldLink]:
        links = dependency_links(recorded_input, relation_names, possessive_clitic, subtypes)
        return [link._replace(labels=(relation,)) for link in links if relation in link.labels] if relation else links

    counts = count_links(recording, site, extract_links, directions=DIRECTIONS, labels=first_labels)
    if not counts.total.any():
        raise _no_links_refusal(recording, relation, relation_names, subtypes)
    untrained = (
        None
        if randomised is None
        else count_links(randomised, site, extract_links, directions=DIRECTIONS, labels=counts.labels)
    )
    if show == "heads":
        return _build_grid(counts, untrained, min_examples, seed)
    table = selection_table(counts, untrained, baseline=FIXED_OFFSET, min_examples=min_examples, seed=seed)
    sample: dict[str, int | float] = {
        "words": int(counts.total[:, 0].sum()),
        "words skipped (no token)": counts.skipped,
    }
    sample |= {
        f"proportion of ties ({direction})": round(rate, 6)
        for direction, rate in zip(DIRECTIONS, counts.tie_rates, strict=True)
        if np.isfinite(rate)
    }
    return table.model_copy(update={"notes": _notes(table, counts), "sample": sample})


def _no_links_refusal(
    recording: Recording, relation: str, relation_names: RelationNames, subtypes: Subtypes
) -> Refusal:
    labels = {
        label
        for recorded_input in recording.inputs
        for link in dependency_links(recorded_input, relation_names, subtypes=subtypes)
        for label in link.labels
    }
    if not relation or not labels:
        return Refusal(
            f"No word of {recording.corpus.name} has both a governor and a token",
            "complete inputs with dependency trees",
            "Use a treebank with --corpus; inputs truncated by --overflow lose their trees",
        )
    return Refusal(
        f"{recording.corpus.name} has no word with the relation {relation!r}",
        "one of " + ", ".join(sorted(labels)),
        "Choose one of these with --relation",
    )


def _notes(table: Table, counts: LinkCounts) -> dict[str, str]:
    """The notes of the table, and a remark on unknown relation names."""
    notes = dict(table.notes)
    for label in counts.labels:
        if label not in {ALL_RELATIONS, INNER_EDGES} and not is_relation(label):
            notes[label] = f"{notes.get(label, '')} Not a relation of Universal or Stanford Dependencies.".strip()
    return notes


def _build_grid(counts: LinkCounts, randomised: LinkCounts | None, min_examples: int, seed: int) -> HeadGrid:
    """Every head and direction for each relation with enough examples, on all sentences."""
    labels = [label for label, n in enumerate(counts.total.sum(0)) if n >= min_examples] or [0]
    measures: dict[str, Estimates] = {}
    baselines: dict[str, dict[str, Estimates]] = {name: {} for name in (FIXED_OFFSET, CHANCE)}
    if randomised is not None:
        baselines[UNTRAINED_MODEL] = {}
    for label in labels:
        total = counts.total[:, label, None, None]
        for index, direction in enumerate(DIRECTIONS):
            name = f"{counts.labels[label]}, {direction}"
            measures[name] = bootstrap_proportion(counts.correct[..., index, label], total, seed=seed)
            grid = measures[name].shape
            for baseline in (FIXED_OFFSET, CHANCE):
                correct = counts.baseline_correct[baseline][..., label]
                best = correct[:, [int(correct.sum(0).argmax())]]
                baselines[baseline][name] = bootstrap_proportion(best, total[..., 0], seed=seed).broadcast_to(grid)
            if randomised is not None:
                baselines[UNTRAINED_MODEL][name] = bootstrap_proportion(
                    randomised.correct[..., index, label], total, seed=seed
                )
    return HeadGrid(
        measures=measures, baselines=baselines, units=dict.fromkeys(measures, "proportion of words, 0 to 1")
    )
