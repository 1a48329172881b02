"""Judge claims for a model: run every analysis they need once, in as few passes as possible, and judge the results."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack, overload

from bertology.analyses import registry
from bertology.analyses.engine_runs import can_spread_models, spread_models
from bertology.analyses.run import (
    MessageCallback,
    ProgressEstimate,
    ProgressFactory,
    RunInputs,
    build_run_inputs,
    run_all,
    with_partner,
)
from bertology.claims.catalogue import all_claims, read_claims
from bertology.claims.claim import Claim
from bertology.claims.claim_results import ClaimResult, ClaimResults, ClaimResultsByModel
from bertology.claims.judge import judge, refused_claim
from bertology.claims.readability import refuse_unreadable
from bertology.claims.run_plan import AnalysisBatch, compute_batches, plan_runs, run_key
from bertology.corpus.corpus import Corpus
from bertology.corpus.language import detect_language
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import as_encoder
from bertology.engines.engine import Engine, open_engine, refuse_without_store
from bertology.errors import Refusal, count_noun, unknown_name
from bertology.number_ranges import COUNT, COUNT_OR_ZERO, HOURS, PROPORTION
from bertology.recording.overflow import Overflow
from bertology.recording.plan import RecordingConfig
from bertology.recording.recording import ComputedArrays, Recording
from bertology.results.result import Result
from bertology.results.results import unique_names
from bertology.store_paths import StorePath
from bertology.work_estimate import MAX_HOURS

DEFAULT_CORPUS = "english"
MAX_UNKNOWN = 0.1
"""A corpus with a larger share of tokens that the tokeniser does not know is refused."""


class ClaimsArguments(TypedDict, total=False):
    """The keyword arguments of `claims`."""

    against: Any
    recording: Recording | None
    untrained: Recording | None
    papers: Sequence[str] | str
    claims: str | Path | None
    without: Sequence[str] | str
    full: bool
    train_size: int | None
    limit: int | None
    fill: bool
    max_unknown: float
    overflow: Overflow | None
    store: str | StorePath | None
    max_hours: float | None
    engine: Engine | str | None
    progress: ProgressFactory | None
    notify: MessageCallback | None


@overload
def claims(  # pyright: ignore[reportOverlappingOverload]  # a list is an object
    encoder: list[Any] | Iterator[Any], corpus: Any = None, **arguments: Unpack[ClaimsArguments]
) -> ClaimResultsByModel: ...
@overload
def claims(encoder: object = None, corpus: Any = None, **arguments: Unpack[ClaimsArguments]) -> ClaimResults: ...
def claims(
    encoder: Any = None,
    corpus: Any = None,
    *,
    against: Any = None,
    recording: Recording | None = None,
    untrained: Recording | None = None,
    papers: Sequence[str] | str = (),
    claims: str | Path | None = None,
    without: Sequence[str] | str = (),
    full: bool = False,
    train_size: Annotated[int | None, COUNT_OR_ZERO] = None,
    limit: Annotated[int | None, COUNT] = None,
    fill: bool = True,
    max_unknown: Annotated[float, PROPORTION] = MAX_UNKNOWN,
    overflow: Overflow | None = None,
    store: str | StorePath | None = None,
    max_hours: Annotated[float | None, HOURS] = MAX_HOURS,
    engine: Engine | str | None = None,
    progress: ProgressFactory | None = None,
    notify: MessageCallback | None = None,
) -> ClaimResults | ClaimResultsByModel:
    """Test published findings on a model: each holds, fails, is inconclusive or does not apply.

    `encoder` and `corpus` are what `bertology.run` takes; the corpus is the built-in English one if none is given, and
    a list of models gives the verdicts of each. `against` is a model fine-tuned from it, for the claims about
    fine-tuning. Only the claims of `papers` are tested, if there are any, and those of the file `claims`; `full` adds
    the claims that take minutes. Claims tested by an analysis that is named in `without` are left out. `train_size` is
    the maximum number of sentences probes are trained on.

    Claims that need what the corpus lacks (trees, parts of speech, entities) are tested on the built-in corpus of its
    language, and say so, unless `fill` is false. A corpus of which the tokeniser does not know more than the share
    `max_unknown` is refused. `overflow` says what is done with inputs longer than the model allows; if it is not given,
    they are skipped, and interventions treat them as in training. With a `store` (a directory) recordings and results
    are kept and reused. With an `engine` (`local:4`, `ray`, `ray:ADDRESS`) its workers record and analyse. Work that is
    estimated to take longer than `max_hours` for a model is refused before it starts (None: no bound).
    """
    left_out = [without] if isinstance(without, str) else list(without)
    selected = select_claims(
        [papers] if isinstance(papers, str) else papers,
        file=claims,
        without=left_out,
        full=full,
        train_size=train_size,
    )
    is_list = isinstance(encoder, list | Iterator)
    inputs = build_run_inputs(
        None if is_list else encoder,
        None if recording is not None else DEFAULT_CORPUS if corpus is None else corpus,
        recording=recording,
        untrained=untrained,
        config=RecordingConfig(overflow=overflow or "skip"),
        store=store,
        max_hours=max_hours,
        models_follow=is_list,
        title="claims",
    )
    refuse_without_store(None if engine == "local" else engine, store)
    if limit is not None and recording is None and inputs.corpus is not None:
        inputs = replace(inputs, corpus=inputs.corpus[:limit])
    inputs = with_partner(inputs, against)
    options: dict[str, Any] = {
        "papers": list([papers] if isinstance(papers, str) else papers),
        "claims": None if claims is None else str(claims),
        "without": left_out,
        "full": full,
        "train_size": train_size,
        "limit": limit,
        "fill": fill,
        "max_unknown": max_unknown,
        "overflow": overflow,
    }

    def test(model: Encoder | None, opened: Engine | None) -> ClaimResults:
        model_inputs = replace(inputs, encoder=inputs.encoder if model is None else model, engine=opened)
        filling = _filling_corpus(model_inputs.corpus, limit) if fill and model_inputs.encoder is not None else None
        judged = judge_claims(
            selected,
            model_inputs,
            progress=progress,
            notify=notify,
            filling=filling,
            max_unknown=max_unknown,
            overflow=overflow,
        )
        # An engine that was opened here is closed when the results are used.
        kept = engine if isinstance(engine, Engine) else None
        return replace(judged, options=options, inputs=replace(judged.inputs, engine=kept))

    with open_engine(engine) as opened:
        if not is_list:
            return test(None, opened)
        if opened is not None and inputs.store is not None and can_spread_models(encoder, opened):
            shared = _Judging(selected, inputs, limit, fill, max_unknown, overflow)
            spread_models(judge_model_task, shared, list(encoder), opened, inputs.store, progress=progress)
        by_model = [test(as_encoder(model), opened) for model in encoder]
    names = unique_names([results.inputs.model_names["recording"] for results in by_model])
    return ClaimResultsByModel(dict(zip(names, by_model, strict=True)))


@dataclass(frozen=True)
class _Judging:
    """What workers that judge a model each need to know."""

    claims: Sequence[Claim]
    inputs: RunInputs
    limit: int | None
    fill: bool
    max_unknown: float
    overflow: Overflow | None


def judge_model_task(shared: _Judging, model: Any) -> None:
    """Judge the claims for one model, in a worker; results are stored, and a refusal is found again by the run."""
    inputs = replace(shared.inputs, encoder=as_encoder(model))
    with suppress(Refusal):
        judge_claims(
            shared.claims,
            inputs,
            filling=_filling_corpus(inputs.corpus, shared.limit) if shared.fill else None,
            max_unknown=shared.max_unknown,
            overflow=shared.overflow,
        )


def select_claims(
    papers: Sequence[str],
    *,
    file: str | Path | None = None,
    without: Sequence[str] = (),
    full: bool = False,
    train_size: int | None = None,
) -> tuple[Claim, ...]:
    """The claims of these papers and of the file; without either all claims, the slow ones only with `full`.

    Claims that one of the analyses `without` tests are left out.
    """
    known = sorted({claim.paper for claim in all_claims()})
    for paper in papers:
        if paper not in known:
            raise unknown_name("paper with claims", paper, known)
    selected = [claim for claim in all_claims() if claim.paper in papers]
    if file is not None:
        selected += read_claims(Path(file))
    elif not papers:
        selected = [claim for claim in all_claims() if full or not claim.slow]
    analyses = sorted({run.analysis for claim in (*all_claims(), *selected) for run in claim.all_runs.values()})
    for name in without:
        if name not in analyses:
            raise unknown_name("analysis with claims", name, analyses)
    selected = [claim for claim in selected if not any(run.analysis in without for run in claim.all_runs.values())]
    return tuple(selected if train_size is None else (claim.with_train_size(train_size) for claim in selected))


def _filling_corpus(corpus: Corpus | None, limit: int | None) -> Corpus | None:
    """The built-in treebank in the language of the corpus; None if the corpus is that treebank."""
    if corpus is None:
        return None
    treebank = load_corpus("chinese" if detect_language(corpus) == "Chinese" else DEFAULT_CORPUS)
    return None if treebank.name == corpus.name else treebank[:limit]


def judge_claims(
    claims: Sequence[Claim],
    inputs: RunInputs,
    *,
    progress: ProgressFactory | None = None,
    notify: MessageCallback | None = None,
    filling: Corpus | None = None,
    max_unknown: float = 1.0,
    overflow: Overflow | None = None,
) -> ClaimResults:
    """Judge the claims. Results are cached in the store, so that an interrupted run resumes.

    Claims whose analyses refuse the corpus are tested on `filling`, if it is given. A corpus with more unknown tokens
    than the share `max_unknown` is refused; claims with stimuli like this do not apply. `overflow` is the option of
    that name of analyses that evaluate whole examples; recordings have it in the inputs.
    """
    plan = plan_runs(claims, inputs, max_unknown, overflow)
    unknown_tokens, other_languages, batches = plan.unknown_tokens, plan.other_languages, plan.batches
    outcomes = dict(plan.refused)
    if inputs.max_hours is not None:
        names = " and ".join(inputs.model_names.values())
        plan.check_work(f"Testing {count_noun(len(claims), 'claims')} on {names}", inputs.max_hours, notify)
    total = sum(batch.estimated_seconds for batch in batches)
    estimate = ProgressEstimate(progress("everything") if progress else None, total)
    passes = compute_batches(batches, progress=progress, notify=notify)
    filled: set[str] = set()

    def run_batch(
        batch: AnalysisBatch, expected_seconds: float, *, use_engine: bool = False
    ) -> dict[str, Result | Refusal]:
        with estimate.stage(expected_seconds):
            report = run_all(
                list(batch.requests.values()),
                batch.inputs,
                progress=progress,
                notify=notify,
                cache_results=True,
                progress_estimate=estimate,
                is_checked=True,
                use_engine=use_engine,
            )
        passes.extend(report.passes)
        return dict(zip(batch.requests, report.outcomes, strict=True))

    for batch in batches:
        of_batch = run_batch(batch, batch.estimated_seconds)
        outcomes |= of_batch
        refused = batch.only([key for key, outcome in of_batch.items() if isinstance(outcome, Refusal)])
        if filling is None or not refused.requests or batch.inputs.corpus is not inputs.corpus:
            continue
        refused = replace(refused, inputs=replace(refused.inputs, corpus=filling))
        if refuse_unreadable(refused.inputs, max_unknown) is None:
            repeated = run_batch(refused, 0.0, use_engine=True)
            again = {key: outcome for key, outcome in repeated.items() if isinstance(outcome, Result)}
            outcomes |= again
            filled |= again.keys()
    return ClaimResults(
        tuple(
            ClaimResult(claim, refused_claim(claim, refusal), (), _model_names(claim, inputs))
            if (refusal := other_languages.get(claim.id)) is not None
            else _claim_result(claim, outcomes, inputs, filling, filled)
            for claim in claims
        ),
        inputs,
        tuple(passes),
        dict(estimate.elapsed),
        unknown_tokens,
        filling,
    )


def _claim_result(
    claim: Claim,
    outcomes: Mapping[str, Result | Refusal],
    inputs: RunInputs,
    filling: Corpus | None,
    filled: Collection[str],
) -> ClaimResult:
    keys = {name: run_key(run) for name, run in claim.all_runs.items()}
    by_name = {name: outcomes[key] for name, key in keys.items()}
    results = tuple(outcome for outcome in by_name.values() if isinstance(outcome, Result))
    verdict = judge(claim, by_name, untrained_remedy=_untrained_remedy(inputs))
    is_filled = filling is not None and any(key in filled for key in keys.values())
    return ClaimResult(
        claim, verdict, results, _model_names(claim, inputs), filling.name if filling is not None and is_filled else ""
    )


def _untrained_remedy(inputs: RunInputs) -> str:
    """How to measure the untrained model beside a recording that was given without it."""
    recording = inputs.recording
    if recording is None or inputs.untrained_recording is not None:
        return ""
    if recording.config.get("source") == "arrays":
        return "arrays of another program have none; give the model itself"
    sites = ",".join(sorted(name for name, arrays in recording.sites.items() if not isinstance(arrays, ComputedArrays)))
    record = f"bertology record random:{recording.encoder.name} {recording.corpus.name} --sites {sites} -o DIR"
    return f"record it with `{record}` and name it with --untrained-recording DIR"


def _model_names(claim: Claim, inputs: RunInputs) -> tuple[str, ...]:
    """The models a claim is about: the model, the one given with --against, or both."""
    names = inputs.model_names
    roles: set[str] = set()
    for run in claim.all_runs.values():
        analysis = registry.find(run.analysis)
        roles |= {"recording" if run.target == "model" else "against"}
        roles |= {"against"} & set(analysis.inputs if analysis is not None else ())
    return tuple(names[role] for role in ("recording", "against") if role in roles and role in names)
