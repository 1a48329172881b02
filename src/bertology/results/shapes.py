"""The nine shapes a result can have; every shape can be drawn, stored as JSON and turned into tidy records.

Shapes with measures need `baselines`: the same measure for chance, an untrained model or a simpler method. A measure is
an array of estimates along the axes of its shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    PrivateAttr,
    model_validator,
)

from bertology.arrays import IntArray
from bertology.encoder.encoder import Head as Head
from bertology.errors import count_noun
from bertology.estimates.estimate import Estimates, FloatArrayField
from bertology.estimates.resampling import paired_difference
from bertology.results.answers import Answer, AnswerSource

Measures = Mapping[str, Estimates]
Baselines = Mapping[str, Measures]
Record = dict[str, Any]
N_KEPT_RESAMPLES = 200
"""So many resamples are kept with a result: enough for the standard error of a difference between two models."""
AttributeValue = str | int | float | bool | None


class Resamples(NamedTuple):
    """(resample, ...) values, and the (...) number of rows that were resampled: equal rows alike in every model."""

    values: NDArray[np.floating]
    n_rows: IntArray


KeptResamples = Mapping[tuple[str, str], Resamples]
"""Resamples by series, which is `model` or the name of a baseline, and measure."""

NumberField = Annotated[
    float,
    BeforeValidator(lambda value: np.nan if value is None else value),
    PlainSerializer(lambda value: value if np.isfinite(value) else None, when_used="json"),
]
"""A number that may be missing: NaN, and null in JSON."""


def gain_measure(measure: str) -> str:
    """The name of the measure that says what the second half of the training data adds to a score of a probe."""
    return f"{measure} - {measure} (half the training data)"


def change_measure(difference: str) -> str:
    """The name of the measure that says how the second half of the training data changes a difference of two probes.

    A score rises with more data; a difference may rise or fall.
    """
    return f"change of ({difference}) from half the training data"


MODEL_SERIES = "model"
"""The series of a record that is about the model; the records of baselines have the baseline's name."""


class _Shape(BaseModel):
    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")


class ReferenceScore(_Shape):
    """The score of an intact or fully trained model, beside its baseline on the same examples.

    Other scores are compared with it. Where it is no better than the baseline, there was nothing to lose: differences
    from it say nothing about the model. `difference` is paired; each estimate is a single number.
    """

    name: str
    baseline: str
    metric: str = "score"
    score: Estimates
    baseline_score: Estimates
    difference: Estimates

    @model_validator(mode="after")
    def _check_single_numbers(self) -> ReferenceScore:
        if self.score.shape or self.baseline_score.shape or self.difference.shape:
            raise ValueError("a reference is not a single number")
        return self

    @property
    def is_above_baseline(self) -> bool:
        """Whether the whole interval of the difference lies above 0."""
        return self.difference[()].clearly_above(0.0)

    def describe(self) -> str:
        """The scores as a sentence if the reference is not clearly better than its baseline; else empty."""
        if self.is_above_baseline:
            return ""
        difference = self.difference[()]
        baseline = f"{self.baseline}, {self.baseline_score[()]} (difference {difference}, n = {difference.n})"
        if difference.value > 0:
            return (
                f"Nothing learnt for certain: {self.name} scores {self.score[()]}, not distinguishable from "
                f"{baseline}. Differences from this score may say nothing about the model; more examples would tell."
            )
        return (
            f"Nothing learnt that could be lost: {self.name} scores {self.score[()]}, no better than {baseline}. "
            "Differences from this score say nothing about the model."
        )


class CostMeasures(_Shape):
    """The measures that say what removing a part costs; the loss is the higher, the more the part is needed.

    `score` and `p_value` are empty if they were not measured. p values are two-sided and corrected for their number.
    """

    loss: str
    score: str = ""
    p_value: str = ""


class RemovalCosts(_Shape):
    """What was removed from a model, and which measures say what that costs.

    `part` is what the rows of the shape are: `head`, `layer`, `heads`. `operations` has the measures by what was done
    to the part, such as `skip`; the empty name says that it was removed.
    """

    part: str
    metric: str
    operations: Mapping[str, CostMeasures]
    significance_level: float = 0.05


