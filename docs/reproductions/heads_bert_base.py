"""The numbers of heads-bert-base.md: which heads of a fine-tuned bert-base predict which dependency relation.

    python docs/reproductions/heads_bert_base.py DATA          # prints the tables
    python docs/reproductions/heads_bert_base.py DATA --write  # also writes them into the page

DATA is a directory of .npz files with `attention` (12, 12, n, n) and `tokens`, one per sentence, and a JSON-lines file
with their words and trees; the page says where they come from.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from reproduction_page import join_parts, markdown_table, percent, write_numbers

import bertology
from bertology.analyses.head_selection.functions import TO_DEPENDENT, TO_GOVERNOR
from bertology.analyses.head_selection.gold_links import FIXED_OFFSET, LinkCounts, count_links
from bertology.analyses.head_selection.selection import (
    BEST_ACCURACY,
    HELD_OUT_ACCURACY,
    INDISTINGUISHABLE,
    candidate_direction,
    candidate_head,
    select_heads,
)
from bertology.analyses.heads.dependency import ALL_RELATIONS, DIRECTIONS, dependency_links
from bertology.estimates.cross_fitting import random_halves
from bertology.estimates.hypothesis_tests import BestCandidate
from bertology.estimates.resampling import bootstrap_ratio
from bertology.recording.manifest import open_recording
from bertology.recording.sites import strongest_word_site
from bertology.results.shapes import Head, Table

PAGE = Path(__file__).with_name("heads-bert-base.md")
SEED, MIN_EXAMPLES = 0, 20
SHORT_DIRECTIONS = {TO_GOVERNOR: "d-g", TO_DEPENDENT: "g-d"}
COMPARED_RELATIONS = ("det", "amod", "aux", "nmod:poss")
N_LISTED_HEADS = 6

# Clark et al. 2019, table 1 and the released notebook, pre-trained bert-base on the Wall Street Journal: the relation
# here and there, the head, its direction and accuracy, and the accuracy of the best fixed offset, in percent.
CLARK: tuple[tuple[str, str, str, str, float, float], ...] = (
    (ALL_RELATIONS, ALL_RELATIONS, "7-6", TO_GOVERNOR, 34.5, 26.3),
    ("det", "det", "8-11", TO_GOVERNOR, 94.3, 51.7),
    ("nsubj", "nsubj", "8-2", TO_GOVERNOR, 58.5, 45.5),
    ("amod", "amod", "4-10", TO_GOVERNOR, 75.6, 68.3),
    ("obj", "dobj", "8-10", TO_GOVERNOR, 86.8, 40.0),
    ("advmod", "advmod", "7-6", TO_GOVERNOR, 48.8, 40.2),
    ("aux", "aux", "4-10", TO_GOVERNOR, 81.1, 71.5),
    ("nmod:poss", "poss", "7-6", TO_GOVERNOR, 80.5, 47.7),
    ("compound", "nn", "4-10", TO_GOVERNOR, 70.4, 70.2),
    ("mark", "mark", "8-2", TO_GOVERNOR, 50.7, 14.5),
    ("cop", "cop", "7-6", TO_GOVERNOR, 72.2, 40.5),
    ("conj", "conj", "7-1", TO_GOVERNOR, 53.3, 26.8),
    ("cc", "cc", "7-5", TO_GOVERNOR, 47.8, 41.2),
    ("advcl", "advcl", "5-4", TO_GOVERNOR, 29.5, 4.6),
    ("acl:relcl", "rcmod", "9-11", TO_GOVERNOR, 40.9, 26.6),
)


def tables(data: Path) -> str:
    """All tables as Markdown."""
    recording = open_recording(data)
    table = bertology.run("heads/dependency", recording=recording, min_examples=MIN_EXAMPLES, seed=SEED).data
    assert isinstance(table, Table)
    counts = _count_links(recording)
    selections = _selections(counts)
    n_words = int(counts.total[:, counts.labels.index(ALL_RELATIONS)].sum())
    return join_parts(
        [
            f"{len(recording)} sentences, {n_words} words. Brackets are 95 % intervals over sentences; "
            f"d-g is {TO_GOVERNOR}, g-d {TO_DEPENDENT}.",
            _compare_with_clark(table, counts, selections),
            _best_heads(counts, selections),
            _not_scored(table),
        ]
    )


def _count_links(recording: bertology.Recording) -> LinkCounts:
    site = strongest_word_site()
    recording = recording.with_sites([site])
    return count_links(recording, site, dependency_links, directions=DIRECTIONS, labels=(ALL_RELATIONS,))


def _selections(counts: LinkCounts) -> dict[str, tuple[int, BestCandidate]]:
    """The candidate selected most often and the best on all sentences, for each relation with enough examples."""
    halves = random_halves(counts.unit_texts, seed=SEED)
    selections = select_heads(counts, halves, min_examples=MIN_EXAMPLES, seed=SEED)
    return {
        label: (selection.selected, selection.best)
        for label, selection in zip(counts.labels, selections, strict=True)
        if selection is not None
    }


def _compare_with_clark(table: Table, counts: LinkCounts, selections: dict[str, tuple[int, BestCandidate]]) -> str:
    rows: list[list[str]] = []
    for relation, clark_relation, head, direction, accuracy, offset in CLARK:
        if relation not in selections:
            continue
        row, label = table.row_names.index(relation), counts.labels.index(relation)
        selected, best = selections[relation]
        candidate = _candidate(counts, head, direction)
        correct = counts.candidates(label)[:, [candidate]]
        here = bootstrap_ratio(correct, counts.total[:, [label]], seed=SEED)[0]
        rows.append(
            [
                relation,
                str(int(counts.total[:, label].sum())),
                _format_candidate(counts, best.index),
                percent(table.measures[BEST_ACCURACY][row]),
                str(int(table.measures[INDISTINGUISHABLE].value[row])),
                f"{_format_candidate(counts, selected)} ({table.attributes['chosen_in'][row]:.0%})",
                percent(table.measures[HELD_OUT_ACCURACY][row]),
                percent(table.baselines[FIXED_OFFSET][HELD_OUT_ACCURACY][row]),
                f"{clark_relation} {head} {SHORT_DIRECTIONS[direction]}",
                f"{accuracy:.1f} ({offset:.1f})",
                f"{percent(here)}, {_compare_with_best(best, candidate, here.value)}",
            ]
        )
    columns = (
        "relation",
        "examples",
        "best head",
        "its accuracy (not held out)",
        "heads not significantly worse",
        "head selected most often",
        "accuracy (held out)",
        "best fixed offset",
        "Clark et al.'s head",
        "accuracy in Clark et al. (offset)",
        "Clark et al.'s head here",
    )
    title = "### The best head of each relation, compared with Clark et al., in percent"
    return f"{title}\n\n{markdown_table(columns, rows)}"


def _compare_with_best(best: BestCandidate, candidate: int, accuracy: float) -> str:
    if accuracy == best.rate:
        return "the best"
    return "not significantly worse" if candidate in best.indistinguishable else "significantly worse"


def _best_heads(counts: LinkCounts, selections: dict[str, tuple[int, BestCandidate]]) -> str:
    """The best heads of four relations that papers discuss, with their correct predictions."""
    rows: list[list[str]] = []
    for relation in COMPARED_RELATIONS:
        label = counts.labels.index(relation)
        _, best = selections[relation]
        correct = counts.candidates(label).sum(0)
        n_examples = int(counts.total[:, label].sum())
        ordered = sorted(range(len(correct)), key=lambda candidate: (-correct[candidate], candidate))
        listed = ", ".join(
            f"{_format_candidate(counts, candidate)} {correct[candidate]}" for candidate in ordered[:N_LISTED_HEADS]
        )
        rows.append([relation, str(n_examples), listed, f"{len(best.indistinguishable)} of {len(correct) - 1}"])
    columns = ("relation", "examples", "correct predictions of the best heads", "heads not significantly worse")
    return f"### What the data can distinguish\n\n{markdown_table(columns, rows)}"


def _not_scored(table: Table) -> str:
    relations = [
        f"{name} {n_examples}"
        for name, head, n_examples in zip(
            table.row_names, table.attributes["head"], table.attributes["n_examples"], strict=True
        )
        if head is None
    ]
    return f"Relations with fewer than {MIN_EXAMPLES} examples, not scored: {', '.join(relations)}."


def _candidate(counts: LinkCounts, head: str, direction: str) -> int:
    """The flat index of a head and direction."""
    layer, number = Head.parse(head)
    _, _, n_heads, n_directions, _ = counts.correct.shape
    return (layer * n_heads + number) * n_directions + DIRECTIONS.index(direction)


def _format_candidate(counts: LinkCounts, candidate: int) -> str:
    direction = candidate_direction(counts, candidate)
    return f"{candidate_head(counts, candidate)} {SHORT_DIRECTIONS[direction]}"


def main() -> None:
    """Print the tables; with --write, also write them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="directory of .npz files")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    parser.add_argument("--page", type=Path, default=PAGE, help="page to write to")
    options = parser.parse_args()
    numbers = tables(options.data)
    print(numbers)
    if options.write:
        write_numbers(options.page, numbers)


if __name__ == "__main__":
    main()
