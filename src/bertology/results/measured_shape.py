"""What all shapes with measures have: estimates, baselines, resamples, and what is to be read before the numbers.

A measure is an array of estimates along the axes of its shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, PrivateAttr, model_validator

from bertology.arrays import IntArray
from bertology.errors import count_noun
from bertology.estimates.estimate import Estimates
from bertology.estimates.resampling import paired_difference
from bertology.results.answers import Answer, AnswerSource

Measures = Mapping[str, Estimates]
Baselines = Mapping[str, Measures]
Record = dict[str, Any]
N_KEPT_RESAMPLES = 200
"""So many resamples are kept with a result: enough for the standard error of a difference between two models."""


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


class BaseShape(BaseModel):
    """A frozen value of a result, without fields that are not declared."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True, extra="forbid")


class ReferenceScore(BaseShape):
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


class CostMeasures(BaseShape):
    """The measures that say what removing a part costs; the loss is the higher, the more the part is needed.

    `score` and `p_value` are empty if they were not measured. p values are two-sided and corrected for their number.
    """

    loss: str
    score: str = ""
    p_value: str = ""


class RemovalCosts(BaseShape):
    """What was removed from a model, and which measures say what that costs.

    `part` is what the rows of the shape are: `head`, `layer`, `heads`. `operations` has the measures by what was done
    to the part, such as `skip`; the empty name says that it was removed.
    """

    part: str
    metric: str
    operations: Mapping[str, CostMeasures]
    significance_level: float = 0.05


class BaseMeasuredShape(BaseShape):
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
    def _check_baselines(self) -> BaseMeasuredShape:
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
