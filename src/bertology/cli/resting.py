"""What numbers rest on, in as few columns as tell it: none where all rest on as many, one for all, or one a measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bertology.cli.columns import Column
from bertology.results.estimate import Estimates

NAME = "n"


@dataclass(frozen=True)
class Resting:
    """`of_rows` is one column or none; `of_measures` are those of measures that differ from others and by row.

    `alike` has the n of measures that differ from others, but not by row: it stands in their names.
    """

    of_rows: tuple[Column, ...]
    of_measures: Mapping[str, Column]
    alike: Mapping[str, int]

    @classmethod
    def of(cls, measures: Mapping[str, Estimates], rows: Sequence[int]) -> Resting:
        """What these rows of each measure rest on; a number that nothing was counted for rests on nothing."""
        counts = {
            name: np.where(np.isfinite(estimates.value), estimates.n, 0)[list(rows)]
            for name, estimates in measures.items()
        }
        every = np.stack(list(counts.values()))
        if len(np.unique(every[every > 0])) <= 1:
            return cls((), {}, {})
        most = every.max(0)
        if ((every == most) | (every == 0)).all():
            return cls((_column(most),), {}, {})
        alike = {name: int(own.max()) for name, own in counts.items() if len(np.unique(own[own > 0])) == 1}
        differing = {name: _column(own) for name, own in counts.items() if name not in alike and own.any()}
        return cls((), differing, alike)

    def told(self, measure: str) -> str:
        """The name of a measure, with what all its numbers rest on where others rest on more or less."""
        return f"{measure} ({NAME}={self.alike[measure]})" if measure in self.alike else measure


def _column(counts: Sequence[int] | np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Column:
    return Column(NAME, tuple(str(count) if count else "" for count in counts))
