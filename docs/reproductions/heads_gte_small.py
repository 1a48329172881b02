"""The numbers of heads-gte-small.md: how well single heads, and probes over all heads, predict dependencies.

    python docs/reproductions/heads_gte_small.py MODEL DEV TRAIN                            # prints the tables
    python docs/reproductions/heads_gte_small.py MODEL DEV TRAIN --train-size 4000 --write  # also writes the page

MODEL is a model as for `bertology run --model`; DEV and TRAIN are treebanks in CoNLL-U. Probes are trained on
`--train-size` sentences of TRAIN; single heads are selected and evaluated on random halves of DEV.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from reproduction_page import join_parts, markdown_table, percent_or_empty, wrap_prose, write_numbers

import bertology
from bertology.analyses.head_selection.selection import HELD_OUT_ACCURACY
from bertology.analyses.heads.parsing_probe.analysis import UAS, UAS_BY_SEED
from bertology.results.shapes import Table

PAGE = Path(__file__).with_name("heads-gte-small.md")

ExtraCells = Callable[[Table, int], list[str]]
"""Further cells of a row of a table."""


def tables(model: str, dev: Path, train: Path, train_size: int, dev_limit: int | None) -> str:
    """All tables as Markdown; each is printed as soon as it is measured."""
    encoder = bertology.load(model)
    corpus = bertology.read(dev, limit=dev_limit)
    parts: list[str] = []

    def run(name: str, **options: Any) -> Table:
        table = bertology.run(name, encoder, corpus, **options).data
        assert isinstance(table, Table)
        return table

    def add(title: str, table: Table, measure: str, column: str, columns: tuple[str, ...], extra: ExtraCells) -> None:
        parts.append(f"### {title}\n\n{_format_table(table, measure, column, columns, extra)}")
        print(f"{wrap_prose(parts[-1])}\n", flush=True)

    probe_options = {"train_corpus": str(train), "train_size": train_size}
    heads = run("heads/dependency")
    title = f"Single heads, by relation: {HELD_OUT_ACCURACY}, in percent"
    columns = ("head selected most often", "best head (not held out)", "its correct predictions")
    add(title, heads, HELD_OUT_ACCURACY, HELD_OUT_ACCURACY, columns, _selected_heads)
    probes = run("heads/parsing_probe", **probe_options)
    titles = (
        "Probes over all heads: UAS, in percent",
        "Probes over all heads: UAS, range over three seeds, in percent",
    )
    for title, measure in zip(titles, (UAS, UAS_BY_SEED), strict=True):
        add(title, probes, measure, "UAS", ("",), lambda table, row: [_probe_sample(table, row, model)])
    relations = run("heads/relation_probe", **probe_options)
    for measure in relations.measures:
        title = f"Attention between two words, {measure}: is there a relation, and which one? In percent"
        add(title, relations, measure, measure, ("",), lambda table, row: ["" if row else _relation_sample(table)])
    return join_parts(parts)


def _selected_heads(table: Table, row: int) -> list[str]:
    head, direction, chosen_in, best_head, best_direction, n_correct, n_examples = (
        table.attributes[name][row]
        for name in ("head", "direction", "chosen_in", "best_head", "best_direction", "n_correct", "n_examples")
    )
    return [f"{head} {direction} ({chosen_in:.0%})", f"{best_head} {best_direction}", f"{n_correct} of {n_examples}"]


def _probe_sample(table: Table, row: int, model: str) -> str:
    sizes = table.sample
    text = (
        f"train {sizes['training words']} words of {sizes['training sentences']} sentences, "
        f"test {sizes['test words']} of {sizes['test sentences']}"
    )
    note = table.notes.get(table.row_names[row], "").removesuffix(".").replace(model, Path(model).name)
    return f"{text}; {note[0].lower()}{note[1:]}" if note else text


def _relation_sample(table: Table) -> str:
    return f"train {table.sample['training words']}, test {table.sample['test words']} words with a governor"


def _format_table(table: Table, measure: str, column: str, extra_columns: tuple[str, ...], extra: ExtraCells) -> str:
    """One row per scored row of the table: the measure, its baselines, its sample size and further cells."""
    baselines = [name for name, baseline in table.baselines.items() if measure in baseline]
    rows = [
        [
            name,
            percent_or_empty(table.measures[measure][row]),
            *(percent_or_empty(table.baselines[baseline][measure][row]) for baseline in baselines),
            str(int(table.measures[measure][row].n)),
            *extra(table, row),
        ]
        for row, name in enumerate(table.row_names)
        if table.measures[measure][row].n
    ]
    return markdown_table(("", column, *baselines, "n", *extra_columns), rows)


def main() -> None:
    """Print the tables; with --write, also write them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="model, as for `bertology run --model`")
    parser.add_argument("dev", type=Path, help="CoNLL-U file to test on")
    parser.add_argument("train", type=Path, help="CoNLL-U file to train on")
    parser.add_argument("--train-size", type=int, default=0, help="maximum number of training sentences (0: all)")
    parser.add_argument("--dev-limit", type=int, help="test only on the first N sentences")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    options = parser.parse_args()
    numbers = tables(options.model, options.dev, options.train, options.train_size, options.dev_limit)
    if options.write:
        write_numbers(PAGE, numbers)


if __name__ == "__main__":
    main()