class _MeasuredShape(_Shape):
    """A shape with estimates and baselines.

    `units` gives the unit and range of each measure, `sample` the sizes of what was measured: training and test
    examples, labels, skipped sentences. `not_measured` gives the reason for each measure that could not be taken.
    `reference` is the score that others are compared with, if the analysis trains or evaluates a task. `costs` says
    how to read the measures of an intervention that removes parts one by one. `paired_differences` are measures minus
    baselines that were resampled on the same examples; their intervals are those of the differences.
    """

    measures: Measures
    baselines: Baselines
    paired_differences: Baselines = Field(default_factory=dict)
    units: Mapping[str, str] = Field(default_factory=dict)
    sample: Mapping[str, int | float] = Field(default_factory=dict)
    not_measured: Mapping[str, str] = Field(default_factory=dict)
    reference: ReferenceScore | None = None
    costs: RemovalCosts | None = None
    _answers: AnswerSource | None = PrivateAttr(default=None)
    _kept_resamples: KeptResamples = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _check_baselines(self) -> _MeasuredShape:
        if not self.measures:
            raise ValueError("a result needs at least one measure")
        if not self.baselines:
            raise ValueError("a result with measures needs at least one baseline")
        for name, baseline in self.baselines.items():
            unknown = set(baseline) - set(self.measures)
            if unknown:
                raise ValueError(f"baseline {name!r} has unknown measures: {sorted(unknown)}")
            for measure, estimates in baseline.items():
                if estimates.shape != self.measures[measure].shape:
                    raise ValueError(f"baseline {name!r} and measure {measure!r} differ in shape")
        for name, differences in self.paired_differences.items():
            for measure, estimates in differences.items():
                if measure not in self.measures or estimates.shape != self.measures[measure].shape:
                    raise ValueError(f"the paired difference of {measure!r} from {name!r} does not fit the measure")
        for operation in self.costs.operations.values() if self.costs is not None else ():
            unknown = {operation.loss, operation.score, operation.p_value} - {"", *self.measures}
            if unknown:
                raise ValueError(f"costs name unknown measures: {sorted(unknown)}")
        for measure, estimates in self.measures.items():
            expected = self._expected_shape()
            sizes = zip(estimates.shape, expected, strict=False)
            if len(estimates.shape) != len(expected) or any(known not in (None, size) for size, known in sizes):
                raise ValueError(f"the measure {measure!r} has the shape {estimates.shape}")
        return self

    def _expected_shape(self) -> tuple[int | None, ...]:
        """The sizes of the axes of a measure, None for one that any number fits."""
        raise NotImplementedError

    def with_paired_differences(self) -> Self:
        """The same numbers with their paired differences from the baselines, and without resampled values."""
        differences = {
            name: {
                measure: difference
                for measure, estimates in measures.items()
                if (difference := paired_difference(self.measures[measure], estimates)) is not None
            }
            for name, measures in self.baselines.items()
        }
        kept = {
            (series, measure): Resamples(estimates.resampled[:N_KEPT_RESAMPLES].astype(np.float32), estimates.n_rows)
            for series, measures in {MODEL_SERIES: self.measures, **self.baselines}.items()
            for measure, estimates in measures.items()
            if estimates.resampled is not None
        }
        stripped = self.model_copy(
            update={
                "measures": _without_resampled(self.measures),
                "baselines": {name: _without_resampled(measures) for name, measures in self.baselines.items()},
                "paired_differences": {name: measures for name, measures in differences.items() if measures},
            }
        )
        return stripped.with_kept_resamples({**kept, **self._kept_resamples})

    def with_kept_resamples(self, resamples: KeptResamples) -> Self:
        """The same numbers with resamples by series and measure, to compare models resample by resample.

        They are stored beside a result, not in its JSON.
        """
        copy = self.model_copy()
        copy._kept_resamples = resamples
        return copy

    @property
    def kept_resamples(self) -> KeptResamples:
        """Resamples by series (`model` or a baseline) and measure; none if read from JSON."""
        return self._kept_resamples

    def with_answers(self, answers: AnswerSource) -> Self:
        """The same numbers with the answers to single items, which are not stored with them."""
        copy = self.model_copy()
        copy._answers = answers
        return copy

    def answers(self) -> list[Answer]:
        """What was predicted for each item (see `results/answers.py`); none if read from JSON."""
        return list(self._answers()) if self._answers is not None else []

    @property
    def has_headline(self) -> bool:
        """Whether something is to be read before the numbers; see `results/headline.py`."""
        return self.reference is not None or self.costs is not None

    def baselines_of(self, measure: str) -> dict[str, Estimates]:
        """The baselines that have this measure, by name."""
        return {name: measures[measure] for name, measures in self.baselines.items() if measure in measures}

    def describe_sample(self) -> str:
        """`sample` as a sentence: "Sample: 3 labels, 225 train words."; empty if there is none."""
        counts = [count_noun(v, k) if isinstance(v, int) else f"{k} {v:.3g}" for k, v in self.sample.items()]
        return f"Sample: {', '.join(counts)}." if counts else ""

    def describe_units(self) -> str:
        """`units` as a sentence; measures with the same unit stand together. Empty if there are none."""
        names: dict[str, list[str]] = {}
        for measure in self.measures:
            if self.units.get(measure):
                names.setdefault(self.units[measure], []).append(measure)
        if len(names) == 1 < len(self.measures) == len(next(iter(names.values()))):
            return f"Unit of all measures: {next(iter(names))}."
        by_unit = "; ".join(f"{', '.join(measures)}: {unit}" for unit, measures in names.items())
        return f"Units: {by_unit}." if by_unit else ""

    def describe_reference(self) -> str:
        """What stands before all numbers: that the reference is no better than its baseline; else empty."""
        return self.reference.describe() if self.reference is not None else ""

    def describe_not_measured(self) -> str:
        """`not_measured` as a sentence; empty if nothing is missing."""
        return " ".join(f"Not measured: {measure} ({reason})." for measure, reason in self.not_measured.items())

    def __repr__(self) -> str:
        size = " x ".join(map(str, next(iter(self.measures.values())).shape))
        names = ", ".join(self.measures)
        return f"{type(self).__name__}({size}, measures: {names}; baselines: {', '.join(self.baselines)})"

    __str__ = __repr__

    def _axis_values(self, index: tuple[int, ...]) -> Record:
        raise NotImplementedError

    def rows(self) -> Iterator[Record]:
        """Tidy records in long form: one per number and series (the model, then each baseline)."""
        for measure, estimates in self.measures.items():
            series = {MODEL_SERIES: estimates, **self.baselines_of(measure)}
            for index in np.ndindex(*estimates.shape):
                for name, values in series.items():
                    numbers = {field: getattr(values, field)[index].item() for field in ("value", "low", "high", "n")}
                    yield {
                        **self._axis_values(index),
                        "measure": measure,
                        "series": name,
                        **numbers,
                        "unit": self.units.get(measure, ""),
                        "interval": values.interval,
                    }


