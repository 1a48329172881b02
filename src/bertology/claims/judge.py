"""The judge: does a claim hold for these results? Intervals decide, never a point estimate alone.

Two numbers differ if their 95 % intervals do not overlap. That is stricter than necessary for two numbers of the same
examples: an analysis that measures their paired difference reports it as a measure, and the claim tests that measure.
The interval of a mean over layers or heads is the mean of their limits, as if all errors were perfectly correlated:
wider than necessary. Where a test takes the best of many heads or layers, intervals are widened by the Bonferroni
correction, and reported as widened.

| verdict | condition |
|---|---|
| holds | the intervals satisfy the test |
| fails | the intervals satisfy the opposite |
| inconclusive | the intervals overlap |
| not applicable | model or corpus lack something, a precondition does not hold, or no task was learnt (`reference`) |

A claim that holds is then compared with its controls: the untrained model, or another simple baseline. The same test is
applied to the control's numbers on the same examples.

| specificity | condition |
|---|---|
| specific | the effect is larger in the model than in the control, which does not pass the test |
| stronger | it is larger, though the control passes as well |
| earned too | the control passes, and the effect is not larger |
| undecided | the control does not pass, but the difference may be zero |
| not measured | the results have no numbers of the control |

Model and control are measured on the same examples. Where both were resampled together, the difference is paired
(`paired_differences` of the result). Else, as for the best heads of the two, its interval combines both as if they were
independent: wider than necessary, as their errors go the same way.

Nothing is decided on fewer than 10 examples, or by a probe that would still learn from more training data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from bertology.claims.answer import write_comparisons
from bertology.claims.claim import (
    UNTRAINED,
    Between,
    Claim,
    Control,
)
from bertology.claims.number_judge import NumberJudge
from bertology.claims.result_numbers import MissingNumberError
from bertology.claims.verdict import (
    Caveat,
    Comparison,
    ControlVerdict,
    FewExamples,
    Outcome,
    Specificity,
    Verdict,
)
from bertology.errors import Refusal
from bertology.results.result import Result
from bertology.results.shapes import UnmeasuredShape

MIN_EXAMPLES = 10
"""No verdict is drawn from fewer examples."""


def judge(claim: Claim, outcomes: Mapping[str, Result | Refusal], *, untrained_remedy: str = "") -> Verdict:
    """The verdict on a claim from the outcomes of its runs by name; a refused run makes it not applicable.

    `untrained_remedy` says how to measure the untrained model, if the results may lack it.
    """
    for outcome in outcomes.values():
        if isinstance(outcome, Refusal):
            return refused_claim(claim, outcome)
    results = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, Result)}
    lacking = ", ".join(claim.requirements)
    needs = f" It needs {lacking}." if lacking else ""
    for result in results.values():
        if not isinstance(result.data, UnmeasuredShape) and (nothing_learnt := result.data.describe_reference()):
            return _not_applicable(claim, f"{nothing_learnt}{needs}", lacking)
    try:
        judging = NumberJudge(claim, results)
        if claim.precondition is not None:
            precondition = judging.verdict(claim.precondition)
            if precondition.outcome != "holds":
                return _not_applicable(
                    claim, f"What this presupposes is not so. {write_comparisons(precondition)}{needs}"
                )
        verdict = judging.verdict(claim.test)
        if (training := judging.smallest_training(verdict)) is not None:
            verdict = replace(verdict, n_training=training.n_training, training_unit=training.unit)
        verdict = replace(verdict, untrained=_untrained_comparisons(claim, results))
        caveats = (*_too_few_examples(verdict), *judging.still_learning(claim.test, verdict))
        if caveats and verdict.outcome in {"holds", "fails"}:
            return replace(verdict, outcome="inconclusive", caveats=caveats)
    except MissingNumberError as missing:
        return _not_applicable(claim, f"{missing}.{needs}", lacking)
    if verdict.outcome != "holds":
        return verdict
    controls = [_judge_control(claim, results, verdict, control) for control in claim.controls]
    return replace(
        verdict,
        controls=tuple(
            replace(control, remedy=untrained_remedy)
            if control.specificity == "not measured" and control.name == UNTRAINED.name
            else control
            for control in controls
        ),
    )


def _untrained_comparisons(claim: Claim, results: Mapping[str, Result]) -> tuple[Comparison, ...]:
    """The claim's test on the numbers of the untrained model, if it is a control and was measured."""
    if UNTRAINED not in claim.controls:
        return ()
    try:
        return NumberJudge(claim, results, UNTRAINED.name).verdict(claim.test).comparisons
    except MissingNumberError:
        return ()


def _judge_control(claim: Claim, results: Mapping[str, Result], verdict: Verdict, control: Control) -> ControlVerdict:
    """How a finding that holds relates to one control."""
    try:
        if control.test is not None:
            beyond = NumberJudge(claim, results).verdict(control.test)
            relations: dict[Outcome, Specificity] = {"holds": "specific", "fails": "earned too"}
            return ControlVerdict(control.name, relations.get(beyond.outcome, "undecided"), beyond.comparisons)
        judging = NumberJudge(claim, results, control.name)
        same_test = judging.verdict(claim.test)
    except MissingNumberError:
        return ControlVerdict(control.name, "not measured")
    passes = same_test.outcome == "holds"
    if isinstance(claim.test, Between):  # a number within a range is not larger or smaller than another one
        relation: Specificity = "earned too" if passes else "specific" if same_test.outcome == "fails" else "undecided"
        return ControlVerdict(control.name, relation, same_test.comparisons)
    differences = judging.differences(claim.test, verdict, same_test)
    n_larger = sum(difference.clearly_above(0.0) for difference in differences)
    if differences and n_larger >= (verdict.n_required or len(differences)):
        relation = "stronger" if passes else "specific"
    else:
        relation = "earned too" if passes else "undecided"
    smallest = min(differences, key=lambda difference: difference.low, default=None)
    return ControlVerdict(control.name, relation, same_test.comparisons, smallest)


def refused_claim(claim: Claim, refusal: Refusal) -> Verdict:
    """The verdict on a claim that cannot be tested because model or corpus were refused."""
    return _not_applicable(claim, str(refusal), refusal.expected)


def _not_applicable(claim: Claim, reason: str, lacking: str = "") -> Verdict:
    """The verdict on a claim that cannot be tested, with the reason and how to meet its requirements."""
    obstacle = f"{reason} {claim.requirement_help}" if claim.requirement_help else reason
    return Verdict("not applicable", obstacle=obstacle, lacking=lacking)


def _too_few_examples(verdict: Verdict) -> list[Caveat]:
    """A caveat if a compared number is of fewer examples than a verdict needs."""
    counts = [c.value.estimate.n for c in verdict.comparisons if c.value.estimate.interval != "exact"]
    too_few = [n for n in counts if n < MIN_EXAMPLES]
    return [FewExamples(min(too_few), MIN_EXAMPLES)] if too_few else []
