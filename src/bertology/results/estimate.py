"""A number and how sure we are of it: value, interval, and how many observations it rests on."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, WithJsonSchema, model_validator

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def _nested(array: Floats) -> Any:
    """Nested lists in which what is not a number is null, as JSON has no NaN."""
    if array.ndim == 0:
        number = float(array)
        return number if math.isfinite(number) else None
    return [_nested(cast(Floats, row)) for row in array]


def _floats(value: Any) -> Floats:
    if isinstance(value, np.ndarray):
        return value.astype(np.float64)
    array = np.array(value, dtype=object)
    return np.where(array == None, np.nan, array).astype(np.float64)  # noqa: E711  # element-wise comparison


_NESTED_SCHEMA = {
    "anyOf": [{"type": "number"}, {"type": "null"}, {"type": "array", "items": {}}],
    "description": "a number, or nested arrays of numbers; null where there is none",
}

FloatArray = Annotated[Floats, BeforeValidator(_floats), PlainSerializer(_nested), WithJsonSchema(_NESTED_SCHEMA)]
CountArray = Annotated[
    Counts,
    BeforeValidator(lambda value: np.array(value, np.int64)),
    PlainSerializer(lambda array: array.tolist()),
    WithJsonSchema(_NESTED_SCHEMA),
]


@dataclass(frozen=True, slots=True)
class Estimate:
    """One number with its interval; `low` and `high` are NaN where no interval could be had, and `n` says why."""

    value: float
    low: float
    high: float
    n: int

    def __str__(self) -> str:
        if math.isnan(self.low) or math.isnan(self.high):
            return f"{self.value:.3g} (no interval)"
        return f"{self.value:.3g} [{self.low:.3g}, {self.high:.3g}]"

    def everywhere(self, shape: tuple[int, ...]) -> Estimates:
        """The same estimate at every place of an array: a baseline that does not depend on the place."""
        value, low, high = (np.full(shape, number) for number in (self.value, self.low, self.high))
        return Estimates(value=value, low=low, high=high, n=np.full(shape, self.n, np.int64))

    def clearly_above(self, other: Estimate | float) -> bool:
        """Whether the whole interval lies above the other's."""
        return self.low > (other.high if isinstance(other, Estimate) else other)

    def clearly_below(self, other: Estimate | float) -> bool:
        """Whether the whole interval lies below the other's."""
        return self.high < (other.low if isinstance(other, Estimate) else other)


class Estimates(BaseModel):
    """An array of estimates of one quantity; indexing gives an `Estimate` or a smaller array of them."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")

    value: FloatArray
    low: FloatArray
    high: FloatArray
    n: CountArray

    @model_validator(mode="after")
    def _same_shape(self) -> Estimates:
        if not self.value.shape == self.low.shape == self.high.shape == self.n.shape:
            raise ValueError(
                f"value, low, high and n differ in shape: "
                f"{self.value.shape}, {self.low.shape}, {self.high.shape}, {self.n.shape}"
            )
        return self

    @classmethod
    def exact(cls, value: ArrayLike, n: int = 0) -> Estimates:
        """Numbers that follow from a definition and have no sampling error."""
        array = np.asarray(value, np.float64)
        return cls(value=array, low=array, high=array, n=np.full(array.shape, n, np.int64))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.value.shape

    def __getitem__(self, index: Any) -> Any:
        """An `Estimate` for a full index, else `Estimates`."""
        value = self.value[index]
        if np.ndim(value) == 0:
            return Estimate(float(value), float(self.low[index]), float(self.high[index]), int(self.n[index]))
        return Estimates(value=value, low=self.low[index], high=self.high[index], n=self.n[index])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Estimates) and all(
            np.array_equal(getattr(self, name), getattr(other, name), equal_nan=name != "n")
            for name in ("value", "low", "high", "n")
        )

    __hash__ = None
