"""Judge claims for a model: run every analysis they need once, in as few passes as possible, and judge the results."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack, overload

from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.analyses.engine_runs import compute_in_workers
from bertology.analyses.run import (
    ForwardPass,
    NotifyFunction,
    ProgressEstimate,
    ProgressFactory,
    Request,
    RunInputs,
    build_run_inputs,
    check_run_work,
    count_words,
    estimate_run_seconds,
    estimate_runs,
    run_all,
    runnable_requests,
    with_partner,
)
from bertology.claims.catalogue import all_claims, read_claims
from bertology.claims.claim import Claim, ClaimRun
from bertology.claims.claim_results import ClaimResult, ClaimResults, ClaimResultsByModel, UnknownTokens
from bertology.claims.judge import judge, refused_claim
from bertology.corpus.corpus import Corpus
from bertology.corpus.language import Language, detect_language
from bertology.corpus.read import load_corpus
from bertology.encoder.encoder import Encoder
from bertology.encoder.load import as_encoder
from bertology.encoder.tokens import SpecialToken
from bertology.engines.engine import Engine, open_engine, refuse_without_store
from bertology.errors import Refusal, count_noun, unknown_name
from bertology.number_ranges import COUNT, COUNT_OR_ZERO, HOURS, PROPORTION
from bertology.recording.overflow import Overflow
from bertology.recording.plan import RecordingConfig
from bertology.recording.recording import ComputedArrays, Recording
from bertology.results.result import Result
from bertology.results.results import unique_names
from bertology.store_paths import StorePath
from bertology.work_estimate import MAX_HOURS, WorkEstimate

DEFAULT_CORPUS = "english"
MAX_UNKNOWN = 0.1
"""A corpus with a larger share of tokens that the tokeniser does not know is refused."""

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
    notify: NotifyFunction | None


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
    notify: NotifyFunction | None = None,
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
        by_model = [test(as_encoder(model), opened) for model in encoder]
    names = unique_names([results.inputs.model_names["recording"] for results in by_model])
    return ClaimResultsByModel(dict(zip(names, by_model, strict=True)))


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


def _other_languages(claims: Sequence[Claim], corpus: Corpus | None) -> dict[str, Refusal]:
    """Why claims about other languages, or with stimuli in one, do not apply to the corpus, by the id of the claim."""
    language = detect_language(corpus) if corpus is not None else None
    if language is None:
        return {}
    refusals = {claim.id: _language_refusal(claim, language) for claim in claims}
    return {id: refusal for id, refusal in refusals.items() if refusal is not None}


def _language_refusal(claim: Claim, language: Language) -> Refusal | None:
    corpus_language = f"the corpus is in {'another language' if language == 'other' else language}"
    remedy = "Leave it out, or choose another corpus with --corpus"
    if claim.languages and language not in claim.languages:
        languages = " and ".join(claim.languages)
        expected = f"a corpus in {' or '.join(claim.languages)}: {claim.language_reason}"
        return Refusal(f"This finding is about {languages}, and {corpus_language}", expected, remedy)
    for stimuli in dict.fromkeys(run.corpus for run in claim.all_runs.values() if run.corpus is not None):
        of_stimuli = _stimuli_language(stimuli)
        if of_stimuli not in (None, language):
            problem = f"This finding is tested on {of_stimuli} stimuli ({stimuli}), and {corpus_language}"
            return Refusal(problem, f"a corpus in {of_stimuli}", remedy)
    return None


@cache
def _stimuli_language(corpus: str) -> Language | None:
    """The language of stimuli; None if it is not known."""
    if corpus.startswith("generated:"):
        return "English"  # by simple grammars, with too few function words to tell
    language = detect_language(load_corpus(corpus))
    return None if language == "other" else language


def count_unknown_tokens(model: Encoder | Recording, corpus: Corpus) -> UnknownTokens:
    """Count the tokens of a corpus, and those the model's tokeniser does not know, without special tokens."""
    if isinstance(model, Recording):
        inputs, name = [recorded.tokens for recorded in model.inputs], model.encoder.name
    else:
        inputs, name = model.tokenise([text for example in corpus for text in example.text_inputs]), model.name
    n_tokens = sum(int((tokens.special_kinds == SpecialToken.NONE).sum()) for tokens in inputs)
    return UnknownTokens(name, corpus.name, sum(tokens.n_unknown for tokens in inputs), n_tokens)