def _without_resampled(measures: Measures) -> dict[str, Estimates]:
    return {name: estimates.with_resampled(None) for name, estimates in measures.items()}


class HeadGrid(_MeasuredShape):
    """Measures of attention heads: (layer, head).

    By the measures in `lowest` the head with the lowest value stands out: a change in score, a p value.
    """

    shape: Literal["HeadGrid"] = "HeadGrid"
    lowest: tuple[str, ...] = ()

    def _expected_shape(self) -> tuple[int | None, ...]:
        return (None, None)

    def extreme_head(self, measure: str) -> Head | None:
        """The head with the highest value, or the lowest; None if all values are missing, or equal."""
        values = self.measures[measure].value
        if not np.isfinite(values).any() or np.nanmin(values) == np.nanmax(values):
            return None
        flat = np.nanargmin(values) if measure in self.lowest else np.nanargmax(values)
        layer, head = np.unravel_index(int(flat), values.shape)
        return Head(int(layer), int(head))

    def _axis_values(self, index: tuple[int, ...]) -> Record:
        layer, head = index
        return {"head": str(Head(layer, head)), "layer": layer + 1, "head_in_layer": head + 1}


class LayerCurve(_MeasuredShape):
    """Measures of layers: (layer,); `first_layer` is 0 if the embeddings are included, else 1."""

    shape: Literal["LayerCurve"] = "LayerCurve"
    first_layer: int = 0

    def _expected_shape(self) -> tuple[int | None, ...]:
        return (None,)

    def _axis_values(self, index: tuple[int, ...]) -> Record:
        return {"layer": index[0] + self.first_layer}


class RemovalOrder(_Shape):
    """All heads of a model in an order of removal, the first to go first.

    `values` are the numbers of each head that the order rests on. The analysis would remove the first `n_removed`
    heads; `criterion` says why so many. `steps` has the numbers of heads whose removal was scored, one for each point
    of the curve; it is empty if the points of the curve have different orders.
    """

    name: str
    heads: tuple[str, ...]
    values: Mapping[str, tuple[NumberField, ...]]
    n_removed: int
    criterion: str
    steps: tuple[int, ...] = ()

    @property
    def removed(self) -> tuple[str, ...]:
        """The heads that would be removed, the first to go first."""
        return self.heads[: self.n_removed]

    @property
    def kept(self) -> tuple[str, ...]:
        """The heads that would be kept, the last to go first."""
        return self.heads[self.n_removed :][::-1]


class Curve(_MeasuredShape):
    """Measures along a quantity: training examples, heads left, rank; `x_name` names it, `x` has its values.

    `removal_orders` are the heads that can be removed from the model, if this is what was measured.
    """

    shape: Literal["Curve"] = "Curve"
    x_name: str
    x: FloatArrayField
    removal_orders: tuple[RemovalOrder, ...] = ()

    def _expected_shape(self) -> tuple[int | None, ...]:
        return self.x.shape if self.x.ndim == 1 else (-1,)

    @property
    def has_headline(self) -> bool:
        """Whether something is to be read before the numbers; see `results/headline.py`."""
        return bool(self.removal_orders) or super().has_headline

    def _axis_values(self, index: tuple[int, ...]) -> Record:
        return {self.x_name: float(self.x[index[0]])}


