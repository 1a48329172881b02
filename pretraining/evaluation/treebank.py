"""A reader of CoNLL-U for the columns that the evaluation needs."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Tree:
    """One sentence: words, universal tags, 0-based governors (-1 for the root), relations and document."""

    words: tuple[str, ...]
    tags: tuple[str, ...]
    governors: tuple[int, ...]
    relations: tuple[str, ...]
    document: str


def read_trees(path: Path) -> list[Tree]:
    """All sentences in file order, without multi-word ranges and empty nodes, as in UD's tools."""
    trees: list[Tree] = []
    rows: list[list[str]] = []
    document = ""
    for line in [*path.read_text(encoding="utf-8").split("\n"), ""]:
        if line.startswith("# newdoc id = "):
            document = line.removeprefix("# newdoc id = ")
        elif line and not line.startswith("#"):
            columns = line.split("\t")
            if columns[0].isdigit():
                rows.append(columns)
        elif not line and rows:
            trees.append(_tree(rows, document))
            rows = []
    return trees


def _tree(rows: list[list[str]], document: str) -> Tree:
    return Tree(
        words=tuple(row[1] for row in rows),
        tags=tuple(row[3] for row in rows),
        governors=tuple(int(row[6]) - 1 for row in rows),
        relations=tuple(row[7] for row in rows),
        document=document,
    )
