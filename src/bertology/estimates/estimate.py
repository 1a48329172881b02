"""`Estimate` and `Estimates`: values with their intervals and sample sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    PlainSerializer,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)

from bertology.arrays import FloatArray, IntArray

Interval = Literal["bootstrap", "t", "range", "simultaneous", "exact"]
"""What `low` and `high` are.

`bootstrap`: a 95 % interval from resampling sentences or examples. `t`: a 95 % interval from a standard error and
Student's t distribution, as of a regression or a jackknife. `range`: the lowest and highest of several runs (seeds,
random draws). `simultaneous`: a 95 % interval that holds for all candidates at once, such as all heads. `exact`: a
number without sampling error, or without an interval.
"""

ROUNDING_ERROR = 1e-12
"""Sums of the same numbers in another order differ by less than this proportion of their size."""


def _to_nested_lists(array: FloatArray) -> Any:
    """Nested lists with null for NaN and infinities, which JSON does not have."""
    if array.ndim == 0:
        number = float(array)
        return number if math.isfinite(number) else None
    return [_to_nested_lists(cast(FloatArray, row)) for row in array]


def _to_floats(value: Any) -> FloatArray:
    if isinstance(value, np.ndarray):
        return value.astype(np.float64)
    array = np.array(value, dtype=object)
    return np.where(array == None, np.nan, array).astype(np.float64)  # noqa: E711  # element-wise comparison


_NESTED_SCHEMA = {
    "anyOf": [{"type": "number"}, {"type": "null"}, {"type": "array", "items": {}}],
    "description": "a number, or nested arrays of numbers; null for missing values",
}

FloatArrayField = Annotated[
    FloatArray, BeforeValidator(_to_floats), PlainSerializer(_to_nested_lists), WithJsonSchema(_NESTED_SCHEMA)
]
CountArrayField = Annotated[
    IntArray,
    BeforeValidator(lambda value: np.array(value, np.int64)),
    PlainSerializer(lambda array: array.tolist()),
    WithJsonSchema(_NESTED_SCHEMA),
]


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its interval and sample size; `low` and `high` are NaN if `n` is too small for an interval."""

    value: float
    low: float
    high: float
    n: int
    interval: Interval = "bootstrap"

    def __str__(self) -> str:
        return f"{self:.3g}"

    def __format__(self, spec: str) -> str:
        """The value and its interval, each number in the given format; without one, as `str`."""
        value, low, high = (format(number, spec or ".3g") for number in (self.value, self.low, self.high))
        return f"{value} (no interval)" if math.isnan(self.low) or math.isnan(self.high) else f"{value} [{low}, {high}]"

    def __repr__(self) -> str:
        return f"Estimate({self}, n={self.n}, {self.interval})"

    def clearly_above(self, other: Estimate | float) -> bool:
        """Whether the whole interval lies above the other's, by more than rounding errors."""
        return self.low - (other.high if isinstance(other, Estimate) else other) > self._rounding_error(other)

    def clearly_below(self, other: Estimate | float) -> bool:
        """Whether the whole interval lies below the other's, by more than rounding errors."""
        return (other.low if isinstance(other, Estimate) else other) - self.high > self._rounding_error(other)

    def _rounding_error(self, other: Estimate | float) -> float:
        """The largest difference that rounding can make between two numbers of this size."""
        ends = (other.low, other.high) if isinstance(other, Estimate) else (other,)
        return ROUNDING_ERROR * max([1.0, *filter(math.isfinite, map(abs, (self.low, self.high, *ends)))])


