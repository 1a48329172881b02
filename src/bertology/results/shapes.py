"""The nine shapes a result can have; every shape can be drawn, stored as JSON and turned into tidy records.

Shapes with measures need `baselines`: the same measure for chance, an untrained model or a simpler method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import numpy as np
from pydantic import Field, model_validator

from bertology.encoder.encoder import Head as Head
from bertology.estimates.estimate import FloatArrayField
from bertology.results.illustrations import Arcs, Examples, Scatter, Trajectory
from bertology.results.measured_shape import BaseMeasuredShape, BaseShape, NumberField, Record

AttributeValue = str | int | float | bool | None


class HeadGrid(BaseMeasuredShape):
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


class LayerCurve(BaseMeasuredShape):
    """Measures of layers: (layer,); `first_layer` is 0 if the embeddings are included, else 1."""

    shape: Literal["LayerCurve"] = "LayerCurve"
    first_layer: int = 0

    def _expected_shape(self) -> tuple[int | None, ...]:
        return (None,)

    def _axis_values(self, index: tuple[int, ...]) -> Record:
        return {"layer": index[0] + self.first_layer}


class RemovalOrder(BaseShape):
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


class Curve(BaseMeasuredShape):
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


class Matrix(BaseMeasuredShape):
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


class Table(BaseMeasuredShape):
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


MeasuredShape = HeadGrid | LayerCurve | Curve | Matrix | Table
UnmeasuredShape = Scatter | Trajectory | Arcs | Examples
"""Shapes without estimates and baselines: illustrations."""
Shape = Annotated[MeasuredShape | UnmeasuredShape, Field(discriminator="shape")]
