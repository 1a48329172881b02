"""One result of every shape, with a missing value, long names and names that could break HTML."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np

from bertology.estimates.estimate import Estimates
from bertology.results.illustrations import Arc, ArcDiagram, Arcs, Examples, HighlightedSentence, Scatter, Trajectory
from bertology.results.result import Result
from bertology.results.shapes import Curve, HeadGrid, LayerCurve, Matrix, Shape, Table

LONG_NAME = "proportion of attention to a target whose name is so long that no panel of any figure has space for it"
ROW_NAMES = ("det", LONG_NAME, "</script>", "a.b[0]'\"", "东京")
SPECIAL_TOKENS = "Special tokens: excluded as sources and targets."


def estimates(*shape: int, missing: bool = True) -> Estimates:
    """Values from 0.2 to 0.8, the second of them missing."""
    value = np.linspace(0.2, 0.8, int(np.prod(shape)))
    if missing:
        value[1] = np.nan
    value = value.reshape(shape)
    return Estimates(value=value, low=value - 0.05, high=value + 0.05, n=np.where(np.isnan(value), 0, 7))


def measures_and_baselines(*shape: int, missing: bool = True) -> dict[str, Any]:
    """Two measures: one with a unit and two baselines, one with a long name and one baseline."""
    uniform = Estimates.exact(np.full(shape, 0.5))
    measures = {"mass": estimates(*shape, missing=missing), LONG_NAME: estimates(*shape, missing=False)}
    baselines = {
        "uniform attention": {"mass": uniform, LONG_NAME: uniform},
        "untrained model": {"mass": estimates(*shape, missing=False)},
    }
    return {"measures": measures, "baselines": baselines, "units": {"mass": "proportion, 0 to 1"}}


def result(data: Shape) -> Result:
    """A result with the data."""
    inputs = {"model": {"model": {"name": "a-model"}, "corpus": {"name": "a-corpus"}}}
    provenance = {"special_tokens": SPECIAL_TOKENS}
    options = {"seed": 1, "show": "layers"}
    return Result(
        analysis="group/name", version=1, options=options, inputs=inputs, n=7, data=data, provenance=provenance
    )


POINTS = np.array([[0.0, 0.0], [1.0, 2.0], [np.nan, np.nan], [3.0, 1.0]])
ARCS = (Arc(start=1, end=0, label="det", weight=0.5), Arc(start=2, end=2, weight=float("nan")))
SHAPES: dict[str, Shape] = {
    "HeadGrid": HeadGrid(**measures_and_baselines(3, 4)),
    "LayerCurve": LayerCurve(**measures_and_baselines(5), first_layer=1),
    "Curve": Curve(**measures_and_baselines(4), x_name="examples", x=np.array([1.0, 10, 100, 1000])),
    "Matrix": Matrix(**measures_and_baselines(5, 5), row_names=ROW_NAMES, column_names=ROW_NAMES),
    "Table": Table(
        **measures_and_baselines(5),
        row_names=ROW_NAMES,
        attributes={"head": ("1-2", "2-1", None, "1-1", "2-2"), "n_examples": (7, 0, 7, 7, 7)},
        notes={"det": "few"},
    ),
    "Scatter": Scatter(points=POINTS, labels=("a", "b", "c", "d"), groups=("g", "h", "g", "h")),
    "Trajectory": Trajectory(points=np.stack([POINTS, POINTS + 1]), labels=("a", "b", "c", "d"), groups=("g",) * 4),
    "Arcs": Arcs(sentences=(ArcDiagram(words=("The", "dog", "</script>"), arcs=ARCS, gold=ARCS[:1]),)),
    "Examples": Examples(
        examples=(
            HighlightedSentence(
                words=("The", "</script>", "NAME"), highlights={"a": (0,), "b": (0, 1)}, score=0.5, caption=LONG_NAME
            ),
            HighlightedSentence(words=("longest",) * 60, score=float("nan")),
        )
    ),
}
EMPTY_SHAPES: dict[str, Shape] = {
    "Scatter": Scatter(points=np.zeros((0, 2)), labels=(), groups=()),
    "Arcs": Arcs(sentences=()),
    "Examples": Examples(examples=()),
}
MEASURED = ("HeadGrid", "LayerCurve", "Curve", "Matrix", "Table")


class ParsedFigure:
    """The figure of a shape, parsed: its marks with their tooltips, and its text."""

    def __init__(self, data: Shape) -> None:
        self.svg = result(data).figure().svg
        self.root = ElementTree.fromstring(self.svg)

    def marks(self, tag: str, tip: str = "") -> list[str]:
        """The tooltips of all elements of a kind that have one containing `tip`."""
        titles = [node.find("{*}title") for node in self.root.iter(f"{{http://www.w3.org/2000/svg}}{tag}")]
        return [title.text or "" for title in titles if title is not None and tip in (title.text or "")]

    def elements(self, class_: str) -> list[ElementTree.Element]:
        """The elements of a class."""
        return [node for node in self.root.iter() if class_ in node.get("class", "").split()]

    @property
    def text(self) -> str:
        """All text on the figure, without tooltips."""
        nodes = self.root.iter("{http://www.w3.org/2000/svg}text")
        return " ".join(node.text or "" for node in nodes)
