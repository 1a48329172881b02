"""What is known about an item as a whole: `name=value` pairs in its source, for an analysis to group by or regress on.

A generated item's source reads `condition=A3;distractors=1;mismatch=0;distance=6`. The published Open Sesame files are
named after their conditions, so the condition of an item read from `agr.13` or `refl.5` is known too.
"""

from __future__ import annotations

from collections.abc import Mapping

from bertology.corpus.corpus import Item

AGREEMENT_CELLS = {
    f"agr.{cell}": condition
    for condition, cells in {
        "A0": (0, 1, 2, 3),
        "A1": (4, 5, 10, 11),
        "A2": (6, 7, 8, 9),
        "A3": (12, 13, 18, 19),
        "A4": (14, 15, 16, 17),
    }.items()
    for cell in cells
}
"""The file of the published set that holds a cell of the design -> its condition in the paper's table 2 (lin2019)."""

REFLEXIVE_CELLS = {f"refl.{number}": f"R{number}" for number in range(9)}


def factors(item: Item) -> dict[str, str]:
    """The item's factors by name; none where its source is not of this form."""
    published = (AGREEMENT_CELLS | REFLEXIVE_CELLS).get(item.source)
    if published is not None:
        return {"condition": published, "cell": item.source}
    pairs = [pair.partition("=") for pair in item.source.split(";")]
    return {name: value for name, equals, value in pairs if equals}


def as_source(values: Mapping[str, str]) -> str:
    """The factors as an item's source."""
    return ";".join(f"{name}={value}" for name, value in values.items())
