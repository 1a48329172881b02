"""Write the first table of every reproduction page, and index.md with the rows of all pages.

    python docs/reproductions/index.py

Run it after the numbers of a page or its `.toml` have changed.
"""

from __future__ import annotations

from collections import Counter
from typing import get_args

from comparisons import FOLDER, Agreement, comparison_table, comparisons_of, frame, page_names
from reproduction_page import join_parts, replace_part

INDEX = FOLDER / "index.md"
COLUMNS = ("finding", "published", "here", "same direction", "page")


def index() -> str:
    """The index as Markdown."""
    rows = [row for page in page_names() for row in comparisons_of(page)]
    counts = Counter(row.agrees for row in rows)
    tally = ", ".join(f"{counts[agreement]} {agreement}" for agreement in get_args(Agreement))
    lines = [
        (
            f"[{row.finding}]({row.page}.md#{row.id})",
            row.published_cell,
            row.our_cell,
            row.agrees,
            f"[{row.topic}]({row.page}.md)",
        )
        for row in rows
    ]
    parts = [
        "---\nhide: [toc]\n---",
        "# Reproductions",
        f"{len(rows)} published findings, measured again on models that we have, on {len(page_names())} pages. Is the "
        f"direction the same? {tally}. *In part* means that a part of the finding, one of the models or one of the "
        "data sets agrees; *undecided*, that our data are too few to tell. A finding links to its row, which says why "
        "the values differ, and the page explains it. Scripts computed our numbers.",
        frame(COLUMNS, lines),
    ]
    return join_parts(parts) + "\n"


if __name__ == "__main__":
    for name in page_names():
        file = FOLDER / f"{name}.md"
        file.write_text(replace_part(file.read_text("utf-8"), "comparisons", comparison_table(name)), "utf-8")
    INDEX.write_text(index(), "utf-8")
