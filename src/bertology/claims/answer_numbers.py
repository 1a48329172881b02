"""The numbers of comparisons in words: the fields of a claim's template, or sentences of the names of measures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertology.claims.rounding import (
    RoundedComparison,
    RoundedEstimate,
    difference_unit,
    format_constant,
)
from bertology.claims.template import OPPOSITE, fill_template, tidy
from bertology.claims.verdict import (
    Measurement,
)

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def fill_comparisons(template: str, each: str, rounded: Sequence[RoundedComparison]) -> str | None:
    """The template with its placeholders filled; None if a number has no such place."""
    fields: dict[str, str] = {}
    for index, comparison in enumerate(rounded, start=1):
        fields |= {f"{name}{'' if index == 1 else index}": text for name, text in comparison_fields(comparison).items()}
        fields |= _baseline_fields(comparison)
    if each:
        texts = [fill_template(each, comparison_fields(comparison)) for comparison in rounded]
        if None in texts:
            return None
        fields["each"] = join_texts([text for text in texts if text is not None])
        # What they are compared with is that of the comparison that speaks most against the claim.
        weakest = comparison_fields(_weakest(rounded))
        fields |= {name: text for name, text in weakest.items() if name.startswith(("other", "difference", "margin"))}
    return fill_template(template, fields)


def _weakest(rounded: Sequence[RoundedComparison]) -> RoundedComparison:
    return min(rounded, key=lambda r: r.comparison.effect.value - r.comparison.margin)


def comparison_fields(rounded: RoundedComparison) -> dict[str, str]:
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
        yield "layers", layers_in_words(measurement)
        yield "layer", layers_in_words(measurement, depth=False)
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


def write_plain_numbers(rounded: Sequence[RoundedComparison]) -> str:
    """The numbers with the names of their measures, one sentence for each number."""
    by_value: dict[Measurement, list[RoundedComparison]] = {}
    for comparison in rounded:
        by_value.setdefault(comparison.comparison.value, []).append(comparison)
    sentences: list[str] = []
    for value, comparisons in by_value.items():
        number = comparisons[0].value
        n = f" (n = {value.estimate.n:,})" if value.estimate.n else ""
        compared = [_compared_number(comparison, value) for comparison in comparisons if comparison.other is not None]
        others = f", beside {join_texts(compared)}" if compared else ""
        name = describe_measurement(value)
        sentences.append(as_sentence(tidy(f"{name} is {number.text} {number.interval}{n}{others}")))
    return " ".join(sentences)


def _compared_number(rounded: RoundedComparison, value: Measurement) -> str:
    lower, other = rounded.comparison.lower, rounded.other
    assert isinstance(lower, Measurement) and other is not None
    name = (
        lower.baseline if lower.baseline is not None and lower.measure == value.measure else describe_measurement(lower)
    )
    return f"{other.text} {other.interval} for {name}"


def describe_measurement(measurement: Measurement) -> str:
    """What was measured and where, in words."""
    parts = [
        measurement.measure,
        f"({measurement.run})" if measurement.run else "",
        f"of {measurement.row}" if measurement.row else "",
        f"of head {measurement.head}" if measurement.head is not None else "",
        f"in {layers_in_words(measurement)}" if measurement.layers is not None else "",
        f"at {measurement.x:g} {measurement.x_name}" if measurement.x is not None else "",
        f"({measurement.baseline})" if measurement.baseline else "",
    ]
    return tidy(" ".join(parts))


def layers_in_words(measurement: Measurement, *, depth: bool = True) -> str:
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
    named = f"{'layer' if n_layers == 1 else 'layers'} {join_texts(texts)}" if runs else ""
    return join_texts([text for text in ("the embeddings" if 0 in layers else "", named) if text])


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


def join_texts(texts: Sequence[str]) -> str:
    """Texts as a list: `a, b and c`."""
    return " and ".join(filter(None, [", ".join(texts[:-1]), *texts[-1:]]))


def as_sentence(text: str) -> str:
    """A text with a capital and a full stop."""
    text = text.strip()
    if not text:
        return ""
    start = text[0] if "/" in text.split()[0] else text[0].upper()  # not the name of an analysis
    return f"{start}{text[1:]}{'' if text[-1] in '.?!' else '.'}"
