"""`Verdict`: an outcome and the comparisons it rests on. Every fact is a field; the text is made from the fields."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bertology.estimates.estimate import Estimate
from bertology.results.shapes import Head

Outcome = Literal["holds", "fails", "inconclusive", "not applicable"]
OUTCOMES: tuple[Outcome, ...] = ("holds", "fails", "inconclusive", "not applicable")
_PLURALS = {"holds": "hold", "fails": "fail"}


@dataclass(frozen=True)
class Measurement:
    """A number of a result and where it was measured.

    `layers` are the first and the last layer of the model at hand, which has `n_layers`; layer 0 is the embeddings.
    `searched_layers` are those it is the highest, or lowest, of. `n_candidates` heads or layers were compared at once,
    and the interval is corrected for them.
    """

    measure: str
    estimate: Estimate
    run: str = ""
    baseline: str | None = None
    row: str | None = None
    head: Head | None = None
    layers: tuple[int, int] | None = None
    n_layers: int = 0
    searched_layers: tuple[int, ...] = ()
    is_lowest: bool = False
    x: float | None = None
    x_name: str = ""
    n_candidates: int = 1
    n_cases: int = 0
    """Number of single cases, such as words, where the sample size counts sentences."""
    variant: str = ""
    """Which variant of a baseline was the best, such as the offset `-2`."""

    @property
    def name(self) -> str:
        """The number without its value, such as `attention to [SEP], layers 4-7 of 8`."""
        extreme = "lowest" if self.is_lowest else "highest"
        parts = [
            self.run,
            f"baseline {self.baseline}" if self.baseline else "",
            self.measure,
            self.row or "",
            f"head {self.head}" if self.head is not None else "",
            format_layers(*self.layers, self.n_layers) if self.layers is not None else "",
            f"the {extreme} of {_format_ranges(self.searched_layers)}" if self.searched_layers else "",
            f"at {self.x:g} {self.x_name}" if self.x is not None else "",
        ]
        return ", ".join(part for part in parts if part)

    def as_record(self) -> dict[str, Any]:
        """The fields as plain values; absent ones are left out."""
        estimate = self.estimate
        fields: dict[str, Any] = {
            "run": self.run or None,
            "measure": self.measure,
            "baseline": self.baseline,
            "row": self.row,
            "head": None if self.head is None else str(self.head),
            "layers": None if self.layers is None else list(self.layers),
            "searched_layers": list(self.searched_layers) or None,
            "x": self.x,
            **{name: finite_or_none(getattr(estimate, name)) for name in ("value", "low", "high")},
            "n": estimate.n or None,
            "n_cases": self.n_cases or None,
            "variant": self.variant or None,
            "interval": estimate.interval,
            "n_candidates": self.n_candidates if self.n_candidates > 1 else None,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True)
class Comparison:
    """A number and what it was compared with: another number, a constant, or the limits of a range.

    `lower` and `upper` are what the number must lie above and below. It must exceed `lower` by more than `margin`, or
    fall below `lower` if `is_below`. The interval of the paired `difference` decides where it is measured, else the
    two intervals.
    """

    value: Measurement
    lower: Measurement | float
    upper: float | None = None
    margin: float = 0.0
    is_below: bool = False
    difference: Estimate | None = None

    @property
    def effect(self) -> Estimate:
        """How far the number exceeds `lower`, or falls below it: the paired difference, or that of the intervals."""
        if self.difference is not None:
            return self.difference
        value, lower = self.value.estimate, as_estimate(self.lower)
        if self.is_below:
            value, lower = lower, value
        n = max(value.n, lower.n)
        return Estimate(value.value - lower.value, value.low - lower.high, value.high - lower.low, n, value.interval)

    @property
    def outcome(self) -> Outcome:
        """Whether the intervals satisfy the comparison, its opposite, or neither."""
        if self.upper is not None:
            estimate, lower = self.value.estimate, as_estimate(self.lower)
            if estimate.clearly_above(lower) and estimate.clearly_below(self.upper):
                return "holds"
            outside = estimate.clearly_below(lower) or estimate.clearly_above(self.upper)
            return "fails" if outside else "inconclusive"
        if self.effect.clearly_above(self.margin):
            return "holds"
        return "fails" if self.effect.clearly_below(self.margin) else "inconclusive"

    def as_record(self) -> dict[str, Any]:
        """The fields as plain values."""
        lower = self.lower.as_record() if isinstance(self.lower, Measurement) else finite_or_none(self.lower)
        record: dict[str, Any] = {**self.value.as_record(), "outcome": self.outcome}
        if self.upper is not None:
            return record | {"required": {"above": lower, "below": self.upper}}
        record["required"] = {"below" if self.is_below else "above": lower, "margin": self.margin}
        if self.difference is not None:
            record["difference"] = _interval_record(self.difference)
        return record


_LIMITS = ("value", "low", "high")


Specificity = Literal["specific", "stronger", "earned too", "undecided", "not measured"]
"""How a finding relates to a control.

