"""Judge claims for a model: run every analysis they need once, in as few passes as possible, and judge the results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.analyses.run import (
    ForwardPass,
    NotifyFunction,
    ProgressEstimate,
    ProgressFactory,
    Request,
    RunInputs,
    count_words,
    estimate_run_seconds,
    run_all,
)
from bertology.claims.claim import Claim, ClaimRun
from bertology.claims.judge import judge
from bertology.claims.verdict import Verdict
from bertology.corpus.read import load_corpus
from bertology.errors import Refusal
from bertology.recording.recording import ComputedArrays
from bertology.results.result import Result

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
class ClaimResult:
    """A claim, its verdict, the results it is based on, and the names of the models it is about."""

    claim: Claim
    verdict: Verdict
    results: tuple[Result, ...] = field(repr=False)
    models: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClaimsReport:
    """The verdicts in the order of the claims, the forward passes made, and the seconds each part took."""

    results: tuple[ClaimResult, ...]
    passes: tuple[ForwardPass, ...]
    elapsed: Mapping[str, float]


def judge_claims(
    claims: Sequence[Claim],
    inputs: RunInputs,
    *,
    progress: ProgressFactory | None = None,
    notify: NotifyFunction | None = None,
) -> ClaimsReport:
    """Judge the claims. Results are cached in the store, so that an interrupted run resumes."""
    runs = [run for claim in claims for run in claim.all_runs.values()]
    outcomes: dict[str, Result | Refusal] = {}
    batches: list[_AnalysisBatch] = []
    for target, corpus in dict.fromkeys((run.target, run.corpus) for run in runs):
        batch_runs = {_run_key(run): run for run in runs if (run.target, run.corpus) == (target, corpus)}
        if target == "against" and inputs.against is None and inputs.against_recording is None:
            outcomes |= dict.fromkeys(batch_runs, NO_FINE_TUNED_MODEL)
            continue
        known, unknown = _declared_analyses(batch_runs)
        outcomes |= unknown
        batch_inputs = _with_corpus(_select_target(inputs, target), corpus)
        if corpus is not None and batch_inputs.encoder is None and batch_inputs.recording is None:
            recordable = [key for key, (analysis, _) in known.items() if "encoder" not in analysis.required_inputs]
            outcomes |= dict.fromkeys(recordable, _no_stimuli_refusal(corpus))
            known = {key: request for key, request in known.items() if key not in recordable}
        batches.append(_AnalysisBatch.sorted_by_cost(known, batch_inputs))
    total = sum(batch.estimated_seconds for batch in batches)
    estimate = ProgressEstimate(progress("everything") if progress else None, total)
    passes: list[ForwardPass] = []
    for batch in batches:
        with estimate.stage(batch.estimated_seconds):
            report = run_all(
                list(batch.requests.values()),
                batch.inputs,
                progress=progress,
                notify=notify,
                cache_results=True,
                progress_estimate=estimate,
            )
        outcomes |= dict(zip(batch.requests, report.outcomes, strict=True))
        passes += report.passes
    return ClaimsReport(
        tuple(_claim_result(claim, outcomes, inputs) for claim in claims), tuple(passes), dict(estimate.elapsed)
    )


@dataclass(frozen=True)
class _AnalysisBatch:
    """The requests of one model and corpus, by run key."""

    requests: Mapping[str, Request]
    inputs: RunInputs

    @classmethod
    def sorted_by_cost(cls, analyses: Mapping[str, Request], inputs: RunInputs) -> _AnalysisBatch:
        """Cheap analyses first, so that more is finished if the run is interrupted."""
        n_words = count_words(inputs.corpus)
        order = sorted(analyses, key=lambda key: analyses[key][0].cost.estimate(n_words))
        return cls({key: analyses[key] for key in order}, inputs)

    @property
    def estimated_seconds(self) -> float:
        """Estimated seconds, for comparison with other batches."""
        return estimate_run_seconds(list(self.requests.values()), self.inputs)


def _declared_analyses(runs: Mapping[str, ClaimRun]) -> tuple[dict[str, Request], dict[str, Refusal]]:
    """The requests of runs whose analysis exists, and refusals of the others."""
    known: dict[str, tuple[Analysis, Mapping[str, object]]] = {}
    unknown: dict[str, Refusal] = {}
    for key, run in runs.items():
        try:
            known[key] = registry.get(run.analysis), dict(run.options)
        except Refusal as refusal:
            unknown[key] = refusal
    return known, unknown


def _claim_result(claim: Claim, outcomes: Mapping[str, Result | Refusal], inputs: RunInputs) -> ClaimResult:
    by_name = {name: outcomes[_run_key(run)] for name, run in claim.all_runs.items()}
    results = tuple(outcome for outcome in by_name.values() if isinstance(outcome, Result))
    verdict = judge(claim, by_name, untrained_remedy=_untrained_remedy(inputs))
    return ClaimResult(claim, verdict, results, _model_names(claim, inputs))


def _untrained_remedy(inputs: RunInputs) -> str:
    """How to measure the untrained model beside a recording that was given without it."""
    recording = inputs.recording
    if recording is None or inputs.untrained_recording is not None:
        return ""
    if recording.config.get("source") == "arrays":
        return "arrays of another program have no untrained model; use --model and --corpus instead of --recording"
    sites = ",".join(sorted(name for name, arrays in recording.sites.items() if not isinstance(arrays, ComputedArrays)))
    record = f"bertology record random:{recording.encoder.name} {recording.corpus.name} --sites {sites} -o DIR"
    return f"record it with `{record}` and name it with --untrained-recording DIR"


def _model_names(claim: Claim, inputs: RunInputs) -> tuple[str, ...]:
    """The models a claim is about: the model, the one given with --against, or both."""
    names = inputs.model_names
    roles: set[str] = set()
    for run in claim.all_runs.values():
        is_known = run.analysis in registry.names()
        roles |= {"recording" if run.target == "model" else "against"}
        roles |= {"against"} & set(registry.get(run.analysis).inputs if is_known else ())
    return tuple(names[role] for role in ("recording", "against") if role in roles and role in names)


def _run_key(run: ClaimRun) -> str:
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
