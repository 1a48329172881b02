"""One measure of a result: estimates indexed by head, layer or row, ranked and compared with baselines."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertology.arrays import FloatArray
from bertology.errors import Refusal, count_noun, unknown_name
from bertology.estimates.estimate import Estimate, Estimates
from bertology.public_functions import public_function
from bertology.results.shapes import Curve, Head, HeadGrid, LayerCurve, Matrix, MeasuredShape, Table

Key = str | int | float | tuple[str, str]
"""What identifies a number of a measure: a head ("3-8"), layer, row, point of a curve, or pair of row and column."""


def match_name(kind: str, name: object, names: Iterable[str]) -> str:
    """The one name that equals, begins with or contains the text, regardless of case; a refusal if there is none.

    Variants in parentheses need more of their name: "to previous" is `attention to previous token`, and not `attention
    to previous token (no special tokens)`.
    """
    valid = list(names)
    if not isinstance(name, str):
        raise Refusal(
            f"{name!r} is not a name of a {kind}",
            f"text: one of {', '.join(valid)}",
            "Write the name in quotation marks",
        )
    matches = matching_names(name, valid)
    if len(matches) == 1:
        return matches[0]
    if not matches:
        raise unknown_name(kind, name, valid)
    raise Refusal(
        f"{name!r} is part of the names of {len(matches)} {kind}s",
        f"the name of one of: {', '.join(matches)}",
        "Write more of the name",
    )


def matching_names(name: str, names: Iterable[str]) -> list[str]:
    """The names that a text can mean: the one that equals it, else those that begin with it, else that contain it.

    The words that all names begin with can be left out: "to [SEP]" is `attention to [SEP]` where every name begins with
    `attention`. Of a name and its variants in parentheses only the name itself.
    """
    valid = list(names)
    if name in valid:
        return [name]
    text = name.casefold()
    shared = _shared_start([candidate.casefold() for candidate in valid])
    tests: list[Callable[[str], bool]] = [
        lambda candidate: candidate == text,
        lambda candidate: candidate.removeprefix(shared) == text,
        lambda candidate: candidate.startswith(text),
        lambda candidate: candidate.removeprefix(shared).startswith(text),
        lambda candidate: text in candidate,
    ]
    for test in tests if text else ():
        matches = [candidate for candidate in valid if test(candidate.casefold())]
        shortest = min(matches, key=len, default="")
        if matches:
            are_variants = all(each == shortest or each.startswith(f"{shortest} (") for each in matches)
            return [shortest] if are_variants else matches
    return []


def _shared_start(names: list[str]) -> str:
    """The words that all of several names begin with, and the blank after them."""
    if len(names) < 2:
        return ""
    split = [name.split(" ") for name in names]
    columns = itertools.takewhile(lambda words: len(set(words)) == 1, zip(*split, strict=False))
    return "".join(f"{words[0]} " for words in columns)


@dataclass(frozen=True, eq=False, repr=False)
class Measure:
    """A measure of a result. `measure["3-8"]` is the estimate of a head, `measure[3]` what was measured in layer 3.

    Layers and heads are numbered as they are printed, from 1 (layer 0 is the embeddings). Rows of tables are indexed
    by name, or by as much of it as identifies one; curves by the number on their axis; matrices by row and column.
    `estimates` is the whole array, indexed from 0.
    """

    name: str
    estimates: Estimates
    data: MeasuredShape

    @property
    def unit(self) -> str:
        """The unit and range of the values; empty if they have none."""
        return self.data.units.get(self.name, "")

    @property
    def low_stands_out(self) -> bool:
        """Whether the lowest value is the one to look at, as for a p value or a change in score."""
        return isinstance(self.data, HeadGrid) and self.name in self.data.lowest

    @property
    def baselines(self) -> dict[str, Measure]:
        """The same measure of each baseline, by its name."""
        return {name: Measure(self.name, e, self.data) for name, e in self.data.baselines_of(self.name).items()}

    def keys(self) -> list[Key]:
        """What identifies each number, in the order of the array."""
        return [cell_key(self.data, index) for index in np.ndindex(*self.estimates.shape)]

    def items(self) -> list[tuple[Key, Estimate]]:
        """Each number with what identifies it."""
        indices = np.ndindex(*self.estimates.shape)
        return [(cell_key(self.data, index), self.estimates[index]) for index in indices]

    def __getitem__(self, key: Any) -> Any:
        """An `Estimate`, or `Estimates` for the heads of a layer or a row of a matrix."""
        return self.estimates[self._index(key)]

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys())

    def __len__(self) -> int:
        return self.estimates.value.size

    @public_function
    def best(self, n: int = 1) -> dict[Key, Estimate]:
        """The `n` highest estimates, highest first; the lowest for measures by which the lowest stands out."""
        return self._ranked(n, highest=not self.low_stands_out)

    @public_function
    def worst(self, n: int = 1) -> dict[Key, Estimate]:
        """The `n` estimates at the other end, lowest first."""
        return self._ranked(n, highest=self.low_stands_out)

    @public_function
    def above(self, baseline: str | None = None) -> dict[Key, Estimate]:
        """The estimates whose whole interval lies above that of the baseline, or of every baseline.

        Intervals that are not simultaneous hold for one number at a time: among many heads a few are above by chance.
        """
        return self._compare(baseline, Estimate.clearly_above)

    @public_function
    def below(self, baseline: str | None = None) -> dict[Key, Estimate]:
        """The estimates whose whole interval lies below that of the baseline, or of every baseline."""
        return self._compare(baseline, Estimate.clearly_below)

    def rank(self, key: Any) -> int | None:
        """The rank of a number, 1 for the best; equal numbers share a rank. None if it was not measured."""
        value = self[key].value
        if np.ndim(value) or not np.isfinite(value):
            return None
        values = self.estimates.value
        return 1 + int((values < value if self.low_stands_out else values > value).sum())

    def distance(self) -> FloatArray:
        """How far each value is from that of its closest baseline; NaN if it or all baselines are missing."""
        baselines = self.data.baselines_of(self.name).values()
        distances = [np.abs(self.estimates.value - baseline.value) for baseline in baselines]
        closest = np.fmin.reduce(distances) if distances else np.full(self.estimates.shape, np.nan)
        return np.asarray(closest, np.float64)

    def _ranked(self, n: int, *, highest: bool) -> dict[Key, Estimate]:
        if n < 0:
            raise Refusal(f"{n} numbers were requested", "0 or more", "Write for example best(3)")
        measured = [(key, e) for key, e in self.items() if np.isfinite(e.value)]
        return dict(sorted(measured, key=lambda item: item[1].value * (-1 if highest else 1))[:n])

    def _compare(self, baseline: str | None, test: Callable[[Estimate, Estimate], bool]) -> dict[Key, Estimate]:
        baselines = self.baselines
        names = list(baselines) if baseline is None else [match_name("baseline", baseline, baselines)]
        levels = [baselines[name].estimates for name in names]
        indices = np.ndindex(*self.estimates.shape)
        return {
            cell_key(self.data, index): self.estimates[index]
            for index in indices
            if levels and all(test(self.estimates[index], level[index]) for level in levels)
        }

    def _index(self, key: Any) -> Any:
        """The index into the array of estimates."""
        match self.data:
            case HeadGrid():
                return self._head_index(key)
            case LayerCurve(first_layer=first_layer):
                return self._layer_index(key, first_layer)
            case Curve(x=x, x_name=x_name):
                is_number = isinstance(key, int | float | np.number) and not isinstance(key, bool)
                points = np.flatnonzero(np.isclose(x, float(key))) if is_number else np.array([])
                if not len(points):
                    values = ", ".join(f"{value:g}" for value in x)
                    raise Refusal(
                        f"{self.name} has no point {key!r}", f"{x_name}: one of {values}", "Choose one of them"
                    )
                return int(points[0])
            case Matrix(row_names=rows, column_names=columns):
                if not isinstance(key, tuple):
                    return rows.index(match_name("row", key, rows))
                row, column = self._pair(key)
                return rows.index(match_name("row", row, rows)), columns.index(match_name("column", column, columns))
            case Table(row_names=rows):
                return rows.index(match_name("row", key, rows))

    def _pair(self, key: tuple[Any, ...]) -> tuple[Any, Any]:
        if len(key) != 2:
            raise Refusal(f"{self.name} has no number {key!r}", "a row and a column", "Write measure[row, column]")
        return key[0], key[1]

    def _head_index(self, key: Any) -> tuple[int, ...] | int:
        n_layers, n_heads = self.estimates.shape
        if isinstance(key, int | np.integer) and not isinstance(key, bool):
            return self._layer_index(key, 1)
        head = key if isinstance(key, Head) else parse_head(key)
        if not (0 <= head[0] < n_layers and 0 <= head[1] < n_heads):
            raise Refusal(
                f"There is no head {head}",
                f"a head from 1-1 to {n_layers}-{n_heads}",
                "Heads are written layer-head, both counted from 1",
            )
        return head[0], head[1]

    def _layer_index(self, key: Any, first_layer: int) -> int:
        last = first_layer + self.estimates.shape[0] - 1
        if not isinstance(key, int | np.integer) or isinstance(key, bool) or not first_layer <= key <= last:
            raise Refusal(
                f"{self.name} has no layer {key!r}",
                f"a number from {first_layer} to {last}",
                "Choose a layer among them",
            )
        return int(key) - first_layer

    def __repr__(self) -> str:
        best = "".join(f", {'lowest' if self.low_stands_out else 'highest'} {k}: {e}" for k, e in self.best().items())
        unit = f" ({self.unit})" if self.unit else ""
        size = " x ".join(map(str, self.estimates.shape))
        baselines = ", ".join(self.data.baselines_of(self.name)) or "none"
        return f"Measure {self.name!r}{unit}, {size}{best}; baselines: {baselines}"


def parse_head(text: object) -> Head:
    """A head from its printed form, `8-11`; a refusal if it is none."""
    if not isinstance(text, str) or not re.fullmatch(r"[1-9]\d*-[1-9]\d*", text.strip()):
        raise Refusal(f"{text!r} is not a head", "layer-head, both counted from 1", "Write for example 8-11")
    return Head.parse(text.strip())


def cell_key(data: MeasuredShape, index: tuple[int, ...]) -> Key:
    """What identifies a number of the shape: `3-8`, a layer, a row, a point of a curve, or a pair of names."""
    match data:
        case HeadGrid():
            return str(Head(*index))
        case LayerCurve():
            return index[0] + data.first_layer
        case Curve():
            return float(data.x[index[0]])
        case Matrix():
            return data.row_names[index[0]], data.column_names[index[1]]
        case Table():
            return data.row_names[index[0]]


def describe_size(data: MeasuredShape) -> str:
    """What the numbers are about: "4 layers x 4 heads", "12 layers", "31 rows"."""
    shape = next(iter(data.measures.values())).shape
    match data:
        case HeadGrid():
            return f"{count_noun(shape[0], 'layers')} x {count_noun(shape[1], 'heads')}"
        case LayerCurve():
            return count_noun(shape[0], "layers")
        case Curve():
            return f"{count_noun(shape[0], 'points')} along {data.x_name}"
        case Matrix():
            return f"{shape[0]} x {count_noun(shape[1], 'cells')}"
        case Table():
            return count_noun(shape[0], "rows")