`specific`: the effect is larger in the model, and the control does not pass the claim's test. `stronger`: it is larger,
though the control passes as well. `earned too`: the control passes, and the effect is not larger. `undecided`: the
difference may be zero. `not measured`: the results lack the control.
"""
SPECIFIC: frozenset[Specificity | None] = frozenset({"specific", "stronger"})
"""The relations in which a finding says something about the model."""


@dataclass(frozen=True)
class ControlVerdict:
    """How a finding that holds relates to one control.

    `comparisons` are the control's numbers; `difference` is how much larger the effect is in the model. `remedy` says
    how to measure a control that was not measured.
    """

    name: str
    specificity: Specificity
    comparisons: tuple[Comparison, ...] = ()
    difference: Estimate | None = None
    remedy: str = ""

    @property
    def label(self) -> str:
        """The relation in words."""
        is_untrained = self.name == "untrained model"
        match self.specificity:
            case "specific":
                return "specific"
            case "stronger":
                return f"more {'than without training' if is_untrained else f'than {self.name}'}"
            case "earned too":
                return "also without training" if is_untrained else f"no better than {self.name}"
            case "undecided":
                return f"not distinguishable from {self.name}"
            case "not measured":
                return f"{self.name} not measured"


@dataclass(frozen=True)
class FewExamples:
    """A caveat: a compared number is of fewer examples than a verdict needs."""

    n: int
    minimum: int


@dataclass(frozen=True)
class LearningProbe:
    """A caveat: more training data could change a number so much that the verdict would change.

    `gain` is what the second half of `n_training` sentences or examples (`unit`) added to it; fewer than `minimum` say
    nothing about what more would add.
    """

    number: Measurement
    gain: Estimate
    n_training: int
    unit: str
    minimum: int


Caveat = FewExamples | LearningProbe


@dataclass(frozen=True)
class Verdict:
    """An outcome and the comparisons behind it.

    `n_required` of the comparisons must hold. `obstacle` says why a claim does not apply, and `lacking`
    names what is needed, such as dependency trees. `controls` say whether a finding that holds is specific to the
    model.
    """

    outcome: Outcome
    comparisons: tuple[Comparison, ...] = ()
    n_required: int = 0
    obstacle: str = ""
    lacking: str = ""
    controls: tuple[ControlVerdict, ...] = ()
    n_training: int = 0
    """Number of training sentences or examples, if the numbers are scores of probes."""
    training_unit: str = "sentences"
    untrained: tuple[Comparison, ...] = ()
    """The same comparisons in the untrained model, whatever the outcome; empty if it is no control or not measured."""
    caveats: tuple[Caveat, ...] = ()
    """Why intervals that satisfy the test, or its opposite, do not decide."""

    def __repr__(self) -> str:
        value = (
            f": {self.comparisons[0].value.name} is {self.comparisons[0].value.estimate}" if self.comparisons else ""
        )
        return f"Verdict({self.label}{value or (self.obstacle and f': {self.obstacle}')})"

    @property
    def specificity(self) -> Specificity | None:
        """The least favourable relation to a control; None if the finding does not hold or has no control."""
        relations = {control.specificity for control in self.controls}
        order: tuple[Specificity, ...] = ("earned too", "undecided", "not measured", "stronger", "specific")
        return next((specificity for specificity in order if specificity in relations), None)

    @property
    def qualification(self) -> str:
        """The relation to the least favourable control in words, such as `also without training`; empty if none."""
        return next((c.label for c in self.controls if c.specificity == self.specificity), "")

    @property
    def label(self) -> str:
        """The outcome and its relation to the controls: `holds, also without training`."""
        return f"{self.outcome}, {self.qualification}" if self.qualification else self.outcome

    def _baseline_record(self) -> dict[str, Any] | None:
        """The name and number of what the first number was compared with; None if it was a constant."""
        lower = self.comparisons[0].lower if self.comparisons else 0.0
        if not isinstance(lower, Measurement):
            return None
        return {"name": lower.baseline or lower.name, **_interval_record(lower.estimate), "n": lower.estimate.n or None}

    def as_record(self) -> dict[str, Any]:
        """The outcome and the fields of every comparison; those of the first stand at the top level."""
        comparisons = [comparison.as_record() for comparison in self.comparisons]
        first = comparisons[0] if comparisons else {}
        names = ("measure", "row", "head", "layers", *_LIMITS, "n", "interval", "required", "difference")
        return {
            "verdict": self.outcome,
            "specificity": self.specificity,
            **{name: first[name] for name in names if name in first},
            "baseline": self._baseline_record(),
            "comparisons": comparisons,
            "n_training": self.n_training or None,
            "obstacle": self.obstacle or None,
            "controls": [
                {
                    "name": control.name,
                    "specificity": control.specificity,
                    "difference": None if control.difference is None else _interval_record(control.difference),
                    "remedy": control.remedy or None,
                    "comparisons": [comparison.as_record() for comparison in control.comparisons],
                }
                for control in self.controls
            ],
        }


def _interval_record(estimate: Estimate) -> dict[str, float | None]:
    return {name: finite_or_none(getattr(estimate, name)) for name in _LIMITS}


def as_estimate(number: Measurement | float) -> Estimate:
    """The estimate of a measurement; a constant is exact."""
    return number.estimate if isinstance(number, Measurement) else Estimate(number, number, number, 0, "exact")


def finite_or_none(number: float) -> float | None:
    """The number; None for NaN and infinities, which JSON does not have."""
    return float(number) if math.isfinite(number) else None


def format_layers(first: int, last: int, n_layers: int) -> str:
    """Layers as text: `layer 8 of 12`, `layers 4-7 of 12`, `embeddings`."""
    if (first, last) == (0, 0):
        return "embeddings"
    return f"layer {last} of {n_layers}" if first == last else f"layers {first}-{last} of {n_layers}"


def _format_ranges(layers: Sequence[int]) -> str:
    """Layers as text, with runs shortened: `layers 1-4, 9-12`."""
    runs: list[list[int]] = []
    for layer in layers:
        if runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    texts = [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs]
    return f"{'layer' if len(layers) == 1 else 'layers'} {', '.join(texts)}"


def count_verdicts(verdicts: Sequence[Verdict]) -> str:
    """The number of each outcome, as text; of those that hold, first those that are specific to the model."""
    counts = Counter[str](verdict.outcome for verdict in verdicts)
    holding = [verdict for verdict in verdicts if verdict.outcome == "holds"]
    n_specific = sum(verdict.specificity in SPECIFIC for verdict in holding)
    parts = [f"{n_specific} {'holds and is' if n_specific == 1 else 'hold and are'} specific to the model"]
    others = Counter(
        _HOLDING_OTHERWISE[verdict.specificity] for verdict in holding if verdict.specificity not in SPECIFIC
    )
    parts += [f"{n} {'holds' if n == 1 else 'hold'} {label}" for label, n in others.items()]
    for name in OUTCOMES[1:]:
        if counts[name]:
            parts.append(f"{counts[name]} {name if counts[name] == 1 else _PLURALS.get(name, name)}")
    return ", ".join(parts if holding else parts[1:])


_HOLDING_OTHERWISE: dict[Specificity | None, str] = {
    "earned too": "also without training or with a simpler baseline",
    "undecided": "but cannot be distinguished from a control",
    "not measured": "without a measured control",
    None: "without a control",
}
