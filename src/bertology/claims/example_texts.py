"""Example texts for a claim: those in a sample in which it shows most, and those in which it shows least.

The numbers are the claim's own, measured on a single text. Only analyses whose numbers are means over texts can be
measured so; what is trained on many texts, or compares their hidden states, says nothing about one text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from bertology.analyses import registry
from bertology.analyses.run import ROLE_NAMES, RunInputs, run_all
from bertology.claims.claim import (
    AnyHead,
    Between,
    Claim,
    ClaimRun,
    Greater,
    Increasing,
    NumberSelector,
    PeakLayer,
    Test,
    tested_rows,
)
from bertology.claims.claim_results import ClaimResult
from bertology.claims.result_numbers import MissingNumberError, ResultNumbers
from bertology.claims.run_plan import run_inputs_for
from bertology.claims.verdict import Measurement
from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.encoder.threads import single_thread
from bertology.estimates.estimate import Estimates
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, Table

SAMPLE_SIZE, TEXTS_PER_END = 16, 2
"""Number of texts examined, and shown at either end."""
MAX_EMPTY_TEXTS = 4
"""If this many texts have no number for any claim, no further texts are tried."""
GROUPS = ("attention/", "heads/")
"""Groups of analyses whose numbers are means over texts."""


@dataclass(frozen=True)
class TextMeasurement:
    """A text, its index in the corpus, and a claim's numbers on it."""

    text: str
    numbers: tuple[float, ...]
    index: int

    @property
    def margin(self) -> float:
        """How clearly the text supports the claim: the first number minus the others."""
        return self.numbers[0] - sum(self.numbers[1:])


@dataclass(frozen=True)
class ExampleTexts:
    """The texts in which a claim shows most and least; `n_examined` of `n_total` texts were measured.

    `run` says in which model and corpus.
    """

    measures: tuple[str, ...]
    strongest: tuple[TextMeasurement, ...]
    weakest: tuple[TextMeasurement, ...]
    n_examined: int
    n_total: int
    run: ClaimRun

    def as_record(self) -> dict[str, Any]:
        """All numbers and texts as plain values."""
        return {name: value for name, value in asdict(self).items() if name != "run"}

    @property
    def texts(self) -> tuple[TextMeasurement, ...]:
        """All texts, each once, the strongest first."""
        return tuple({measured.index: measured for measured in (*self.strongest, *self.weakest)}.values())


@dataclass(frozen=True)
class _SingleTextClaim:
    """A claim that can be measured on one text: its run, and the numbers selected on the whole corpus, if any."""

    claim: Claim
    run: ClaimRun
    selected: tuple[Measurement, ...]


def example_texts(claim_results: Sequence[ClaimResult], inputs: RunInputs) -> dict[str, ExampleTexts]:
    """Example texts by claim id, for the claims that can be measured on one text."""
    text_claims = [claim for result in claim_results if (claim := _single_text_claim(result)) is not None]
    examples: dict[str, ExampleTexts] = {}
    for target, corpus in dict.fromkeys((claim.run.target, claim.run.corpus) for claim in text_claims):
        group = [claim for claim in text_claims if (claim.run.target, claim.run.corpus) == (target, corpus)]
        examples |= _measure_texts(group, run_inputs_for(inputs, group[0].run))
    return examples


def _single_text_claim(claim_result: ClaimResult) -> _SingleTextClaim | None:
    """The claim for one text; None if it has several runs, does not apply, or needs many texts."""
    claim, runs = claim_result.claim, list(claim_result.claim.all_runs.values())
    if len(runs) > 1 or claim_result.verdict.outcome == "not applicable" or not runs[0].analysis.startswith(GROUPS):
        return None
    data = claim_result.results[0].data
    if isinstance(data, Table) and "head" in data.attributes:
        return _selected_head_claim(claim, runs[0], data)
    only_recordings = set(registry.get(runs[0].analysis).inputs) <= set(ROLE_NAMES)
    return _SingleTextClaim(claim, runs[0], _selected(claim_result)) if only_recordings else None


def _selected(claim_result: ClaimResult) -> tuple[Measurement, ...]:
    """The head or the two layers that the verdict selected among many; empty if it selected none."""
    comparison = next(iter(claim_result.verdict.comparisons), None)
    if comparison is None or not isinstance(claim_result.claim.test, AnyHead | PeakLayer):
        return ()
    if comparison.value.head is not None or not isinstance(comparison.lower, Measurement):
        return (comparison.value,)
    layers = comparison.value, comparison.lower
    return layers[::-1] if comparison.is_below else layers


def _selected_head_claim(claim: Claim, run: ClaimRun, table: Table) -> _SingleTextClaim | None:
    """A table with the best head of each row is measured on one text by that head's score for the row."""
    rows = tested_rows(claim.test)
    options = registry.get(run.analysis).options
    if len(rows) != 1 or not {"show", "relation", "min_examples"} <= set(options):
        return None
    (relation,) = rows
    index = table.row_names.index(relation) if relation in table.row_names else -1
    head, direction = (table.attributes.get(name, (None,))[index] for name in ("head", "direction"))
    if index < 0 or not isinstance(head, str) or not isinstance(direction, str):
        return None
    test = AnyHead(measure=f"{relation}, {direction}")
    head_run = run.model_copy(
        update={"options": {**run.options, "show": "heads", "relation": relation, "min_examples": 1}}
    )
    selected = Measurement(test.measure, Estimates.empty(1)[0], head=Head.parse(head))
    return _SingleTextClaim(claim.model_copy(update={"test": test}), head_run, (selected,))


