"""The closed set of result shapes: what an analysis may return, and what a view must be able to draw.

Shapes that make a claim carry `baselines`: what each measure would be by chance, under a name that says which chance.
Every measure is an array of estimates along the shape's own axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from bertology.results.estimate import Estimates, FloatArray

Measures = Mapping[str, Estimates]
Baselines = Mapping[str, Measures]
Row = dict[str, Any]


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")


class _Measured(_Shape):
    """A shape whose numbers are estimates beside baselines.

    `units` says what each measure counts in and between which extremes it lies.
    """

    measures: Measures
    baselines: Baselines
    units: Mapping[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _has_company(self) -> _Measured:
        if not self.measures:
            raise ValueError("a result needs at least one measure")
        if not self.baselines:
            raise ValueError("a result that makes a claim needs at least one baseline")
        for name, baseline in self.baselines.items():
            unknown = set(baseline) - set(self.measures)
            if unknown:
                raise ValueError(f"baseline {name!r} is for measures that are not there: {sorted(unknown)}")
            for measure, estimates in baseline.items():
                if estimates.shape != self.measures[measure].shape:
                    raise ValueError(f"baseline {name!r} of {measure!r} differs from it in shape")
        return self

    def _axes(self, index: tuple[int, ...]) -> Row:
        raise NotImplementedError

    def rows(self) -> Iterator[Row]:
        """Tidy records: one a number, with its interval and each baseline's value."""
        for measure, estimates in self.measures.items():
            for index in np.ndindex(*estimates.shape):
                row: Row = {**self._axes(index), "measure": measure, "unit": self.units.get(measure, "")}
                row |= {field: getattr(estimates, field)[index].item() for field in ("value", "low", "high", "n")}
                for name, baseline in self.baselines.items():
                    if measure in baseline:
                        row[f"baseline {name}"] = baseline[measure].value[index].item()
                yield row


class HeadGrid(_Measured):
    """(layer, head) for each measure."""

    shape: Literal["HeadGrid"] = "HeadGrid"

    def _axes(self, index: tuple[int, ...]) -> Row:
        return {"head": str(Head(*index)), "layer": index[0], "head_index": index[1]}


class LayerCurve(_Measured):
    """(layer,) for each measure; `first` is 0 where the embeddings count as layer 0, 1 where layers attend."""

    shape: Literal["LayerCurve"] = "LayerCurve"
    first: int = 0

    def _axes(self, index: tuple[int, ...]) -> Row:
        return {"layer": index[0] + self.first}


class Curve(_Measured):
    """(point,) for each measure along a named quantity: data size, heads left, rank."""

    shape: Literal["Curve"] = "Curve"
    along: str
    points: FloatArray

    def _axes(self, index: tuple[int, ...]) -> Row:
        return {self.along: float(self.points[index[0]])}


class Matrix(_Measured):
    """(row, column) for each measure, both named."""

    shape: Literal["Matrix"] = "Matrix"
    rows_named: tuple[str, ...]
    columns_named: tuple[str, ...]

    def _axes(self, index: tuple[int, ...]) -> Row:
        return {"row": self.rows_named[index[0]], "column": self.columns_named[index[1]]}


FEW_ROWS = 3
"""So many rows of a table without a number are shown as such."""


class Table(_Measured):
    """(row,) for each measure: a table whose rows are named and whose columns are the measures."""

    shape: Literal["Table"] = "Table"
    rows_named: tuple[str, ...]
    notes: Mapping[str, str] = Field(default_factory=dict)

    def _axes(self, index: tuple[int, ...]) -> Row:
        name = self.rows_named[index[0]]
        return {"row": name} | ({"note": self.notes[name]} if name in self.notes else {})

    def empty_rows(self) -> tuple[int, ...]:
        """Rows in which nothing was measured, to be named in a line; none where they are few, or all there is."""
        known = np.isfinite(np.stack([estimates.value for estimates in self.measures.values()])).any(0)
        empty = np.flatnonzero(~known).tolist()
        return tuple(empty) if FEW_ROWS < len(empty) < len(self.rows_named) else ()


class Scatter(_Shape):
    """Points in the plane, each with a label and a group; a picture, so it claims nothing by itself.

    `edges` are pairs of points that are joined by a line, such as a tree's.
    """

    shape: Literal["Scatter"] = "Scatter"
    points: FloatArray
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    axes_named: tuple[str, str] = ("x", "y")
    edges: tuple[tuple[int, int], ...] = ()

    def rows(self) -> Iterator[Row]:
        """One record a point."""
        for (x, y), label, group in zip(self.points, self.labels, self.groups, strict=True):
            yield {self.axes_named[0]: float(x), self.axes_named[1]: float(y), "label": label, "group": group}


class Trajectory(_Shape):
    """Points through layers: (layer, item, 2)."""

    shape: Literal["Trajectory"] = "Trajectory"
    points: FloatArray
    labels: tuple[str, ...]
    groups: tuple[str, ...]

    def rows(self) -> Iterator[Row]:
        """One record a point and layer."""
        for layer, points in enumerate(self.points):
            for (x, y), label, group in zip(points, self.labels, self.groups, strict=True):
                yield {"layer": layer, "x": float(x), "y": float(y), "label": label, "group": group}


class Arc(_Shape):
    """An edge over a sentence, from word to word."""

    start: int
    end: int
    label: str = ""
    weight: float = 1.0


class ArcDiagram(_Shape):
    """One sentence and the edges over it; `gold` marks what was annotated."""

    words: tuple[str, ...]
    arcs: tuple[Arc, ...]
    gold: tuple[Arc, ...] = ()


class Arcs(_Shape):
    """Edges over sentences."""

    shape: Literal["Arcs"] = "Arcs"
    sentences: tuple[ArcDiagram, ...]

    def rows(self) -> Iterator[Row]:
        """One record an edge."""
        for number, sentence in enumerate(self.sentences):
            for arc in sentence.arcs:
                words = {"from": sentence.words[arc.start], "to": sentence.words[arc.end]}
                yield {"sentence": number, **words, "label": arc.label, "weight": arc.weight}


class Example(_Shape):
    """One sentence that shows something: its words, which of them are marked, and a score."""

    words: tuple[str, ...]
    marked: Mapping[str, tuple[int, ...]] = Field(default_factory=dict)
    score: float | None = None
    caption: str = ""


class Examples(_Shape):
    """Sentences that show something."""

    shape: Literal["Examples"] = "Examples"
    examples: tuple[Example, ...]

    def rows(self) -> Iterator[Row]:
        """One record an example."""
        for example in self.examples:
            yield {"text": " ".join(example.words), "score": example.score, "caption": example.caption}


Picture = Scatter | Trajectory | Arcs | Examples
"""Shapes that claim nothing: their numbers are not estimates."""
Shape = Annotated[
    HeadGrid | LayerCurve | Curve | Matrix | Table | Scatter | Trajectory | Arcs | Examples,
    Field(discriminator="shape"),
]


class Head(tuple[int, int]):
    """A head by its 0-based layer and index; printed 1-based as `layer-head`, the way Clark et al. write 8-11."""

    def __new__(cls, layer: int, head: int) -> Head:
        """From 0-based indices."""
        return super().__new__(cls, (layer, head))

    @classmethod
    def parse(cls, text: str) -> Head:
        """From the printed form, `8-11`."""
        layer, head = text.split("-")
        return cls(int(layer) - 1, int(head) - 1)

    def __str__(self) -> str:
        return f"{self[0] + 1}-{self[1] + 1}"
