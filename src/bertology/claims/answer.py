"""The answer to a claim in sentences, written from the fields of its verdict.

A claim brings the words as a template (`template.py`): `answer = "Head {head} finds the verb of an object in {value} of
{cases} cases {interval}; always choosing {offset} finds {other}."` The template says nothing about the outcome: yes or
no stands before it, and what the finding says, the controls and the published value after it. A claim without a
template, or whose numbers lack a placeholder, gets a sentence made of the names of measures and baselines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

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
from bertology.claims.template import OPPOSITE, fill_template, tidy
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
_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def write_answer(claim: Claim, verdict: Verdict, filled_from: str = "") -> str:
    """The answer: yes, no, undecided or not tested, the numbers, what they are compared with, the published value.

    `filled_from` is the built-in corpus on which the claim was tested because the given one lacks what it needs.
    """
    if not verdict.comparisons:
        return f"Not tested. {_sentence(verdict.obstacle)}"
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
    return " ".join([_generic(rounded), *_requirements(rounded)])


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
    text = _fill(claim.answer, claim.each, rounded) if claim.answer else None
    return _sentence(text) if text is not None else _generic(rounded)


def _fill(template: str, each: str, rounded: Sequence[RoundedComparison]) -> str | None:
    """The template with its placeholders filled; None if a number has no such place."""
    fields: dict[str, str] = {}
    for index, comparison in enumerate(rounded, start=1):
        fields |= {f"{name}{'' if index == 1 else index}": text for name, text in _fields(comparison).items()}
        fields |= _baseline_fields(comparison)
    if each:
        texts = [fill_template(each, _fields(comparison)) for comparison in rounded]
        if None in texts:
            return None
        fields["each"] = _join([text for text in texts if text is not None])
        # What they are compared with is that of the comparison that speaks most against the claim.
        weakest = _fields(_weakest(rounded))
        fields |= {name: text for name, text in weakest.items() if name.startswith(("other", "difference", "margin"))}
    return fill_template(template, fields)


def _weakest(rounded: Sequence[RoundedComparison]) -> RoundedComparison:
    return min(rounded, key=lambda r: r.comparison.effect.value - r.comparison.margin)


def _fields(rounded: RoundedComparison) -> dict[str, str]:
    """The placeholders of one comparison."""
    comparison = rounded.comparison
    fields = dict(_measurement_fields(comparison.value, rounded.value))
    fields |= _number_fields("difference", "difference_interval", rounded.effect)
    fields["margin"] = format_constant(comparison.margin, difference_unit(rounded.unit))
    lower = comparison.lower
    if isinstance(lower, Measurement) and rounded.other is not None:
        others = {f"other_{name}": text for name, text in _measurement_fields(lower, rounded.other)}
        fields |= others | {"other": others["other_value"]}
        if lower.variant:
            fields["offset"] = _format_offset(lower.variant)
    return fields


def _number_fields(value: str, interval: str, rounded: RoundedEstimate) -> dict[str, str]:
    """A number and its interval, and the same with the opposite sign."""
    opposite = rounded.opposite
    return {
        value: rounded.text,
        interval: rounded.interval,
        f"{OPPOSITE}{value}": opposite.text,
        f"{OPPOSITE}{interval}": opposite.interval,
    }


def _measurement_fields(measurement: Measurement, rounded: RoundedEstimate) -> Iterator[tuple[str, str]]:
    yield from _number_fields("value", "interval", rounded).items()
    if measurement.estimate.n:
        yield "n", f"{measurement.estimate.n:,}"
    if measurement.n_cases:
        yield "cases", f"{measurement.n_cases:,}"
    if measurement.head is not None:
        yield "head", str(measurement.head)
    if measurement.layers is not None:
        yield "layers", _format_layers(measurement)
        yield "layer", _format_layers(measurement, depth=False)
    if measurement.searched_layers:
        yield "searched", _format_ranges(measurement.searched_layers)
    if measurement.n_candidates > 1:
        yield "candidates", str(measurement.n_candidates)
    if measurement.x is not None:
        yield "x", f"{measurement.x:g}"


def _baseline_fields(rounded: RoundedComparison) -> dict[str, str]:
    lower = rounded.comparison.lower
    if not isinstance(lower, Measurement) or rounded.other is None or lower.baseline is None:
        return {}
    return {f"baseline:{lower.baseline}": rounded.other.text}


def _generic(rounded: Sequence[RoundedComparison]) -> str:
    """The numbers with the names of their measures, one sentence for each number."""
    by_value: dict[Measurement, list[RoundedComparison]] = {}
    for comparison in rounded:
        by_value.setdefault(comparison.comparison.value, []).append(comparison)
    sentences: list[str] = []
    for value, comparisons in by_value.items():
        number = comparisons[0].value
        n = f" (n = {value.estimate.n:,})" if value.estimate.n else ""
        compared = [_compared_number(comparison, value) for comparison in comparisons if comparison.other is not None]
        others = f", beside {_join(compared)}" if compared else ""
        name = _describe(value)
        sentences.append(_sentence(tidy(f"{name} is {number.text} {number.interval}{n}{others}")))
    return " ".join(sentences)


def _compared_number(rounded: RoundedComparison, value: Measurement) -> str:
    lower, other = rounded.comparison.lower, rounded.other
    assert isinstance(lower, Measurement) and other is not None
    name = lower.baseline if lower.baseline is not None and lower.measure == value.measure else _describe(lower)
    return f"{other.text} {other.interval} for {name}"


def _describe(measurement: Measurement) -> str:
    """What was measured and where, in words."""
    parts = [
        measurement.measure,
        f"({measurement.run})" if measurement.run else "",
        f"of {measurement.row}" if measurement.row else "",
        f"of head {measurement.head}" if measurement.head is not None else "",
        f"in {_format_layers(measurement)}" if measurement.layers is not None else "",
        f"at {measurement.x:g} {measurement.x_name}" if measurement.x is not None else "",
        f"({measurement.baseline})" if measurement.baseline else "",
    ]
    return tidy(" ".join(parts))


def _requirement_sentences(claim: Claim, rounded: Sequence[RoundedComparison]) -> list[str]:
    """What the finding says, beside the numbers, where that is more than which of two numbers is larger."""
    if claim.requirement:
        text = _fill(claim.requirement, "", rounded)
        return [_sentence(text)] if text is not None else _requirements(rounded)
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
        return _sentence(f"{name} was not measured{remedy}")
    declared = next((declared for declared in claim.controls if declared.name == control.name), None)
    if declared is not None and declared.test is not None:
        rounded = round_comparisons(control.comparisons, declared.unit or claim.unit)
        text = _fill(declared.answer, "", rounded) if declared.answer else None
        return _sentence(text) if text is not None else _sentence(f"beside {name}: {_generic(rounded)}")
    numbers = _control_numbers(claim, control.name, control.comparisons, further)
    if control.specificity == "stronger":
        return _sentence(f"{name} shows it too, but less clearly: {_join(numbers)}")
    return _control_sentence(verdict, control.name, numbers)


def _control_sentence(verdict: Verdict, name: str, numbers: Sequence[str]) -> str:
    is_head = verdict.comparisons[0].value.head is not None
    subject = f"the best head of {_control_name(name)}" if is_head else _control_name(name)
    return f"For {subject} {'they are' if len(numbers) > 1 else 'it is'} {_join(numbers)}."


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
            where = f" in {_format_layers(measurement, depth=False)}" if is_searched else ""
            yield tidy(f"{estimate.text} {estimate.interval}{where}" if not where else f"{estimate.text}{where}")


def _control_name(name: str) -> str:
    return _CONTROLS.get(name, f"the control {name}")


def _published(claim: Claim) -> str:
    value = claim.published_value.removesuffix(".")
    if not claim.published_model:
        return f"Published: {value}."
    return f"Published for {claim.published_model}: {value}."


def _format_layers(measurement: Measurement, *, depth: bool = True) -> str:
    """Layers as words: `layers 4 to 7 of 8`, `layers 7 and 8 of 8`, `the embeddings`."""
    assert measurement.layers is not None
    first, last = measurement.layers
    of = f" of {measurement.n_layers}" if depth and measurement.n_layers else ""
    return f"{_format_ranges(range(first, last + 1))}{of if last else ''}"


def _format_ranges(layers: Sequence[int]) -> str:
    """Layers as words, with runs shortened: `layers 1 to 3 and 8`, `the embeddings and layer 1`."""
    runs: list[list[int]] = []
    for layer in layers:
        if layer and runs and layer == runs[-1][-1] + 1:
            runs[-1].append(layer)
        elif layer:
            runs.append([layer])
    texts = [str(run[0]) if len(run) == 1 else f"{run[0]} {'and' if len(run) == 2 else 'to'} {run[-1]}" for run in runs]
    n_layers = sum(map(len, runs))
    named = f"{'layer' if n_layers == 1 else 'layers'} {_join(texts)}" if runs else ""
    return _join([text for text in ("the embeddings" if 0 in layers else "", named) if text])


def _format_offset(variant: str) -> str:
    """An offset as words: `the next word`, `two words back`."""
    try:
        offset = int(variant)
    except ValueError:
        return variant
    if abs(offset) == 1:
        return "the next word" if offset > 0 else "the previous word"
    count = _NUMBERS[abs(offset)] if abs(offset) < len(_NUMBERS) else str(abs(offset))
    return f"the word {count} places {'on' if offset > 0 else 'back'}"


def _join(texts: Sequence[str]) -> str:
    """Texts as a list: `a, b and c`."""
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def _sentence(text: str) -> str:
    """A text with a capital and a full stop."""
    text = text.strip()
    if not text:
        return ""
    start = text[0] if "/" in text.split()[0] else text[0].upper()  # not the name of an analysis
    return f"{start}{text[1:]}{'' if text[-1] in '.?!' else '.'}"