def _measure_texts(text_claims: Sequence[_SingleTextClaim], inputs: RunInputs) -> dict[str, ExampleTexts]:
    """Example texts of claims about one model and corpus; each text is run through the model once."""
    if inputs.corpus is None or (inputs.encoder is None and inputs.recording is None):
        return {}
    measured: dict[str, list[tuple[tuple[str, ...], TextMeasurement]]] = {c.claim.id: [] for c in text_claims}
    for number, index in enumerate(sample_evenly(len(inputs.corpus))):
        if number == MAX_EMPTY_TEXTS and not any(measured.values()):
            break
        results = _run_on_text(index, [c.run for c in text_claims], inputs, inputs.corpus)
        for text_claim in text_claims:
            result = results.get(_key(text_claim.run))
            values = None if result is None else _compared_values(text_claim, result)
            if values is not None:
                measurement = TextMeasurement(display_text(inputs.corpus[index]), tuple(values.values()), index)
                measured[text_claim.claim.id].append((tuple(values), measurement))
    examples = {
        c.claim.id: _strongest_and_weakest(texts, len(inputs.corpus), c.run)
        for c in text_claims
        if (texts := measured[c.claim.id])
    }
    return {claim_id: texts for claim_id, texts in examples.items() if texts.n_examined >= 2 * TEXTS_PER_END}


def sample_evenly(n_examples: int) -> list[int]:
    """The indices of `SAMPLE_SIZE` examples, evenly spaced over the corpus."""
    return [int(index) for index in np.unique(np.linspace(0, n_examples - 1, SAMPLE_SIZE).round())]


def display_text(example: Example) -> str:
    """The segments of an example as one line."""
    return " ‖ ".join(segment.text for segment in example.segments)


def _run_on_text(index: int, runs: Sequence[ClaimRun], inputs: RunInputs, corpus: Corpus) -> dict[str, Result]:
    """The results of the analyses on one example, by run key; refused ones are left out."""
    requests = {_key(run): (registry.get(run.analysis), dict(run.options)) for run in runs}
    recording, against = (
        None if whole is None else whole.select_examples([index])
        for whole in (inputs.recording, inputs.against_recording)
    )
    if recording is not None and not recording.inputs:  # the example was skipped when it was recorded
        return {}
    single = replace(
        inputs,
        corpus=replace(corpus, examples=(corpus[index],)),
        recording=recording,
        against_recording=against,
        untrained_recording=None,
        random_baseline=False,
        store=None,
    )
    with single_thread():
        report = run_all(list(requests.values()), single)
    outcomes = zip(requests, report.outcomes, strict=True)
    return {key: outcome for key, outcome in outcomes if isinstance(outcome, Result)}


def _key(run: ClaimRun) -> str:
    return f"{run.analysis} {sorted(run.options.items())}"


def _compared_values(text_claim: _SingleTextClaim, result: Result) -> dict[str, float] | None:
    """The numbers the test compares, by description; baselines that one text cannot have are left out."""
    numbers, test = ResultNumbers(text_claim.claim, {"": result}), text_claim.claim.test
    try:
        if isinstance(test, AnyHead | PeakLayer):
            return _selected_values(numbers, text_claim.selected)
        first, *others = _compared_selectors(test)
        measured = [numbers.measurement(first)]
    except MissingNumberError:
        return None
    for selector in others:
        try:
            measured.append(numbers.measurement(selector))
        except MissingNumberError:
            if selector.baseline is None:
                return None
    return {number.name: number.estimate.value for number in measured}


def _compared_selectors(test: Test) -> list[NumberSelector]:
    """The number a test is about and, if there is one, the number it is compared with."""
    match test:
        case Greater():
            return [test.left, *([test.right] if isinstance(test.right, NumberSelector) else [])]
        case Between():
            return [test.value]
        case Increasing() if len(test.values) == 2:
            return list(reversed(test.values))
        case _:
            raise MissingNumberError("one text has no such number")


def _selected_values(numbers: ResultNumbers, selected: Sequence[Measurement]) -> dict[str, float] | None:
    """The numbers of the head, or of the two layers, selected on the whole corpus."""
    values: dict[str, float] = {}
    for number in selected:
        if number.head is not None:
            values[number.name] = float(
                numbers.measure(numbers.data("", HeadGrid), number.measure, None).value[number.head]
            )
        elif number.layers is not None:
            curve, first_layer = numbers.curve("", number.measure)
            values[number.name] = float(curve.value[number.layers[0] - first_layer])
    return values if values and np.isfinite(list(values.values())).all() else None


def _strongest_and_weakest(
    measurements: Sequence[tuple[tuple[str, ...], TextMeasurement]], n_total: int, run: ClaimRun
) -> ExampleTexts:
    """The texts at both ends; texts without a number that others have are left out."""
    measures = max((names for names, _ in measurements), key=len)
    order = sorted((m for names, m in measurements if names == measures), key=lambda m: -m.margin)
    strongest, weakest = tuple(order[:TEXTS_PER_END]), tuple(order[-TEXTS_PER_END:])
    return ExampleTexts(measures, strongest, weakest, len(order), n_total, run)