class Estimates(BaseModel):
    """An array of estimates of one quantity; indexing gives an `Estimate` or a smaller array.

    Estimates by bootstrap carry their resampled values, (resample, ...), until a result is made of them: two estimates
    of the same rows with the same seed are resampled together, so that their difference has a paired interval. A single
    `Estimate` has no resampled values: a slice such as `estimates[:1]` keeps them.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")

    value: FloatArrayField
    low: FloatArrayField
    high: FloatArrayField
    n: CountArrayField
    interval: Interval = "bootstrap"
    _resampled: FloatArray | None = PrivateAttr(default=None)
    _n_rows: IntArray | None = PrivateAttr(default=None)

    @model_validator(mode="after")
    def _check_same_shape(self) -> Estimates:
        if not self.value.shape == self.low.shape == self.high.shape == self.n.shape:
            raise ValueError(
                f"value, low, high and n differ in shape: "
                f"{self.value.shape}, {self.low.shape}, {self.high.shape}, {self.n.shape}"
            )
        return self

    @classmethod
    def exact(cls, value: ArrayLike, n: ArrayLike = 0) -> Estimates:
        """Numbers that follow from a definition, without sampling error."""
        array = np.asarray(value, np.float64)
        counts = np.broadcast_to(np.asarray(n, np.int64), array.shape)
        return cls(value=array, low=array, high=array, n=counts, interval="exact")

    @classmethod
    def full(cls, shape: tuple[int, ...], estimate: Estimate) -> Estimates:
        """The same estimate in every cell."""
        value, low, high = (np.full(shape, number) for number in (estimate.value, estimate.low, estimate.high))
        n = np.full(shape, estimate.n, np.int64)
        return cls(value=value, low=low, high=high, n=n, interval=estimate.interval)

    @classmethod
    def empty(cls, shape: int | tuple[int, ...]) -> Estimates:
        """Missing values: NaN with a sample size of 0."""
        return cls.exact(np.full(shape, np.nan))

    @classmethod
    def stack(cls, estimates: Sequence[Estimates] | Sequence[Estimate], axis: int = 0) -> Estimates:
        """Estimates of equal shape, joined along a new axis."""
        along = axis + 1 if axis >= 0 else axis  # the first axis of resampled values is that of resamples
        return cls._join(estimates, partial(np.stack, axis=axis), partial(np.stack, axis=along))

    @classmethod
    def concatenate(cls, estimates: Sequence[Estimates]) -> Estimates:
        """Estimates joined along their first axis."""
        return cls._join(estimates, np.concatenate, partial(np.concatenate, axis=1))

    @classmethod
    def _join(
        cls,
        estimates: Sequence[Estimates] | Sequence[Estimate],
        join: Callable[..., Any],
        join_resampled: Callable[..., FloatArray],
    ) -> Estimates:
        kinds = {e.interval for e in estimates} - {"exact"}
        if len(kinds) > 1:
            raise ValueError(f"estimates with different intervals cannot be joined: {', '.join(sorted(kinds))}")
        arrays: dict[str, Any] = {
            name: join([np.asarray(getattr(e, name)) for e in estimates]) for name in ("value", "low", "high", "n")
        }
        joined = cls(**arrays, interval=cast(Interval, kinds.pop() if kinds else "exact"))
        parts = [e for e in estimates if isinstance(e, Estimates)]
        resampled = [e.resampled for e in parts if e.resampled is not None]
        if len(resampled) < len(estimates):
            return joined
        return joined.with_resampled(join_resampled(resampled), join([e.n_rows for e in parts]))

    @property
    def resampled(self) -> FloatArray | None:
        """(resample, ...) resampled values; None if the interval is not by bootstrap, or after storing."""
        return self._resampled

    @property
    def n_rows(self) -> IntArray:
        """The number of rows that were resampled for each estimate, measured or not; 0 if none were."""
        return np.zeros(self.shape, np.int64) if self._n_rows is None else self._n_rows

    def with_resampled(self, resampled: FloatArray | None, n_rows: ArrayLike = 0) -> Estimates:
        """The same estimates with these values over resamples of `n_rows` rows, or without any."""
        copy = self.model_copy()
        copy._resampled = resampled
        copy._n_rows = None if resampled is None else np.broadcast_to(np.asarray(n_rows, np.int64), self.shape)
        return copy

    def map(self, function: Callable[[FloatArray], FloatArray]) -> Estimates:
        """A monotonic function of value and interval; if it decreases, `low` and `high` change places."""
        low, high = function(self.low), function(self.high)
        return Estimates(
            value=function(self.value),
            low=np.where(np.isnan(low) | np.isnan(high), low, np.minimum(low, high)),
            high=np.where(np.isnan(low) | np.isnan(high), high, np.maximum(low, high)),
            n=self.n,
            interval=self.interval,
        ).with_resampled(None if self._resampled is None else function(self._resampled), self.n_rows)

    def broadcast_to(self, shape: tuple[int, ...]) -> Estimates:
        """The estimates repeated along new or unit axes, by NumPy's rules; a first axis of layers needs `[:, None]`."""
        value, low, high = (np.broadcast_to(array, shape) for array in (self.value, self.low, self.high))
        n, resampled = np.broadcast_to(self.n, shape), self._resampled
        if resampled is not None:
            aligned = resampled.reshape(len(resampled), *(1,) * (len(shape) - self.value.ndim), *self.shape)
            resampled = np.broadcast_to(aligned, (len(resampled), *shape))
        broadcast = Estimates(value=value, low=low, high=high, n=n, interval=self.interval)
        return broadcast.with_resampled(resampled, self.n_rows)

    def with_n(self, n: ArrayLike) -> Estimates:
        """The same estimates with other sample sizes."""
        return self.model_copy(update={"n": np.broadcast_to(np.asarray(n, np.int64), self.shape)})

    def by_name(self, names: Sequence[str]) -> dict[str, Estimates]:
        """The estimates along the last axis, by name."""
        return {name: self[..., index] for index, name in enumerate(names)}

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the array."""
        return self.value.shape

    def __getitem__(self, index: Any) -> Any:
        """An `Estimate` for a full index, else `Estimates`."""
        value, low, high, n = self.value[index], self.low[index], self.high[index], self.n[index]
        if np.ndim(value) == 0:
            return Estimate(float(value), float(low), float(high), int(n), self.interval)
        part = Estimates(value=value, low=low, high=high, n=n, interval=self.interval)
        if self._resampled is None:
            return part
        keys: tuple[Any, ...] = index if isinstance(index, tuple) else (index,)
        return part.with_resampled(self._resampled[(slice(None), *keys)], self.n_rows[index])

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Estimates)
            and self.interval == other.interval
            and all(
                np.array_equal(getattr(self, name), getattr(other, name), equal_nan=name != "n")
                for name in ("value", "low", "high", "n")
            )
        )

    __hash__ = None

    def __repr__(self) -> str:
        measured = self.value[np.isfinite(self.value)]
        values = f"{measured.min():.3g} to {measured.max():.3g}" if measured.size else "not measured"
        n = np.unique(self.n[self.n > 0])
        sizes = f"n={n[0]} to {n[-1]}" if len(n) > 1 else f"n={n[0] if len(n) else 0}"
        return f"Estimates({' x '.join(map(str, self.shape)) or '1'} values, {values}, {sizes}, {self.interval})"

    __str__ = __repr__


INTERVAL_LABELS: Mapping[Interval, str] = {
    "bootstrap": "95 % CI",
    "t": "95 % t interval",
    "simultaneous": "simultaneous 95 % CI",
    "range": "[min, max] over seeds",
    "exact": "no interval",
}


def describe_intervals(measures: Mapping[str, Estimates]) -> str:
    """The kind of interval of a result's measures, as a caption; if they differ, all but the first kind have names.

    Exact measures, which have no interval, are named only if there are no others.
    """
    names_by_kind: dict[Interval, list[str]] = {}
    for name, estimates in measures.items():
        names_by_kind.setdefault(estimates.interval, []).append(name)
    if len(names_by_kind) > 1:
        names_by_kind.pop("exact", None)
    order = sorted(names_by_kind, key=list(INTERVAL_LABELS).index)
    labels = [INTERVAL_LABELS[kind] for kind in order]
    named = [f"{', '.join(names_by_kind[kind])}: {label}" for kind, label in zip(order, labels, strict=True)]
    return "; ".join([*labels[:1], *named[1:]])


def estimate_text(estimate: Estimate, missing: str = "") -> str:
    """Value and interval; the value alone if it is exact or has no interval."""
    if np.isnan(estimate.value):
        return missing
    exact = np.isnan(estimate.low) or estimate.low == estimate.value == estimate.high
    return f"{estimate.value:.3g}" if exact else str(estimate)
