"""Run analyses: collect the sites all of them need, record once, and give each its arrays; cache finished parts.

`bertology.run` is in `run_by_name`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from bertology.analyses import registry
from bertology.analyses.cache import AnalysisCache, warn_of_damage
from bertology.analyses.cache_key import cache_key, files_in_options
from bertology.analyses.declaration import Analysis
from bertology.analyses.progress_estimate import SECONDS_PER_WORD, ProgressEstimate, count_words
from bertology.analyses.recordings_by_role import ForwardPass, RecordingsByRole
from bertology.analyses.resamples_file import load_resamples, save_resamples
from bertology.analyses.run_checks import check_runnable
from bertology.analyses.run_work import estimate_missing_run, estimate_run, measured_as_worker
from bertology.checked_files import DamagedFileError
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import as_corpus
from bertology.encoder.encoder import Encoder, describe_changes, describe_encoder, describe_numbers
from bertology.encoder.load import as_encoder
from bertology.engines.engine import Engine
from bertology.errors import Refusal, count_noun
from bertology.machine_errors import raise_machine_error
from bertology.progress import MessageCallback, ProgressFactory, no_progress
from bertology.recording.plan import RecordingConfig
from bertology.recording.recording import Recording, check_same_inputs
from bertology.results.illustrations import Examples
from bertology.results.result import Result, sample_sizes, versions
from bertology.results.shapes import Shape, UnmeasuredShape
from bertology.store_paths import StorePath, store_path
from bertology.work_estimate import WorkEstimate, check_work

ROLE_NAMES = {"recording": "model", "randomised": "untrained", "against": "against"}
"""The recordings an analysis may use, and their names under `inputs` in a result."""

NO_CONTENT = {"store", "engine", "max_hours"}
"""Inputs that no result depends on: where it is kept and computed, and how long that may take."""

Request = tuple[Analysis, Mapping[str, Any]]
"""An analysis and its options."""


@dataclass(frozen=True)
class RunInputs:
    """The encoder and corpus to analyse, or a recording of them; optionally a second encoder to compare with.

    The encoder to compare with and the untrained encoder can be recordings too, of the same inputs as `recording`.
    Work that is estimated to take longer than `max_hours` is refused; None sets no bound.
    """

    corpus: Corpus | None = None
    encoder: Encoder | None = None
    recording: Recording | None = None
    against: Encoder | None = None
    against_recording: Recording | None = None
    untrained_recording: Recording | None = None
    config: RecordingConfig = field(default_factory=RecordingConfig)
    store: StorePath | None = None
    random_baseline: bool = True
    max_hours: float | None = None
    engine: Engine | None = None

    def __post_init__(self) -> None:
        for other in (self.against_recording, self.untrained_recording):
            if other is None:
                continue
            if self.recording is None:
                raise Refusal(
                    f"A recording of {other.encoder.name} was given to compare with, and no recording of the model",
                    "two recordings of the same corpus",
                    "Record the model too, or compare two models that can be run",
                )
            check_same_inputs(self.recording, other)

    @property
    def model_names(self) -> dict[str, str]:
        """The names of the model and of the model to compare with, by role; a missing one is left out."""
        models = {
            "recording": self.recording.encoder if self.recording is not None else self.encoder,
            "against": self.against_recording.encoder if self.against_recording is not None else self.against,
        }
        return {role: model.name for role, model in models.items() if model is not None}

    def recorded(self, role: str) -> Recording | None:
        """The recording that was given for a role, if any."""
        recordings = {
            "recording": self.recording,
            "against": self.against_recording,
            "randomised": self.untrained_recording,
        }
        return recordings.get(role)


def describe_passes(passes: Sequence[ForwardPass]) -> str:
    """The number of passes of each model over each corpus, as a sentence; empty without passes."""
    if not passes:
        return ""
    models: dict[str, list[str]] = {}
    for (model, corpus), n in Counter(passes).items():
        models.setdefault(corpus, []).append(f"{model} {n} times" if n > 1 else model)
    corpora = "; ".join(f"{corpus} by {', '.join(names)}" for corpus, names in models.items())
    return f"{len(passes)} forward {'pass' if len(passes) == 1 else 'passes'} over corpora: {corpora}."


@dataclass(frozen=True)
class RunReport:
    """What `run_all` did: one outcome per request, the forward passes made, and the seconds each part took.

    An analysis that does not fit the model or corpus has its `Refusal` as outcome. `passes` leaves out recordings
    that were in the store.
    """

    outcomes: tuple[Result | Refusal, ...]
    passes: tuple[ForwardPass, ...]
    elapsed: Mapping[str, float]

    def results(self) -> list[Result]:
        """The results in request order; the first refusal is raised."""
        for outcome in self.outcomes:
            if isinstance(outcome, Refusal):
                raise outcome
        return [outcome for outcome in self.outcomes if isinstance(outcome, Result)]


def build_run_inputs(
    encoder: Any,
    corpus: Any,
    *,
    recording: Recording | None = None,
    untrained: Recording | None = None,
    config: RecordingConfig | None = None,
    store: str | StorePath | None = None,
    random_baseline: bool = True,
    max_hours: float | None = None,
    models_follow: bool = False,
    title: str,
) -> RunInputs:
    """The inputs of a run from what people pass to Python functions: names, paths, models and data in memory.

    The encoder is left out if several `models_follow`. `title` names the run in refusals.
    """
    if recording is None and ((encoder is None and not models_follow) or corpus is None):
        raise Refusal(
            f"{title} was given neither a recording nor both a model and a corpus",
            "a model and a corpus, or recording=...",
            "Add what is missing; see bertology.load and bertology.read",
        )
    if recording is not None and (encoder is not None or models_follow or corpus is not None):
        raise Refusal("Both a recording and a model or corpus were given", "one of them", "Remove one")
    return RunInputs(
        corpus=recording.corpus if recording is not None else as_corpus(corpus),
        encoder=None if encoder is None else as_encoder(encoder),
        recording=recording,
        untrained_recording=untrained,
        config=config or RecordingConfig(),
        store=None if store is None else store_path(store),
        random_baseline=random_baseline,
        max_hours=max_hours,
    )


def with_partner(inputs: RunInputs, against: Any) -> RunInputs:
    """The inputs with a model, or a recording, to compare with."""
    if against is None:
        return inputs
    if isinstance(against, Recording):
        return replace(inputs, against_recording=against)
    return replace(inputs, against=as_encoder(against))


def run_analysis(
    analysis: Analysis,
    inputs: RunInputs,
    options: Mapping[str, Any] | None = None,
    *,
    progress: ProgressFactory | None = None,
    notify: MessageCallback | None = None,
) -> Result:
    """The result of one analysis; see `run_all`."""
    return run_all([(analysis, options or {})], inputs, progress=progress, notify=notify).results()[0]


def run_all(
    requests: Sequence[Request],
    inputs: RunInputs,
    *,
    progress: ProgressFactory | None = None,
    notify: MessageCallback | None = None,
    cache_results: bool = False,
    progress_estimate: ProgressEstimate | None = None,
    raise_refusals: bool = False,
    is_checked: bool = False,
    use_engine: bool = True,
) -> RunReport:
    """Run several analyses with one forward pass over the corpus per encoder.

    `progress` takes the title of a step and returns its callback. With `cache_results` each result is stored as soon
    as it is computed, so that a second run resumes where the first was stopped. `progress_estimate` is updated as
    steps finish. With `raise_refusals` an analysis that does not fit is refused, where this is known before the first
    forward pass. `is_checked` says that the caller has compared the work with `inputs.max_hours`. If the inputs have an
    engine, its workers run the analyses, and results are cached; `use_engine` is false where they have run already.
    """
    estimate = progress_estimate or ProgressEstimate()
    before = dict(estimate.elapsed)
    resolved = [(analysis, _resolve_options(analysis, options, inputs)) for analysis, options in requests]
    refusals = [check_runnable(analysis, options, inputs) for analysis, options in resolved]
    if raise_refusals and (first := next(filter(None, refusals), None)) is not None:
        raise first
    runnable = [request for request, refusal in zip(resolved, refusals, strict=True) if refusal is None]
    if inputs.max_hours is not None and runnable and not is_checked:
        names = list(dict.fromkeys(analysis.name for analysis, _ in runnable))
        title = f"{names[0] if len(names) == 1 else count_noun(len(names), 'analyses')} on {_model_name(inputs)}"
        check_run_work(title, [(runnable, inputs)], inputs.max_hours, notify, cache_results=cache_results)
    passes: list[ForwardPass] = []
    # Some parts of a page are computed for one text at a time and are not stored.
    engine = inputs.engine if inputs.store is not None and inputs.encoder is not None else None
    engine = None if inputs.recording is not None else engine
    if engine is not None and use_engine:
        from bertology.analyses.engine_runs import compute_in_workers

        callbacks: dict[str, Any] = {"progress": progress, "notify": notify, "progress_estimate": estimate}
        passes = compute_in_workers([(runnable, inputs)], engine, **callbacks)
    recordings = RecordingsByRole(runnable, inputs, progress, notify, estimate)
    outcomes: list[Result | Refusal] = []
    for (analysis, options), refusal in zip(resolved, refusals, strict=True):
        if refusal is not None:
            outcomes.append(refusal)
            continue
        callback = progress(analysis.name) if progress is not None and len(runnable) > 1 else no_progress
        callback(0, 1)
        try:
            outcomes.append(_cached_result(analysis, options, inputs, recordings, cache_results or engine is not None))
        except Refusal as refused:
            raise_machine_error(refused)
            outcomes.append(refused)
        callback(1, 1)
    elapsed = {name: seconds - before.get(name, 0.0) for name, seconds in estimate.elapsed.items()}
    return RunReport(
        tuple(outcomes),
        (*passes, *recordings.passes),
        {name: seconds for name, seconds in elapsed.items() if seconds > 0},
    )


def _model_name(inputs: RunInputs) -> str:
    return inputs.model_names.get("recording", "the recording")


def check_run_work(
    title: str,
    batches: Sequence[tuple[Sequence[Request], RunInputs]],
    max_hours: float,
    notify: MessageCallback | None,
    *,
    cache_results: bool = True,
) -> None:
    """Tell the work of several runs, or refuse it, before the first of them starts; see `work_estimate`."""
    store = next((inputs.store for _, inputs in batches), None)
    engine = next((inputs.engine for _, inputs in batches), None)
    with measured_as_worker(engine):
        work = estimate_runs(batches, cache_results=cache_results)
    check_work(title, work.shared_by(1 if engine is None else engine.n_workers), max_hours, folder=store, notify=notify)


def estimate_runs(
    batches: Sequence[tuple[Sequence[Request], RunInputs]], *, cache_results: bool = True
) -> WorkEstimate:
    """The work of several runs, without what is stored; results are stored with `cache_results`."""
    estimate = estimate_missing_run if cache_results else estimate_run
    resolved = [
        ([(analysis, _resolve_options(analysis, options, inputs)) for analysis, options in requests], inputs)
        for requests, inputs in batches
    ]
    return sum((estimate(requests, inputs) for requests, inputs in resolved), WorkEstimate())


def runnable_requests(requests: Sequence[Request], inputs: RunInputs) -> list[Request]:
    """The analyses that fit the model and the corpus, with all their options."""
    resolved = [(analysis, _resolve_options(analysis, options, inputs)) for analysis, options in requests]
    return [(analysis, options) for analysis, options in resolved if check_runnable(analysis, options, inputs) is None]


def estimate_run_seconds(requests: Sequence[Request], inputs: RunInputs) -> float:
    """Estimated seconds of `run_all`, for comparison with other runs."""
    n_words = count_words(inputs.corpus)
    roles = {role for analysis, _ in requests for role in analysis.inputs} & set(ROLE_NAMES)
    passes = len(roles) * SECONDS_PER_WORD * n_words
    return passes + sum(analysis.cost.estimate(n_words) for analysis, _ in requests)


def stored_result(analysis: Analysis, inputs: RunInputs, options: Mapping[str, Any] | None = None) -> Result | None:
    """The result that an earlier run with `cache_results` stored; None if there is none. Nothing is computed."""
    if inputs.store is None or inputs.encoder is None:
        return None
    resolved = _resolve_options(analysis, options or {}, inputs)
    stored = AnalysisCache(inputs.store).lookup(analysis.function, _result_arguments(analysis, resolved, inputs))
    return None if stored is None else Result.from_json(stored["result"])


def has_stored_result(analysis: Analysis, options: Mapping[str, Any], inputs: RunInputs) -> bool:
    """Whether the store has a file for the result of an analysis with all its options; the file is not read."""
    if inputs.store is None or inputs.encoder is None:
        return False
    key = cache_key(analysis.function, _result_arguments(analysis, options, inputs))
    return AnalysisCache(inputs.store).file(key, ".json").is_file()


def _result_arguments(analysis: Analysis, options: Mapping[str, Any], inputs: RunInputs) -> dict[str, Any]:
    """All that a result depends on, which it is stored under."""
    return {
        "analysis": analysis.name,
        "version": analysis.version,
        "options": options,
        "files": files_in_options(options),
        "names": [encoder.name for encoder in (inputs.encoder, inputs.against) if encoder is not None],
        **{input.name: getattr(inputs, input.name) for input in fields(inputs) if input.name not in NO_CONTENT},
    }


def _cached_result(
    analysis: Analysis,
    options: Mapping[str, Any],
    inputs: RunInputs,
    recordings: RecordingsByRole,
    cache_results: bool,
) -> Result:
    """The result stored by an earlier run, or computed now."""
    if not cache_results or inputs.store is None or inputs.encoder is None or inputs.recording is not None:
        return _compute_result(analysis, options, inputs, recordings)
    cache, key = recordings.cache, cache_key(analysis.function, _result_arguments(analysis, options, inputs))
    file = cache.file(key, ".npz")
    stored = cache.read(key)
    if stored is not None:
        try:
            return _with_stored_resamples(stored["value"], file)
        except DamagedFileError as error:
            warn_of_damage(error)
    computed = _compute_result(analysis, options, inputs, recordings)
    digest = ""
    if not isinstance(computed.data, UnmeasuredShape) and computed.data.kept_resamples:
        # Written before the result, so that a stored result has them.
        digest = save_resamples(file, computed.data.kept_resamples)
    value = {"result": computed.to_json(), "resamples": digest}
    cache.write(key, value)
    # As it will be read back, so that the first run and a later one are the same.
    return _with_stored_resamples(json.loads(json.dumps(value)), file)


def _with_stored_resamples(stored: Mapping[str, Any], file: StorePath) -> Result:
    """A stored result with its resampled values, whose digest it holds."""
    result = Result.from_json(stored["result"])
    if isinstance(result.data, UnmeasuredShape):
        return result
    resamples = load_resamples(file, stored["resamples"]) if stored["resamples"] else {}
    return result.model_copy(update={"data": result.data.with_kept_resamples(resamples)})


def _compute_result(
    analysis: Analysis, options: Mapping[str, Any], inputs: RunInputs, recordings: RecordingsByRole
) -> Result:
    corpus = inputs.recording.corpus if inputs.recording is not None else inputs.corpus
    arguments: dict[str, Any] = {
        role: recordings.cache if role == "cache" else {"encoder": inputs.encoder, "corpus": corpus}[role]
        for role in analysis.inputs
        if role not in ROLE_NAMES
    }
    with recordings.progress_estimate.step(analysis.name, analysis.cost.estimate(recordings.n_words)):
        recorded = {role: recordings[role] for role in analysis.inputs if role in ROLE_NAMES}
        data = analysis(*((recorded | arguments)[role] for role in analysis.inputs), **options)
        if not isinstance(data, UnmeasuredShape):
            data = data.with_paired_differences()
    main = recorded.get("recording")
    n_texts = len(main) if main is not None else sum(len(example.text_inputs) for example in corpus or ())
    return Result(
        analysis=analysis.name,
        version=analysis.version,
        options=dict(options),
        inputs=_describe_inputs(recorded, inputs, corpus, n_texts),
        n=_sample_size(data, n_texts),
        data=data,
        provenance={
            "versions": {**versions(), **registry.package_versions(analysis.name)},
            "question": analysis.question,
            "special_tokens": analysis.special_tokens,
            "citations": list(analysis.citations),
        },
    )


def _resolve_options(analysis: Analysis, options: Mapping[str, Any], inputs: RunInputs) -> dict[str, Any]:
    """All options; analyses that measure the untrained model themselves do so only if the run has this baseline."""
    resolved = analysis.resolve_options(options)
    if "random_baseline" in resolved and not inputs.random_baseline:
        resolved["random_baseline"] = False
    return resolved


def _sample_size(data: Shape, n_texts: int) -> int:
    """The largest sample size of the numbers, the number of examples shown, or that of the texts illustrated."""
    if isinstance(data, Examples):
        return len(data.examples)
    return n_texts if isinstance(data, UnmeasuredShape) else max(sample_sizes(data), default=0)


def _describe_inputs(
    recorded: Mapping[str, Recording | None], inputs: RunInputs, corpus: Corpus | None, n_texts: int
) -> dict[str, Any]:
    """Each model by role with its corpus; a corpus without a model under its own name."""
    encoders = {"recording": inputs.encoder, "against": inputs.against}
    described: dict[str, Any] = {}
    for role, recording in recorded.items():
        if recording is not None:
            encoder = encoders.get(role) if inputs.recorded(role) is None else None
            changes = {"all weights": ["random"]} if role == "randomised" else dict[str, list[str]]()
            summary = recording.summary()
            # The untrained model runs as the model does; of a recording that was read only the fingerprint is known.
            source = inputs.encoder if role == "randomised" else encoder
            numbers = describe_numbers(source) if source is not None else dict[str, str]()
            changes = describe_changes(encoder) if encoder is not None else changes
            model = {**summary["model"], **numbers, "changes": changes}
            described[ROLE_NAMES[role]] = {**summary, "model": model}
    if corpus is not None and inputs.encoder is not None and "model" not in described:
        main = {"model": describe_encoder(inputs.encoder), "corpus": corpus.summary(), "inputs": n_texts}
        return {"model": main, **described}
    return described or ({"corpus": corpus.summary()} if corpus is not None else {})
