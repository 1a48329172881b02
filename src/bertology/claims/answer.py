"""The answer to a claim in sentences, written from the fields of its verdict.

A claim brings the words as a template (`template.py`): `answer = "Head {head} finds the verb of an object in {value} of
{cases} cases {interval}; always choosing {offset} finds {other}."` The template says nothing about the outcome: yes or
no stands before it, and what the finding says, the controls and the published value after it. A claim without a
template, or whose numbers lack a placeholder, gets a sentence made of the names of measures and baselines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bertology.claims.answer_numbers import (
    as_sentence,
    fill_comparisons,
    join_texts,
    layers_in_words,
    write_plain_numbers,
)
from bertology.claims.claim import AnyHead, Claim
from bertology.claims.rounding import (
    RoundedComparison,
    RoundedEstimate,
    Unit,
    difference_unit,
    format_constant,
    round_comparisons,
    round_estimate,
    round_plainly,
)
from bertology.claims.strip import UNTRAINED_MODEL
from bertology.claims.template import tidy
from bertology.claims.verdict import (
    Caveat,
    Comparison,
    ControlVerdict,
    FewExamples,
    LearningProbe,
    Measurement,
    Verdict,
)

_CONTROLS = {
    UNTRAINED_MODEL: "an untrained model",
    "distance and words": "a probe on distance and words alone",
    "random heads": "heads chosen at random",
}
"""The names of controls in a sentence."""
_MAX_FURTHER_DIGITS = 3
"""So many further digits are tried to tell two numbers apart."""


def write_answer(claim: Claim, verdict: Verdict, filled_from: str = "") -> str:
    """The answer: yes, no, undecided or not tested, the numbers, what they are compared with, the published value.

    `filled_from` is the built-in corpus on which the claim was tested because the given one lacks what it needs.
    """
    if not verdict.comparisons:
        return f"Not tested. {as_sentence(verdict.obstacle)}"
    further = _further_digits(claim, verdict)
    rounded = round_comparisons(verdict.comparisons, claim.unit, further=further)
    is_learning = any(isinstance(caveat, LearningProbe) for caveat in verdict.caveats)
    n_training = 0 if is_learning else verdict.n_training
    parts = [
        _opening(claim, verdict, rounded),
        _finding(claim, rounded),
        *_requirement_sentences(claim, rounded),
        *_rows(verdict),
        f"The probe learnt from {n_training:,} {verdict.training_unit}." if n_training else "",
        *_controls(claim, verdict, further),
        _published(claim),
        f"Tested on the built-in corpus {filled_from}, because the given one lacks what this needs."
        if filled_from
        else "",
    ]
    return " ".join(filter(None, parts))


def write_short_answer(claim: Claim, verdict: Verdict) -> str:
    """The answer without controls and published value, for a card whose picture shows them."""
    if not verdict.comparisons:
        return write_answer(claim, verdict)
    rounded = round_comparisons(verdict.comparisons, claim.unit, further=_further_digits(claim, verdict))
    return " ".join(filter(None, [_opening(claim, verdict, rounded), _finding(claim, rounded)]))


def describe_caveat(caveat: Caveat, unit: Unit) -> str:
    """Why numbers that look decided are not, as a clause."""
    if isinstance(caveat, FewExamples):
        return (
            f"{caveat.n} {'example is' if caveat.n == 1 else 'examples are'} too few, and {caveat.minimum} are needed"
        )
    if caveat.n_training < caveat.minimum:
        return f"a probe with {caveat.n_training:,} training {caveat.unit} has not learnt enough"
    gain = round_estimate(caveat.gain, difference_unit(unit))
    return tidy(
        f"more training data might change this: the second half of {caveat.n_training:,} training {caveat.unit} gave "
        f"{gain.text} {gain.interval}"
    )


def _further_digits(claim: Claim, verdict: Verdict) -> int:
    """Further digits with which a number of the model and one of a control do not look equal, unless they are."""
    controls = [control.comparisons for control in verdict.controls if control.difference is not None]
    for further in range(_MAX_FURTHER_DIGITS):
        model = round_comparisons(verdict.comparisons, claim.unit, further=further)[0].value
        others = [_round_control(claim, comparisons, further).value for comparisons in controls if comparisons]
        if not any(_look_equal(model, other) for other in others):
            return further
    return 0


def _look_equal(left: RoundedEstimate, right: RoundedEstimate) -> bool:
    return left.text == right.text and left.estimate.value != right.estimate.value


def write_comparisons(verdict: Verdict) -> str:
    """The numbers of a verdict in sentences made of the names of measures and baselines."""
    rounded = round_comparisons(verdict.comparisons, "number")
    return " ".join([write_plain_numbers(rounded), *_requirements(rounded)])


def _opening(claim: Claim, verdict: Verdict, rounded: Sequence[RoundedComparison]) -> str:
    if verdict.outcome == "fails":
        return "No."
    if verdict.outcome == "inconclusive":
        return f"Undecided, because {_doubt(claim, verdict, rounded)}."
    control = next((c for c in verdict.controls if c.specificity == verdict.specificity), None)
    if control is not None and control.specificity == "earned too":
        return f"Yes, but the same holds for {_control_name(control.name)}."
    if control is not None and control.specificity == "undecided":
        return f"Yes, but perhaps {_control_name(control.name)} does as well."
    return "Yes."


def _doubt(claim: Claim, verdict: Verdict, rounded: Sequence[RoundedComparison]) -> str:
    """Why the numbers do not decide."""
    if verdict.caveats:
        # One reason is enough: the largest gain of a probe, rather than of a baseline.
        reason = min(verdict.caveats, key=_rank_caveat)
        return describe_caveat(reason, claim.unit)
    undecided = [r for r in rounded if r.comparison.outcome == "inconclusive"] or list(rounded)
    first = undecided[0]
    comparison = first.comparison
    if not all(math.isfinite(limit) for limit in (comparison.effect.low, comparison.effect.high)):
        return "there is no interval for one of the numbers"
    if isinstance(claim.test, AnyHead):
        return "no head is clearly above what the finding says, and not every head is clearly below it"
    if verdict.n_required:
        return "too few rows are clear"
    if comparison.upper is not None:
        limits = [limit for limit in (comparison.lower, comparison.upper) if _inside(comparison, limit)]
        return f"the interval includes {' and '.join(format_constant(_number(limit), first.unit) for limit in limits)}"
    if not isinstance(comparison.lower, Measurement):
        return f"the interval includes {format_constant(comparison.lower, first.unit)}"
    if comparison.difference is None and not comparison.margin:
        constant = next((side for side in (first.value, first.other) if side is not None and not side.has_width), None)
        if constant is not None:
            return f"the interval includes {'zero' if constant.estimate.value == 0.0 else constant.text}"
        return "the two intervals overlap"
    bar = format_constant(comparison.margin, difference_unit(first.unit)) if comparison.margin else "zero"
    return f"the interval of the difference includes {bar}"


def _rank_caveat(caveat: Caveat) -> tuple[bool, bool, float]:
    if isinstance(caveat, FewExamples):
        return False, False, 0.0
    return True, caveat.number.baseline is not None, -abs(caveat.gain.value)


def _inside(comparison: Comparison, limit: Measurement | float) -> bool:
    """Whether an interval includes a limit; one that is as good as at the limit includes it too."""
    estimate, number = comparison.value.estimate, _number(limit)
    return not estimate.clearly_above(number) and not estimate.clearly_below(number)


def _number(limit: Measurement | float) -> float:
    return limit.estimate.value if isinstance(limit, Measurement) else limit


def _finding(claim: Claim, rounded: Sequence[RoundedComparison]) -> str:
    """The numbers in the words of the claim, or in the names of measures and baselines."""
    text = fill_comparisons(claim.answer, claim.each, rounded) if claim.answer else None
    return as_sentence(text) if text is not None else write_plain_numbers(rounded)


def _requirement_sentences(claim: Claim, rounded: Sequence[RoundedComparison]) -> list[str]:
    """What the finding says, beside the numbers, where that is more than which of two numbers is larger."""
    if claim.requirement:
        text = fill_comparisons(claim.requirement, "", rounded)
        return [as_sentence(text)] if text is not None else _requirements(rounded)
    return _requirements(rounded)


def _requirements(rounded: Sequence[RoundedComparison]) -> list[str]:
    return list(dict.fromkeys(filter(None, map(_requirement, rounded))))


def _requirement(rounded: RoundedComparison) -> str:
    comparison, unit = rounded.comparison, rounded.unit
    lower, upper, margin = comparison.lower, comparison.upper, comparison.margin
    effect = tidy(f"The difference is {rounded.effect.text} {rounded.effect.interval}")
    if upper is not None:
        return f"The finding says {_range(_number(lower), upper, unit)}."
    if not isinstance(lower, Measurement):
        return f"The finding says {_more_than(lower, unit)}." if math.isfinite(lower) else ""
    if margin:
        bar = format_constant(abs(margin), difference_unit(unit))
        return f"{effect}; the finding says {f'more than {bar}' if margin > 0 else f'a loss of less than {bar}'}."
    return f"{effect}." if comparison.difference is not None else ""


def _more_than(limit: float, unit: Unit) -> str:
    if limit == 0.0:
        return "more than zero"
    if limit < 0.0 and unit == "points":
        return f"a loss of less than {format_constant(-limit, unit)}"
    return f"more than {format_constant(limit, unit)}"


def _range(low: float, high: float, unit: Unit) -> str:
    """What lies between two limits; an end that no number passes is left out."""
    if low == -high:
        return f"a difference of less than {format_constant(high, unit)}"
    floor = {"percent": 0.0, "points": -1.0}.get(unit, -math.inf)
    if low <= floor:
        return f"less than {format_constant(high, unit)}"
    return f"between {format_constant(low, unit)} and {format_constant(high, unit)}"


def _rows(verdict: Verdict) -> list[str]:
    if not verdict.n_required:
        return []
    holding = sum(comparison.outcome == "holds" for comparison in verdict.comparisons)
    n_rows = len({comparison.value for comparison in verdict.comparisons})
    return [f"It is so in {holding} of {n_rows} rows; the finding says at least {verdict.n_required}."]


def _controls(claim: Claim, verdict: Verdict, further: int) -> list[str]:
    """The numbers of the controls; those of the untrained model whatever the outcome."""
    sentences = [_control(claim, verdict, control, further) for control in verdict.controls]
    if verdict.untrained and not any(control.name == UNTRAINED_MODEL for control in verdict.controls):
        numbers = _control_numbers(claim, UNTRAINED_MODEL, verdict.untrained, further)
        sentences.append(_control_sentence(verdict, UNTRAINED_MODEL, numbers))
    return sentences


def _control(claim: Claim, verdict: Verdict, control: ControlVerdict, further: int) -> str:
    name = _control_name(control.name)
    if not control.comparisons:
        remedy = f": {control.remedy}" if control.remedy else ""
        return as_sentence(f"{name} was not measured{remedy}")
    declared = next((declared for declared in claim.controls if declared.name == control.name), None)
    if declared is not None and declared.test is not None:
        rounded = round_comparisons(control.comparisons, declared.unit or claim.unit)
        text = fill_comparisons(declared.answer, "", rounded) if declared.answer else None
        return as_sentence(text) if text is not None else as_sentence(f"beside {name}: {write_plain_numbers(rounded)}")
    numbers = _control_numbers(claim, control.name, control.comparisons, further)
    if control.specificity == "stronger":
        return as_sentence(f"{name} shows it too, but less clearly: {join_texts(numbers)}")
    return _control_sentence(verdict, control.name, numbers)


def _control_sentence(verdict: Verdict, name: str, numbers: Sequence[str]) -> str:
    is_head = verdict.comparisons[0].value.head is not None
    subject = f"the best head of {_control_name(name)}" if is_head else _control_name(name)
    return f"For {subject} {'they are' if len(numbers) > 1 else 'it is'} {join_texts(numbers)}."


def _control_numbers(claim: Claim, name: str, comparisons: Sequence[Comparison], further: int) -> list[str]:
    """The numbers of a control that stand for those of the model."""
    attempts = [
        list(_own_numbers(_round_control(claim, comparisons, further + more), name))
        for more in range(_MAX_FURTHER_DIGITS)
    ]
    return next((numbers for numbers in attempts if len(set(numbers)) == len(numbers)), attempts[0])


def _round_control(claim: Claim, comparisons: Sequence[Comparison], further: int) -> RoundedComparison:
    """The comparison of a control that speaks most against the claim."""
    weakest = min(comparisons, key=lambda comparison: comparison.effect.value - comparison.margin)
    return round_plainly(weakest, claim.unit, further=further)


def _own_numbers(rounded: RoundedComparison, control: str) -> Iterator[str]:
    """The numbers of a comparison that are of the control itself, with their layers where these were searched."""
    comparison = rounded.comparison
    sides = [(comparison.value, rounded.value), (comparison.lower, rounded.other)]
    for measurement, estimate in sides:
        if not isinstance(measurement, Measurement) or estimate is None:
            continue
        if measurement.baseline in {None, control}:
            is_searched = measurement.n_candidates > 1 and measurement.layers is not None
            where = f" in {layers_in_words(measurement, depth=False)}" if is_searched else ""
            yield tidy(f"{estimate.text} {estimate.interval}{where}" if not where else f"{estimate.text}{where}")


def _control_name(name: str) -> str:
    return _CONTROLS.get(name, f"the control {name}")


def _published(claim: Claim) -> str:
    value = claim.published_value.removesuffix(".")
    if not claim.published_model:
        return f"Published: {value}."
    return f"Published for {claim.published_model}: {value}."
