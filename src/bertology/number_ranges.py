"""The range of every number that people give: declared beside its type, checked before any work begins.

    seed: Annotated[int, SEED, "Random seed."] = 0

Options of commands, options of analyses and arguments of the public functions are all checked here. A number that is
not finite is in no range.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from numbers import Real
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Interval, Le, Lt

from bertology.errors import Refusal

MAX_COUNT = 10**9
"""The largest whole number of an option that does not declare another."""

SEED = COUNT_OR_ZERO = Interval(ge=0, le=MAX_COUNT)
COUNT = Interval(ge=1, le=MAX_COUNT)
REPETITIONS = Interval(ge=1, le=10_000)
"""Trainings, random orders, points: what is computed once more for each."""
STEPS = Interval(ge=1, le=1_000_000)
SIZE = Interval(ge=1, le=65_536)
"""Dimensions and hidden units."""
LAYER = Interval(ge=-1000, le=1000)
PROPORTION = Interval(ge=0, le=1)
FRACTION = Interval(gt=0, lt=1)
COSINE = Interval(ge=-1, le=1)
LEARNING_RATE = Interval(gt=0, le=1e20)
LEARNING_RATE_OR_ZERO = Interval(ge=0, le=1e20)
"""Training with a rate that is far too high diverges, and says so."""
HOURS = Interval(gt=0, le=1_000_000)
PENALTY = Interval(ge=0, le=1_000_000)

MAX_DIGITS = 18
MAX_SHOWN_LENGTH = 60


@dataclass(frozen=True)
class NumberRange:
    """The numbers from `minimum` to `maximum`; both belong to the range unless they are excluded or infinite."""

    minimum: float = -math.inf
    maximum: float = math.inf
    excludes_minimum: bool = False
    excludes_maximum: bool = False
    is_whole: bool = False

    def __contains__(self, value: Any) -> bool:
        above = value > self.minimum or (value == self.minimum and not self.excludes_minimum)
        below = value < self.maximum or (value == self.maximum and not self.excludes_maximum)
        return bool(above and below and -math.inf < value < math.inf)

    def __str__(self) -> str:
        """The range in words: "from 0 to 1", "above 0 and below 1", "of at least 2"; empty without any limit."""
        low, high = _format(self.minimum), _format(self.maximum)
        if not (self.excludes_minimum or self.excludes_maximum or math.isinf(self.maximum - self.minimum)):
            return f"from {low} to {high}"
        lower = "" if math.isinf(self.minimum) else f"above {low}" if self.excludes_minimum else f"of at least {low}"
        upper = "" if math.isinf(self.maximum) else f"below {high}" if self.excludes_maximum else f"at most {high}"
        return " and ".join(filter(None, (lower, upper)))

    @property
    def help_text(self) -> str:
        """The range for a list of options, without a maximum that nobody reaches."""
        text = str(replace(self, maximum=math.inf) if self.maximum >= MAX_COUNT else self)
        return f" [{text.removeprefix('of ')}]" if text else ""


def declared_range(kind: Any, metadata: Iterable[Any], default: Any = None) -> NumberRange | None:
    """The range of a number, from its type and what is declared beside it; None for what is no number.

    Whole numbers without a declaration are counts, from 0 to `MAX_COUNT`, or layers if something else than a number is
    accepted too or the default is negative.
    """
    members = [member for member in union_members(kind) if member in (int, float)]
    if not members:
        return None
    bounds = NumberRange()
    if members == [int]:
        is_count = len(union_members(kind)) == 1 and not (isinstance(default, int) and default < 0)
        bounds = NumberRange(0 if is_count else -MAX_COUNT, MAX_COUNT, is_whole=True)
    for entry in metadata:
        bounds = functools.reduce(_narrow, entry if isinstance(entry, Interval) else [entry], bounds)
    return bounds


def check_number(value: Any, bounds: NumberRange, title: str, remedy: str) -> None:
    """Refuse a number outside of its range; values of other types are left to others."""
    if not isinstance(value, bool) and isinstance(value, Real) and value not in bounds:
        kind = "whole number" if bounds.is_whole else "number" if str(bounds) else "finite number"
        raise Refusal(f"{title} was given {shorten_value(value)}", f"a {kind} {bounds}".strip(), remedy)


def check_fields(instance: Any) -> None:
    """Refuse a dataclass with a number outside of the range that is declared for its field."""
    for name, bounds in _field_ranges(type(instance)).items():
        check_number(getattr(instance, name), bounds, f"{type(instance).__name__}.{name}", "Choose another number")


@functools.cache
def _field_ranges(owner: type) -> dict[str, NumberRange]:
    hints = get_type_hints(owner, include_extras=True)
    ranges = {field.name: range_of_hint(hints[field.name], field.default) for field in fields(owner)}
    return {name: bounds for name, bounds in ranges.items() if bounds is not None}


def range_of_hint(hint: Any, default: Any = None) -> NumberRange | None:
    """The range of a parameter, from its annotation."""
    kind, *metadata = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    return declared_range(kind, metadata, default)


def parse_whole_number(text: str, bounds: Interval = COUNT_OR_ZERO) -> int | None:
    """The number that a text of ASCII digits says, or None if it says none or one outside of its range."""
    if not re.fullmatch(rf"-?[0-9]{{1,{MAX_DIGITS}}}", text, re.ASCII):
        return None
    return int(text) if int(text) in to_range(bounds) else None


def to_range(interval: Interval) -> NumberRange:
    """The range that an interval declares."""
    return functools.reduce(_narrow, interval, NumberRange())


def shorten_value(value: Any) -> str:
    """A value as it is written in Python, cut if it is long."""
    if isinstance(value, int) and abs(value) >= 10**MAX_DIGITS:  # Python refuses to write very long numbers
        return f"a whole number of about {math.ceil(value.bit_length() * math.log10(2)):,} digits"
    shown = repr(value) if isinstance(value, str) else str(value)
    return shown if len(shown) <= MAX_SHOWN_LENGTH else f"{shown[:MAX_SHOWN_LENGTH]} ..."


def union_members(kind: Any) -> tuple[Any, ...]:
    """The types of a union without None, or the type itself."""
    if get_origin(kind) in {Union, UnionType}:
        return tuple(member for member in get_args(kind) if member is not NoneType)
    return (kind,)


def _narrow(bounds: NumberRange, limit: Any) -> NumberRange:
    """The range with one more limit, which replaces that of the same end."""
    changes: dict[str, Any] = {}
    match limit:
        case Ge(ge):
            changes = {"minimum": ge, "excludes_minimum": False}
        case Gt(gt):
            changes = {"minimum": gt, "excludes_minimum": True}
        case Le(le):
            changes = {"maximum": le, "excludes_maximum": False}
        case Lt(lt):
            changes = {"maximum": lt, "excludes_maximum": True}
        case _:
            pass
    return replace(bounds, **changes)


def _format(number: float) -> str:
    return f"{number:,.0f}" if 1 <= abs(number) < 1e15 and float(number).is_integer() else f"{number:g}"
