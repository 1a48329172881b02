"""The numbers of heads-bert-base.md: which heads of a fine-tuned bert-base know which dependency, beside Clark's table.

    python docs/reproductions/heads_bert_base.py DATA          # prints the tables
    python docs/reproductions/heads_bert_base.py DATA --write  # and puts them into the page

DATA is a folder of .npz files with `attention` (12, 12, n, n) and `tokens`, one a sentence, and a JSON-lines file with
their words and trees; see the page for its origin.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from reproduction_page import markdown_table, percent, written

import bertology
from bertology.analyses.heads.dependency import DIRECTIONS, questions_of
from bertology.maths.selection import Best
from bertology.measures.heads.head_choice import BEST, HELD_OUT, RIVALS, choose, first_half, named
from bertology.measures.heads.word_questions import FIXED_OFFSET, Tally, tally
from bertology.recording.opening import open_recording
from bertology.recording.word_sites import strongest_word
from bertology.results.sampling import pooled_over_sentences
from bertology.results.shapes import Head, Table

PAGE = Path(__file__).with_name("heads-bert-base.md")
SEED, MINIMUM = 0, 20
SHORT = {"dependent to head": "d-h", "head to dependent": "h-d"}

# Clark et al. 2019, table 1 and the released notebook, pre-trained bert-base on the Wall Street Journal: the relation
# here, theirs, their head, its direction, accuracy, and the best fixed offset's accuracy, in percent.
CLARK: tuple[tuple[str, str, str, str, float, float], ...] = (
    ("all", "all", "7-6", "dependent to head", 34.5, 26.3),
    ("det", "det", "8-11", "dependent to head", 94.3, 51.7),
    ("nsubj", "nsubj", "8-2", "dependent to head", 58.5, 45.5),
    ("amod", "amod", "4-10", "dependent to head", 75.6, 68.3),
    ("obj", "dobj", "8-10", "dependent to head", 86.8, 40.0),
    ("advmod", "advmod", "7-6", "dependent to head", 48.8, 40.2),
    ("aux", "aux", "4-10", "dependent to head", 81.1, 71.5),
    ("nmod:poss", "poss", "7-6", "dependent to head", 80.5, 47.7),
    ("compound", "nn", "4-10", "dependent to head", 70.4, 70.2),
    ("mark", "mark", "8-2", "dependent to head", 50.7, 14.5),
    ("cop", "cop", "7-6", "dependent to head", 72.2, 40.5),
    ("conj", "conj", "7-1", "dependent to head", 53.3, 26.8),
    ("cc", "cc", "7-5", "dependent to head", 47.8, 41.2),
    ("advcl", "advcl", "5-4", "dependent to head", 29.5, 4.6),
    ("acl:relcl", "rcmod", "9-11", "dependent to head", 40.9, 26.6),
)


def tables(data: Path) -> str:
    """All tables as Markdown."""
    recording = open_recording(data)
    table = bertology.run("heads/dependency", recording=recording, minimum=MINIMUM, seed=SEED).data
    assert isinstance(table, Table)
    counted = _counted(recording)
    bests = _bests(counted)
    words = int(counted.cases[:, counted.labels.index("all")].sum())
    return "\n\n".join(
        [
            f"{len(recording)} sentences, {words} words. Brackets are 95 % intervals over sentences; d-h is dependent "
            "to head, h-d head to dependent.",
            _beside(table, counted, bests),
            _told_apart(counted, bests),
            _few(table),
        ]
    )


def _counted(recording: bertology.Recording) -> Tally:
    site = strongest_word()
    return tally(recording.with_derived([site]), site, questions_of, directions=DIRECTIONS, labels=("all",))


def _bests(counted: Tally) -> dict[str, tuple[int, Best]]:
    """The head held out and the best on all sentences, of each relation with enough cases."""
    choices = choose(counted, first_half(counted.keys, SEED), minimum=MINIMUM, seed=SEED)
    paired = zip(counted.labels, choices, strict=True)
    return {label: (choice.chosen, choice.best) for label, choice in paired if choice is not None}


def _beside(table: Table, counted: Tally, bests: dict[str, tuple[int, Best]]) -> str:
    rows: list[list[str]] = []
    for here, there, head, direction, accuracy, offset in CLARK:
        row, label = table.rows_named.index(here), counted.labels.index(here)
        if here not in bests:
            continue
        chosen, best = bests[here]
        theirs = _candidate(head, direction)
        hits = counted.candidates(label)[:, [theirs]]
        own = pooled_over_sentences(hits, counted.cases[:, [label]], seed=SEED)[0]
        told = "the best" if best.rate == own.value else "not told" if theirs in best.rivals else "told"
        rows.append(
            [
                here,
                str(int(counted.cases[:, label].sum())),
                f"{_short(counted, best.place)}",
                percent(table.measures[BEST][row]),
                str(int(table.measures[RIVALS].value[row])),
                f"{_short(counted, chosen)}",
                percent(table.measures[HELD_OUT][row]),
                percent(table.baselines[FIXED_OFFSET][HELD_OUT][row]),
                f"{there} {head} {SHORT[direction]}",
                f"{accuracy:.1f} ({offset:.1f})",
                f"{percent(own)}, {told}",
            ]
        )
    columns = (
        "relation", "cases", "best head", "its accuracy", "rivals", "held-out head", "its accuracy", "best offset",
        "Clark's head", "in Clark (offset)", "Clark's head here, told from the best?",
    )  # fmt: skip
    return f"### The best head of each relation beside Clark's, in percent\n\n{markdown_table(columns, rows)}"


def _told_apart(counted: Tally, bests: dict[str, tuple[int, Best]]) -> str:
    """For the four relations of which much is made: the best five, and what the data say of each."""
    rows: list[list[str]] = []
    for relation in ("det", "amod", "aux", "nmod:poss"):
        label = counted.labels.index(relation)
        _, best = bests[relation]
        hits = counted.candidates(label).sum(0)
        cases = int(counted.cases[:, label].sum())
        nearest = sorted(range(len(hits)), key=lambda place: (-hits[place], place))[:6]
        listed = ", ".join(f"{_short(counted, place)} {hits[place]}" for place in nearest)
        told = f"{len(best.rivals)} of {len(hits) - 1}"
        rows.append([relation, str(cases), listed, told])
    columns = ("relation", "cases", "right answers of the best heads", "heads not told from the best")
    return f"### What the data can tell apart\n\n{markdown_table(columns, rows)}"


def _few(table: Table) -> str:
    few = [f"{name} {note.split()[2]}" for name, note in table.notes.items() if note.startswith("too few")]
    return f"Relations with fewer than {MINIMUM} cases, not scored: {', '.join(few)}."


def _candidate(head: str, direction: str) -> int:
    layer, number = Head.parse(head)
    return (layer * 12 + number) * 2 + DIRECTIONS.index(direction)


def _short(counted: Tally, place: int) -> str:
    head, _, direction = named(counted, place).partition(" ")
    return f"{head} {SHORT[direction]}"


def main() -> None:
    """Print the tables; with --write put them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("data", type=Path, help="folder of .npz files")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to write to")
    options = parser.parse_args()
    numbers = tables(options.data)
    print(numbers)
    if options.write:
        options.page.write_text(written(options.page.read_text("utf-8"), numbers), "utf-8")


if __name__ == "__main__":
    main()
