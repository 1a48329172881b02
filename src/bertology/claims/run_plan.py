"""Which analyses must run to judge claims: batches of one model and corpus, and what is refused before any runs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.analyses.engine_runs import compute_in_workers
from bertology.analyses.run import (
    ForwardPass,
    MessageCallback,
    ProgressFactory,
    Request,
    RunInputs,
    check_run_work,
    count_words,
    estimate_run_seconds,
    estimate_runs,
    runnable_requests,
)
from bertology.claims.claim import Claim, ClaimRun
from bertology.claims.claim_results import UnknownTokens
from bertology.claims.readability import count_unknown_tokens_by_model, other_language_refusals, refuse_unreadable
from bertology.corpus.read import load_corpus
from bertology.errors import Refusal
from bertology.recording.overflow import Overflow
from bertology.work_estimate import WorkEstimate

NO_FINE_TUNED_MODEL = Refusal(
    "This claim is about a fine-tuned model, and none was given",
    "a fine-tuned model",
    "Name one with --against, for example --against mini-pairs, or its recording with --against-recording",
)


def _no_stimuli_refusal(corpus: str) -> Refusal:
    return Refusal(
        f"This claim is tested on its own stimuli ({corpus}), and the recording is of another corpus",
        f"a model, or a recording of {corpus}",
        f"Run `bertology claims MODEL`, or `bertology record MODEL {corpus} --sites attention,hidden -o DIR` and "
        "`bertology claims --recording DIR`",
    )


@dataclass(frozen=True)
class RunPlan:
    """What judging claims will run: batches of analyses, and what is known before about those that do not apply."""

    batches: list[AnalysisBatch]
    refused: Mapping[str, Refusal]
    other_languages: Mapping[str, Refusal]
    unknown_tokens: tuple[UnknownTokens, ...]

    def check_work(self, title: str, max_hours: float, notify: MessageCallback | None) -> None:
        """Tell the work of all batches, or refuse it."""
        check_run_work(title, self.runnable(), max_hours, notify)

    def runnable(self) -> list[tuple[list[Request], RunInputs]]:
        """The analyses of each batch that fit its model and corpus."""
        return [
            (runnable_requests(list(batch.requests.values()), batch.inputs), batch.inputs) for batch in self.batches
        ]


def estimate_claims(
    claims: Sequence[Claim], inputs: RunInputs, *, max_unknown: float, overflow: Overflow | None
) -> WorkEstimate:
    """The work of judging claims for a model, without what is stored."""
    return estimate_runs(plan_runs(claims, inputs, max_unknown, overflow).runnable())


def plan_runs(claims: Sequence[Claim], inputs: RunInputs, max_unknown: float, overflow: Overflow | None) -> RunPlan:
    """The analyses that the claims need, in batches of one model and corpus; an unreadable corpus is refused."""
    unknown_tokens = count_unknown_tokens_by_model(inputs)
    for count in unknown_tokens:
        count.check(max_unknown)
    other_languages = other_language_refusals(claims, inputs.corpus)
    runs = [run for claim in claims if claim.id not in other_languages for run in claim.all_runs.values()]
    outcomes: dict[str, Refusal] = {}
    batches: list[AnalysisBatch] = []
    for target, corpus in dict.fromkeys((run.target, run.corpus) for run in runs):
        batch_runs = {run_key(run): run for run in runs if (run.target, run.corpus) == (target, corpus)}
        if target == "against" and inputs.against is None and inputs.against_recording is None:
            outcomes |= dict.fromkeys(batch_runs, NO_FINE_TUNED_MODEL)
            continue
        known, unknown = declared_analyses(batch_runs, overflow)
        outcomes |= unknown
        batch_inputs = _with_corpus(_select_target(inputs, target), corpus)
        if corpus is not None and batch_inputs.encoder is None and batch_inputs.recording is None:
            recordable = [key for key, (analysis, _) in known.items() if "encoder" not in analysis.required_inputs]
            outcomes |= dict.fromkeys(recordable, _no_stimuli_refusal(corpus))
            known = {key: request for key, request in known.items() if key not in recordable}
        if corpus is not None and (refusal := refuse_unreadable(batch_inputs, max_unknown)) is not None:
            outcomes |= dict.fromkeys(known, refusal)
            continue
        batches.append(AnalysisBatch.sorted_by_cost(known, batch_inputs))
    return RunPlan(batches, outcomes, other_languages, unknown_tokens)


def compute_batches(
    batches: Sequence[AnalysisBatch], *, progress: ProgressFactory | None, notify: MessageCallback | None
) -> list[ForwardPass]:
    """Have the engine of the inputs, if there is one, compute the results of all batches; returns the passes made."""
    runnable = [
        (runnable_requests(list(batch.requests.values()), batch.inputs), batch.inputs)
        for batch in batches
        if batch.inputs.encoder is not None and batch.inputs.recording is None
    ]
    engine = runnable[0][1].engine if runnable else None
    if engine is None:
        return []
    return compute_in_workers(runnable, engine, progress=progress, notify=notify)


@dataclass(frozen=True)
class AnalysisBatch:
    """The requests of one model and corpus, by run key."""

    requests: Mapping[str, Request]
    inputs: RunInputs

    @classmethod
    def sorted_by_cost(cls, analyses: Mapping[str, Request], inputs: RunInputs) -> AnalysisBatch:
        """Cheap analyses first, so that more is finished if the run is interrupted."""
        n_words = count_words(inputs.corpus)
        order = sorted(analyses, key=lambda key: analyses[key][0].cost.estimate(n_words))
        return cls({key: analyses[key] for key in order}, inputs)

    def only(self, keys: Sequence[str]) -> AnalysisBatch:
        """Some of the requests."""
        return replace(self, requests={key: self.requests[key] for key in keys})

    @property
    def estimated_seconds(self) -> float:
        """Estimated seconds, for comparison with other batches."""
        return estimate_run_seconds(list(self.requests.values()), self.inputs)


def declared_analyses(
    runs: Mapping[str, ClaimRun], overflow: Overflow | None
) -> tuple[dict[str, Request], dict[str, Refusal]]:
    """The requests of runs whose analysis exists, and refusals of the others."""
    known: dict[str, tuple[Analysis, Mapping[str, object]]] = {}
    unknown: dict[str, Refusal] = {}
    for key, run in runs.items():
        try:
            analysis = registry.get(run.analysis)
            given = {} if overflow is None or "overflow" not in analysis.options else {"overflow": overflow}
            known[key] = analysis, {**given, **run.options}
        except Refusal as refusal:
            unknown[key] = refusal
    return known, unknown


def run_key(run: ClaimRun) -> str:
    """The analysis, options, corpus and model of a run as text: equal for runs that are the same."""
    return json.dumps([run.analysis, dict(run.options), run.corpus, run.target], sort_keys=True)


def run_inputs_for(inputs: RunInputs, run: ClaimRun) -> RunInputs:
    """The model and corpus of one run of a claim."""
    return _with_corpus(_select_target(inputs, run.target), run.corpus)


def _select_target(inputs: RunInputs, target: str) -> RunInputs:
    """The inputs with the model a claim is about: the model itself, or the one given with --against."""
    if target == "model":
        return inputs
    return replace(
        inputs,
        encoder=inputs.against,
        against=None,
        recording=inputs.against_recording,
        against_recording=None,
        untrained_recording=None,
    )


def _with_corpus(inputs: RunInputs, corpus: str | None) -> RunInputs:
    """The inputs with the stimuli of a claim as corpus; recordings stay only if they are of these stimuli."""
    if corpus is None:
        return inputs
    stimuli = load_corpus(corpus)
    if inputs.recording is not None and inputs.recording.corpus.fingerprint == stimuli.fingerprint:
        return inputs
    return replace(inputs, corpus=stimuli, recording=None, against_recording=None, untrained_recording=None)
