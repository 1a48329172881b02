"""Differences between models, tested on the same sentences and corrected for the number of comparisons.

Sentences are resampled together for all models: the standard error of a difference is that of the paired differences
over the resamples, so that how hard the sentences are cancels out. p is that of Student's t with as many degrees of
freedom as there are sentences less one, two-sided, and never below that of a sign test in which all sentences agree.
Holm's correction is over all findings and all pairs of models at once: the probability that an atlas calls any two
models different that are not is at most 5 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from pydantic import computed_field
from scipy import stats

from bertology.arrays import FloatArray
from bertology.atlas.judged_model import AtlasRecord, Effect, JudgedModel
from bertology.claims.judge import MIN_EXAMPLES
from bertology.estimates.hypothesis_tests import holm

SIGNIFICANCE_LEVEL = 0.05


class ModelDifference(AtlasRecord):
    """The effect of a finding in the first model minus that in the second, with a 95 % interval and p values.

    `is_paired`: the same sentences were resampled together for both; else the interval is that of independent numbers.
    """

    finding: str
    first: str
    second: str
    value: float
    low: float
    high: float
    p: float
    p_adjusted: float = 1.0
    is_paired: bool

    @computed_field
    @property
    def is_significant(self) -> bool:
        """Whether the models differ, after the correction."""
        return self.p_adjusted < SIGNIFICANCE_LEVEL


def compare_models(models: Sequence[JudgedModel]) -> tuple[ModelDifference, ...]:
    """The tested differences of all findings and pairs of models; those without sampling error are left out."""
    ids = dict.fromkeys(finding.id for model in models for finding in model.findings)
    differences: list[ModelDifference] = []
    for id in ids:
        numbers = [number for model in models if (number := _compared_number(model, id)) is not None]
        pairs = (_difference(id, first, second) for first, second in combinations(numbers, 2))
        differences += [difference for difference in pairs if difference is not None]
    adjusted = holm(np.array([difference.p for difference in differences]))
    return tuple(
        difference.model_copy(update={"p_adjusted": float(p)})
        for difference, p in zip(differences, adjusted, strict=True)
    )


class _ComparedNumber(NamedTuple):
    model: str
    effect: Effect
    corpora: tuple[str, ...]
    resamples: FloatArray | None


def _compared_number(model: JudgedModel, id: str) -> _ComparedNumber | None:
    finding = model.find(id)
    if finding is None or finding.effect is None or finding.unit == "layer":
        return None
    return _ComparedNumber(model.name, finding.effect, finding.corpora, finding.effect.resamples())


def _difference(id: str, first: _ComparedNumber, second: _ComparedNumber) -> ModelDifference | None:
    n = min(first.effect.n, second.effect.n)
    paired_error = _paired_error(first, second)
    error = _independent_error(first.effect, second.effect) if paired_error is None else paired_error
    if error is None or n < MIN_EXAMPLES:
        return None
    value = first.effect.value - second.effect.value
    margin = float(stats.t.isf(0.025, n - 1)) * error
    return ModelDifference(
        finding=id,
        first=first.model,
        second=second.model,
        value=value,
        low=value - margin,
        high=value + margin,
        p=_p_value(value, error, n),
        is_paired=paired_error is not None,
    )


def _p_value(value: float, error: float, n: int) -> float:
    """Two-sided p of Student's t, at least that of n items that all speak for the same model."""
    if value == 0.0:
        return 1.0
    p = 2 * float(stats.t.sf(abs(value) / error, n - 1)) if error > 0.0 else 0.0
    return max(p, 2 * 0.5**n)


def _paired_error(first: _ComparedNumber, second: _ComparedNumber) -> float | None:
    """The standard error over resamples of the same sentences; None if other sentences were resampled.

    A sentence that was measured in one of the models alone moves the difference as much as that model's number.
    """
    left, right, n = first.resamples, second.resamples, min(first.effect.n, second.effect.n)
    if first.corpora != second.corpora or n < 2 or not 0 < first.effect.n_rows == second.effect.n_rows:
        return None
    if left is None or right is None or left.shape != right.shape:
        return None
    # The bootstrap divides by n, not by n - 1.
    return float((left - right).std(ddof=1)) * math.sqrt(n / (n - 1))


def _independent_error(first: Effect, second: Effect) -> float | None:
    if first.standard_error is None or second.standard_error is None:
        return None
    return math.hypot(first.standard_error, second.standard_error)
