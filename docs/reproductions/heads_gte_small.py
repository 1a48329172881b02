"""The numbers of heads-gte-small.md: what single heads and probes over all heads of an encoder know of dependencies.

    python docs/reproductions/heads_gte_small.py MODEL DEV TRAIN                       # prints the tables
    python docs/reproductions/heads_gte_small.py MODEL DEV TRAIN --limit 4000 --write  # and puts them into the page

MODEL is a model as `bertology run` takes it, DEV and TRAIN are treebanks in CoNLL-U. Probes learn from the first
`--limit` sentences of TRAIN; single heads are chosen and scored on two halves of DEV.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from reproduction_page import markdown_table, written

import bertology
from bertology.encoder.encoder import Encoder
from bertology.results.estimate import Estimate
from bertology.results.shapes import Table

PAGE = Path(__file__).with_name("heads-gte-small.md")


def tables(model: str, dev: Path, train: Path, limit: int, dev_limit: int | None) -> str:
    """All tables as Markdown."""
    encoder = bertology.load(model)
    corpus = bertology.read(dev, limit=dev_limit)
    learns = {"train": str(train), "train_limit": limit}
    parts: list[str] = []
    for title, name, measure, options in (
        ("Single heads, by relation: held-out accuracy", "heads/dependency", "held-out accuracy", {}),
        ("Probes over all heads: UAS", "heads/probe", "UAS", learns),
        ("Probes over all heads, three seeds: UAS, lowest to highest", "heads/probe", "UAS by seed", learns),
        ("Attention between two words: is there a relation, and which?", "heads/relations", None, learns),
    ):
        table = _ran(name, encoder, corpus, options)
        shown = [measure] if measure else list(table.measures)
        parts += [f"### {title}, in percent\n\n{_of(table, one)}" for one in shown]
        print(parts[-1], flush=True)
    return "\n\n".join(parts)


_known: dict[str, Table] = {}


def _ran(name: str, encoder: Encoder, corpus: bertology.Corpus, options: dict[str, object]) -> Table:
    if name not in _known:
        table = bertology.run(name, encoder, corpus, **options).data
        assert isinstance(table, Table)
        _known[name] = table
    return _known[name]


def _of(table: Table, measure: str) -> str:
    baselines = [name for name, baseline in table.baselines.items() if measure in baseline]
    rows = [
        [
            row,
            _percent(table.measures[measure][place]),
            *(_percent(table.baselines[name][measure][place]) for name in baselines),
            str(int(table.measures[measure][place].n)),
            "; ".join(table.notes.get(row, "").split("; ")[:2]),
        ]
        for place, row in enumerate(table.rows_named)
        if table.measures[measure][place].n
    ]
    return markdown_table(("", measure, *baselines, "sentences or seeds", ""), rows)


def _percent(estimate: Estimate) -> str:
    if not estimate.n or estimate.value != estimate.value:
        return ""
    return f"{100 * estimate.value:.1f} [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def main() -> None:
    """Print the tables; with --write put them into the page."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="a model, as `bertology run --model` takes it")
    parser.add_argument("dev", type=Path, help="CoNLL-U to judge on")
    parser.add_argument("train", type=Path, help="CoNLL-U to learn from")
    parser.add_argument("--limit", type=int, default=0, help="learn from the first sentences alone; 0 for all")
    parser.add_argument("--dev-limit", type=int, help="judge on the first sentences alone")
    parser.add_argument("--write", action="store_true", help="put the tables into the page")
    options = parser.parse_args()
    numbers = tables(options.model, options.dev, options.train, options.limit, options.dev_limit)
    if options.write:
        text = PAGE.read_text("utf-8")
        text = written(text, numbers)
        PAGE.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