class Matrix(_MeasuredShape):
    """Measures of pairs: (row, column), both named."""

    shape: Literal["Matrix"] = "Matrix"
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]

    def _expected_shape(self) -> tuple[int | None, ...]:
        return len(self.row_names), len(self.column_names)

    def _axis_values(self, index: tuple[int, ...]) -> Record:
        return {"row": self.row_names[index[0]], "column": self.column_names[index[1]]}


HEAD_ATTRIBUTES = ("head", "chosen_in", "best_head")
"""Attributes of a table's rows that are shown beside the numbers: the head that they are about."""
FUNCTION_ATTRIBUTES = ("function", "closest_function")
"""The same for tables whose rows are heads: what the head does, or comes closest to."""
MAX_EMPTY_ROWS = 3
"""Tables with more rows than this without a number list the names of these rows instead of showing them."""


class Table(_MeasuredShape):
    """Measures of named rows: (row,).

    `attributes` are facts about the rows, one value per row: the chosen head, its direction, the number of examples.
    `notes` are remarks on single rows, for readers only.
    """

    shape: Literal["Table"] = "Table"
    row_names: tuple[str, ...]
    attributes: Mapping[str, tuple[AttributeValue, ...]] = Field(default_factory=dict)
    notes: Mapping[str, str] = Field(default_factory=dict)

    def _expected_shape(self) -> tuple[int | None, ...]:
        return (len(self.row_names),)

    @model_validator(mode="after")
    def _check_attributes(self) -> Table:
        for name, values in self.attributes.items():
            if len(values) != len(self.row_names):
                raise ValueError(f"attribute {name!r} has {len(values)} values for {len(self.row_names)} rows")
        return self

    def attribute(self, name: str, row: int) -> AttributeValue:
        """The value of an attribute in a row; None if the table does not have the attribute."""
        return self.attributes[name][row] if name in self.attributes else None

    def head_attributes(self) -> dict[str, tuple[AttributeValue, ...]]:
        """The attributes that say which head the numbers of a row are about, or what a head that is a row does."""
        rows_are_heads = self.attributes.get("head", self.row_names) == self.row_names
        names = FUNCTION_ATTRIBUTES if rows_are_heads else HEAD_ATTRIBUTES
        return {name: self.attributes[name] for name in names if name in self.attributes}

    def _axis_values(self, index: tuple[int, ...]) -> Record:
        (row,) = index
        name = self.row_names[row]
        notes = {"note": self.notes.get(name, "")} if self.notes else {}
        return {"row": name, **{key: values[row] for key, values in self.attributes.items()}, **notes}

    def empty_rows(self) -> tuple[int, ...]:
        """Rows without any number; none if they are few, or all rows."""
        measured = np.isfinite(np.stack([estimates.value for estimates in self.measures.values()])).any(0)
        empty = np.flatnonzero(~measured).tolist()
        return tuple(empty) if MAX_EMPTY_ROWS < len(empty) < len(self.row_names) else ()


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


class Scatter(_Shape):
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


class Trajectory(_Shape):
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


class Arc(_Shape):
    """An edge between two words of a sentence."""

    start: int
    end: int
    label: str = ""
    weight: NumberField = 1.0


class ArcDiagram(_Shape):
    """A sentence with predicted arcs and, if it is annotated, gold arcs."""

    words: tuple[str, ...]
    arcs: tuple[Arc, ...]
    gold: tuple[Arc, ...] = ()

    @model_validator(mode="after")
    def _check_arcs(self) -> ArcDiagram:
        if any(not 0 <= word < len(self.words) for arc in (*self.arcs, *self.gold) for word in (arc.start, arc.end)):
            raise ValueError("an arc joins a word that does not exist")
        return self


class Arcs(_Shape):
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


class HighlightedSentence(_Shape):
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


class Examples(_Shape):
    """Example sentences."""

    shape: Literal["Examples"] = "Examples"
    examples: tuple[HighlightedSentence, ...]

    def rows(self) -> Iterator[Record]:
        """One record per example."""
        for example in self.examples:
            yield {"text": " ".join(example.words), "score": example.score, "caption": example.caption}


MeasuredShape = HeadGrid | LayerCurve | Curve | Matrix | Table
UnmeasuredShape = Scatter | Trajectory | Arcs | Examples
"""Shapes without estimates and baselines: illustrations."""
Shape = Annotated[MeasuredShape | UnmeasuredShape, Field(discriminator="shape")]
