"""The numbers of properties.md: on which names context gains most, by three properties counted without a model.

    python docs/reproductions/properties.py MODEL NER --limit 400 --write

NER is the folder with `crossner-politics` and the files of WNUT-17. The tables are printed, and put into the page where
that is asked for.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from reproduction_page import markdown_table, written

import bertology
from bertology.corpus.builtin import corpus_named
from bertology.results.estimate import Estimate
from bertology.results.shapes import Table

PAGE = Path(__file__).with_name("properties.md")
CORPORA = {
    "CrossNER politics": ("crossner-politics/train.txt", "crossner-politics/test.txt"),
    "WNUT-17": ("wnut17train.conll", "emerging.dev.conll"),
}
GAINS = ("model - static", "model - random", "static - random")


def tables(options: argparse.Namespace) -> str:
    """A table for each corpus."""
    return "\n\n".join(_of(name, *files, options) for name, files in CORPORA.items())


def _of(name: str, train: str, judged: str, options: argparse.Namespace) -> str:
    encoder = bertology.load(options.model)
    corpus = corpus_named(str(options.ner / judged), format="columns", limit=options.limit or None)
    found = bertology.run(
        "meaning/properties",
        encoder,
        corpus,
        train=str(options.ner / train),
        train_limit=options.train_limit,
        items=options.items,
        seeds=options.seeds,
    ).data
    assert isinstance(found, Table)
    gains = [gain for gain in GAINS if gain in found.measures]
    rows = [
        [row, *(_number(found.measures[gain][place]) for gain in gains)] for place, row in enumerate(found.rows_named)
    ]
    told = "; ".join(dict.fromkeys(found.notes.values())) if found.notes else ""
    return f"### {name}\n\n{told}\n\n{markdown_table(('', *gains), rows)}"


def _number(estimate: Estimate) -> str:
    return f"{estimate.value:+.3f} [{estimate.low:+.3f}, {estimate.high:+.3f}]"


def main() -> None:
    """Print the tables, and write them into the page where asked to."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("ner", type=Path)
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--train-limit", type=int, default=0)
    parser.add_argument("--limit", type=int, default=0, help="the first so many sentences to judge by; 0 for all")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    found = tables(options)
    print(found)
    if options.write:
        PAGE.write_text(written(PAGE.read_text("utf-8"), found), "utf-8")


if __name__ == "__main__":
    main()
