"""Shapes without estimates and baselines: points in the plane, arcs over sentences, and example sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, Field, model_validator

from bertology.estimates.estimate import FloatArrayField
from bertology.results.measured_shape import BaseShape, NumberField, Record

PlanePoints = Annotated[FloatArrayField, AfterValidator(lambda points: points if points.size else _no_points(points))]
"""(..., point, 2); JSON does not say how many axes an array without points has."""


def _no_points(points: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.zeros((*points.shape[:1], 0, 2) if points.ndim > 1 and points.shape[-1] == 0 else (0, 2))


def _check_plane(points: NDArray[np.floating], n_axes: int, n_labels: int, n_groups: int) -> None:
    """Refuse points that are not in the plane, or whose labels or groups differ from them in number."""
    is_plane = points.ndim == n_axes and points.shape[-1] == 2
    n_points = points.shape[-2] if is_plane else 0
    if not (is_plane or not points.size) or n_labels != n_points or n_groups != n_points:
        raise ValueError(f"points of shape {points.shape} have {n_labels} labels and {n_groups} groups")


class Scatter(BaseShape):
    """Labelled points in the plane, coloured by group; `edges` are pairs of points joined by a line, as in a tree."""

    shape: Literal["Scatter"] = "Scatter"
    points: PlanePoints
    labels: tuple[str, ...]
    groups: tuple[str, ...]
    axis_names: tuple[str, str] = ("x", "y")
    edges: tuple[tuple[int, int], ...] = ()

    @model_validator(mode="after")
    def _check_points(self) -> Scatter:
        _check_plane(self.points, 2, len(self.labels), len(self.groups))
        if any(not 0 <= point < len(self.labels) for edge in self.edges for point in edge):
            raise ValueError("an edge joins a point that does not exist")
        return self

    def rows(self) -> Iterator[Record]:
        """One record per point."""
        for (x, y), label, group in zip(self.points, self.labels, self.groups, strict=True):
            yield {self.axis_names[0]: float(x), self.axis_names[1]: float(y), "label": label, "group": group}


class Trajectory(BaseShape):
    """Points that move through the layers: (layer, point, 2)."""

    shape: Literal["Trajectory"] = "Trajectory"
    points: PlanePoints
    labels: tuple[str, ...]
    groups: tuple[str, ...]

    @model_validator(mode="after")
    def _check_points(self) -> Trajectory:
        _check_plane(self.points, 3, len(self.labels), len(self.groups))
        return self

    def rows(self) -> Iterator[Record]:
        """One record per layer and point."""
        for layer, points in enumerate(self.points):
            for (x, y), label, group in zip(points, self.labels, self.groups, strict=True):
                yield {"layer": layer, "x": float(x), "y": float(y), "label": label, "group": group}


class Arc(BaseShape):
    """An edge between two words of a sentence."""

    start: int
    end: int
    label: str = ""
    weight: NumberField = 1.0


class ArcDiagram(BaseShape):
    """A sentence with predicted arcs and, if it is annotated, gold arcs."""

    words: tuple[str, ...]
    arcs: tuple[Arc, ...]
    gold: tuple[Arc, ...] = ()

    @model_validator(mode="after")
    def _check_arcs(self) -> ArcDiagram:
        if any(not 0 <= word < len(self.words) for arc in (*self.arcs, *self.gold) for word in (arc.start, arc.end)):
            raise ValueError("an arc joins a word that does not exist")
        return self


class Arcs(BaseShape):
    """Sentences with arcs between their words; trees without a root are not `directed`."""

    shape: Literal["Arcs"] = "Arcs"
    sentences: tuple[ArcDiagram, ...]
    directed: bool = False

    def rows(self) -> Iterator[Record]:
        """One record per predicted arc."""
        for number, sentence in enumerate(self.sentences, start=1):
            for arc in sentence.arcs:
                words = {"from": sentence.words[arc.start], "to": sentence.words[arc.end]}
                yield {"sentence": number, **words, "label": arc.label, "weight": arc.weight}


class HighlightedSentence(BaseShape):
    """A sentence with highlighted words, by kind of highlight, and a score, which may be missing."""

    words: tuple[str, ...]
    highlights: Mapping[str, tuple[int, ...]] = Field(default_factory=dict)
    score: NumberField = np.nan
    caption: str = ""

    @model_validator(mode="after")
    def _check_highlights(self) -> HighlightedSentence:
        if any(not 0 <= word < len(self.words) for words in self.highlights.values() for word in words):
            raise ValueError("a word that does not exist is highlighted")
        return self


class Examples(BaseShape):
    """Example sentences."""

    shape: Literal["Examples"] = "Examples"
    examples: tuple[HighlightedSentence, ...]

    def rows(self) -> Iterator[Record]:
        """One record per example."""
        for example in self.examples:
            yield {"text": " ".join(example.words), "score": example.score, "caption": example.caption}
