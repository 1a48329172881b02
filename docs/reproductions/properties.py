"""The numbers of properties.md: for which named entities context is worth most, by three properties.

    python docs/reproductions/properties.py MODEL NER --limit 400 --write

NER is the directory with `crossner-politics` and the files of WNUT-17. Without `--write` the tables are only printed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from reproduction_page import join_parts, markdown_table, write_numbers

import bertology
from bertology.corpus.read import load_corpus
from bertology.estimates.estimate import Estimate
from bertology.results.shapes import Table

PAGE = Path(__file__).with_name("properties.md")
CORPORA = {
    "CrossNER politics": ("crossner-politics/train.txt", "crossner-politics/test.txt"),
    "WNUT-17": ("wnut17train.conll", "emerging.dev.conll"),
}
GAINS = ("model - static", "model - random", "static - random")
SHORT_NAMES = {"structural complexity": "complexity", "ambiguity": "ambiguity", "rarity": "rarity"}
ROWS_PER_PROPERTY = 3


def tables(options: argparse.Namespace) -> str:
    """One table per corpus."""
    return join_parts(_corpus_table(name, *files, options) for name, files in CORPORA.items())


def _corpus_table(name: str, train: str, test: str, options: argparse.Namespace) -> str:
    table = bertology.run(
        "features/context_gain",
        bertology.load(options.model),
        load_corpus(str(options.ner / test), format="conll", limit=options.limit or None),
        train_corpus=str(options.ner / train),
        train_size=options.train_size,
        sample_size=options.sample_size,
        n_seeds=options.n_seeds,
    ).data
    assert isinstance(table, Table)
    gains = [gain for gain in GAINS if gain in table.measures]
    rows = [
        [row_name, *(_format(table.measures[gain][row]) for gain in gains)]
        for row, row_name in enumerate(table.row_names)
    ]
    properties = "; ".join(_property(table, row) for row in range(0, len(table.row_names), ROWS_PER_PROPERTY))
    return f"### {name}\n\n{properties}\n\n{markdown_table(('', *gains), rows)}"


def _property(table: Table, row: int) -> str:
    """The distribution of the property of a row, and its rank correlations with the properties before it."""
    values = {name: column[row] for name, column in table.attributes.items()}
    parts = [f"{values['n_defined']} entities in {table.sample['test examples']} texts"]
    if values["n_defined"]:
        low, high, median = (f"{values[name]:.3g}" for name in ("minimum", "maximum", "median"))
        parts[0] += f", from {low} to {high}, median {median}"
    if values["n_undefined"]:
        parts.append(f"{values['n_undefined']} without a word that occurs in training")
    property_names = [name.partition(":")[0] for name in table.row_names]
    for earlier in dict.fromkeys(property_names[:row]):
        correlation = values[f"Spearman with {earlier}"]
        if correlation is not None:
            parts.append(f"rank correlation with {SHORT_NAMES[earlier]} {correlation:.2f}")
    return "; ".join(parts)


def _format(estimate: Estimate) -> str:
    return f"{estimate.value:+.3f} [{estimate.low:+.3f}, {estimate.high:+.3f}]"


def main() -> None:
    """Print the tables; with --write, also write them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="model, as for `bertology run --model`")
    parser.add_argument("ner", type=Path, help="directory with the NER corpora")
    parser.add_argument("--sample-size", type=int, default=400, help="maximum number of test sentences")
    parser.add_argument("--train-size", type=int, default=0, help="maximum number of training sentences (0: all)")
    parser.add_argument("--limit", type=int, default=0, help="test only on the first N sentences (0: all)")
    parser.add_argument("--n-seeds", type=int, default=3, help="number of repetitions")
    parser.add_argument("--write", action="store_true", help="write the tables into the page")
    options = parser.parse_args()
    numbers = tables(options)
    print(numbers)
    if options.write:
        write_numbers(PAGE, numbers)


if __name__ == "__main__":
    main()