def judge_claims(
    claims: Sequence[Claim],
    inputs: RunInputs,
    *,
    progress: ProgressFactory | None = None,
    notify: NotifyFunction | None = None,
    filling: Corpus | None = None,
    max_unknown: float = 1.0,
    overflow: Overflow | None = None,
) -> ClaimResults:
    """Judge the claims. Results are cached in the store, so that an interrupted run resumes.

    Claims whose analyses refuse the corpus are tested on `filling`, if it is given. A corpus with more unknown tokens
    than the share `max_unknown` is refused; claims with stimuli like this do not apply. `overflow` is the option of
    that name of analyses that evaluate whole examples; recordings have it in the inputs.
    """
    plan = _plan_runs(claims, inputs, max_unknown, overflow)
    unknown_tokens, other_languages, batches = plan.unknown_tokens, plan.other_languages, plan.batches
    outcomes = dict(plan.refused)
    if inputs.max_hours is not None:
        names = " and ".join(inputs.model_names.values())
        plan.check_work(f"Testing {count_noun(len(claims), 'claims')} on {names}", inputs.max_hours, notify)
    total = sum(batch.estimated_seconds for batch in batches)
    estimate = ProgressEstimate(progress("everything") if progress else None, total)
    passes = _compute_in_workers(batches, progress=progress, notify=notify)
    filled: set[str] = set()

    def run_batch(
        batch: _AnalysisBatch, expected_seconds: float, *, use_engine: bool = False
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
        if _unreadable(refused.inputs, max_unknown) is None:
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


@dataclass(frozen=True)
class RunPlan:
    """What judging claims will run: batches of analyses, and what is known before about those that do not apply."""

    batches: list[_AnalysisBatch]
    refused: Mapping[str, Refusal]
    other_languages: Mapping[str, Refusal]
    unknown_tokens: tuple[UnknownTokens, ...]

    def check_work(self, title: str, max_hours: float, notify: NotifyFunction | None) -> None:
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
    return estimate_runs(_plan_runs(claims, inputs, max_unknown, overflow).runnable())


def _plan_runs(claims: Sequence[Claim], inputs: RunInputs, max_unknown: float, overflow: Overflow | None) -> RunPlan:
    """The analyses that the claims need, in batches of one model and corpus; an unreadable corpus is refused."""
    unknown_tokens = _count_unknown_tokens(inputs)
    for count in unknown_tokens:
        count.check(max_unknown)
    other_languages = _other_languages(claims, inputs.corpus)
    runs = [run for claim in claims if claim.id not in other_languages for run in claim.all_runs.values()]
    outcomes: dict[str, Refusal] = {}
    batches: list[_AnalysisBatch] = []
    for target, corpus in dict.fromkeys((run.target, run.corpus) for run in runs):
        batch_runs = {_run_key(run): run for run in runs if (run.target, run.corpus) == (target, corpus)}
        if target == "against" and inputs.against is None and inputs.against_recording is None:
            outcomes |= dict.fromkeys(batch_runs, NO_FINE_TUNED_MODEL)
            continue
        known, unknown = _declared_analyses(batch_runs, overflow)
        outcomes |= unknown
        batch_inputs = _with_corpus(_select_target(inputs, target), corpus)
        if corpus is not None and batch_inputs.encoder is None and batch_inputs.recording is None:
            recordable = [key for key, (analysis, _) in known.items() if "encoder" not in analysis.required_inputs]
            outcomes |= dict.fromkeys(recordable, _no_stimuli_refusal(corpus))
            known = {key: request for key, request in known.items() if key not in recordable}
        if corpus is not None and (refusal := _unreadable(batch_inputs, max_unknown)) is not None:
            outcomes |= dict.fromkeys(known, refusal)
            continue
        batches.append(_AnalysisBatch.sorted_by_cost(known, batch_inputs))
    return RunPlan(batches, outcomes, other_languages, unknown_tokens)


def _compute_in_workers(
    batches: Sequence[_AnalysisBatch], *, progress: ProgressFactory | None, notify: NotifyFunction | None
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


def _count_unknown_tokens(inputs: RunInputs) -> tuple[UnknownTokens, ...]:
    """The unknown tokens of the corpus for the model and the model to compare with."""
    models = (inputs.recording or inputs.encoder, inputs.against_recording or inputs.against)
    corpus = inputs.corpus
    return tuple(count_unknown_tokens(model, corpus) for model in models if model is not None and corpus is not None)


def _unreadable(inputs: RunInputs, max_unknown: float) -> Refusal | None:
    """Why the model cannot read the stimuli of a claim, or a built-in corpus, if it cannot."""
    try:
        for count in _count_unknown_tokens(inputs):
            count.check(max_unknown)
    except Refusal as refusal:
        return refusal
    return None


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

    def only(self, keys: Sequence[str]) -> _AnalysisBatch:
        """Some of the requests."""
        return replace(self, requests={key: self.requests[key] for key in keys})

    @property
    def estimated_seconds(self) -> float:
        """Estimated seconds, for comparison with other batches."""
        return estimate_run_seconds(list(self.requests.values()), self.inputs)


def _declared_analyses(
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


def _claim_result(
    claim: Claim,
    outcomes: Mapping[str, Result | Refusal],
    inputs: RunInputs,
    filling: Corpus | None,
    filled: Collection[str],
) -> ClaimResult:
    keys = {name: _run_key(run) for name, run in claim.all_runs.items()}
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
