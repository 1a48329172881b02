"""One result of every shape for the figures' tests, with a gap, long names and names that could break a page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as Tree
from collections.abc import Iterator
from typing import Any

import numpy as np

from bertology.results.charts.files import svg
from bertology.results.estimate import Estimates
from bertology.results.result import Result
from bertology.results.shapes import (
    Arc,
    ArcDiagram,
    Arcs,
    Curve,
    Example,
    Examples,
    HeadGrid,
    LayerCurve,
    Matrix,
    Scatter,
    Shape,
    Table,
    Trajectory,
)

LONG = "share of attention on a target whose name is so long that no panel of any figure could hold it on a line"
ROWS = ("det", LONG, "</script>", "a.b[0]'\"", "东京")
SPECIAL = "special tokens are left out"


def estimates(*shape: int, gap: bool = True) -> Estimates:
    """Numbers in [0.2, 0.8], the second of them missing."""
    value = np.linspace(0.2, 0.8, int(np.prod(shape)))
    if gap:
        value[1] = np.nan
    value = value.reshape(shape)
    return Estimates(value=value, low=value - 0.05, high=value + 0.05, n=np.where(np.isnan(value), 0, 7))


def measured(*shape: int, gap: bool = True) -> dict[str, Any]:
    """Two measures, one with a unit and two baselines, one with a long name."""
    chance = Estimates.exact(np.full(shape, 0.5))
    measures = {"share": estimates(*shape, gap=gap), LONG: estimates(*shape, gap=False)}
    baselines = {
        "uniform attention": {"share": chance, LONG: chance},
        "random weights": {"share": estimates(*shape, gap=False)},
    }
    return {"measures": measures, "baselines": baselines, "units": {"share": "share, 0 to 1"}}


def result(data: Shape) -> Result:
    """A result around the data."""
    inputs = {"recording": {"model": {"name": "a-model"}, "corpus": {"name": "a-corpus"}}}
    provenance = {"special_tokens": SPECIAL}
    options = {"seed": 1, "by": "layer"}
    return Result(
        analysis="group/name", version=1, options=options, inputs=inputs, n=7, data=data, provenance=provenance
    )


POINTS = np.array([[0.0, 0.0], [1.0, 2.0], [np.nan, np.nan], [3.0, 1.0]])
ARCS = (Arc(start=1, end=0, label="det", weight=0.5), Arc(start=2, end=2, weight=float("nan")))
EVERY: dict[str, Shape] = {
    "HeadGrid": HeadGrid(**measured(3, 4)),
    "LayerCurve": LayerCurve(**measured(5), first=1),
    "Curve": Curve(**measured(4), along="examples", points=np.array([1.0, 10, 100, 1000])),
    "Matrix": Matrix(**measured(5, 5), rows_named=ROWS, columns_named=ROWS),
    "Table": Table(**measured(5), rows_named=ROWS, notes={"det": "few"}),
    "Scatter": Scatter(points=POINTS, labels=("a", "b", "c", "d"), groups=("g", "h", "g", "h")),
    "Trajectory": Trajectory(points=np.stack([POINTS, POINTS + 1]), labels=("a", "b", "c", "d"), groups=("g",) * 4),
    "Arcs": Arcs(sentences=(ArcDiagram(words=("The", "dog", "</script>"), arcs=ARCS, gold=ARCS[:1]),)),
    "Examples": Examples(
        examples=(
            Example(words=("The", "</script>", "NAME"), marked={"a": (0,), "b": (0, 1)}, score=0.5, caption=LONG),
            Example(words=("longest",) * 60, score=float("nan")),
        )
    ),
}  # fmt: skip
EMPTY: dict[str, Shape] = {
    "Scatter": Scatter(points=np.zeros((0, 2)), labels=(), groups=()),
    "Arcs": Arcs(sentences=()),
    "Examples": Examples(examples=()),
}


class Drawn:
    """What a figure shows once it is drawn: its marks by kind, and its words."""

    def __init__(self, data: Shape) -> None:
        self.text = svg(result(data), "light")
        self.tree = Tree.fromstring(self.text)

    def marks(self, kind: str, containing: str = "") -> list[str]:
        """The descriptions of all marks of a kind (`rect`, `symbol`, `rule`, `line`, `area`, `text`)."""
        return [label for found, label in self._marks() if found == kind and containing in label]

    def _marks(self) -> Iterator[tuple[str, str]]:
        for group in self.tree.iter("{http://www.w3.org/2000/svg}g"):
            if named := re.match(r"mark-(\w+) role-mark ", group.get("class", "")):
                yield from ((named.group(1), mark.get("aria-label", mark.text or "")) for mark in group)

    @property
    def words(self) -> str:
        """All the text of the figure."""
        return " ".join(" ".join(node.itertext()) for node in self.tree.iter("{http://www.w3.org/2000/svg}text"))
