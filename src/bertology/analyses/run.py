"""Run analyses: collect the sites all of them need, record once, and give each its arrays; cache finished parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, overload

from bertology.analyses import registry
from bertology.analyses.cache import AnalysisCache
from bertology.analyses.cache_key import files_in_options
from bertology.analyses.declaration import Analysis
from bertology.corpus.corpus import Corpus
from bertology.corpus.read import as_corpus
from bertology.encoder.encoder import Encoder, Randomisable, describe_changes, describe_encoder, describe_numbers
from bertology.encoder.load import as_encoder
from bertology.errors import Refusal, unknown_name
from bertology.recording.paired_sites import ComparisonUnit, are_same_tokens, check_same_size
from bertology.recording.plan import RecordingConfig
from bertology.recording.recorder import ProgressCallback, check_sites_available, record
from bertology.recording.recording import Recording, check_same_inputs
from bertology.recording.sites import Site, resolve_sites
from bertology.results.result import Result, sample_sizes, versions
from bertology.results.results import Results, unique_names
from bertology.results.shapes import Examples, Shape, UnmeasuredShape

SECONDS_PER_WORD = 0.005
"""Seconds per word of a forward pass of a small encoder on one core; only proportions matter."""
ROLE_NAMES = {"recording": "model", "randomised": "untrained", "against": "against"}
"""The recordings an analysis may use, and their names under `inputs` in a result."""

Request = tuple[Analysis, Mapping[str, Any]]
"""An analysis and its options."""
NotifyFunction = Callable[[str], None]
ProgressFactory = Callable[[str], ProgressCallback]


@dataclass(frozen=True)
class RunInputs:
    """The encoder and corpus to analyse, or a recording of them; optionally a second encoder to compare with.

    The encoder to compare with and the untrained encoder can be recordings too, of the same inputs as `recording`.
    """

    corpus: Corpus | None = None
    encoder: Encoder | None = None
    recording: Recording | None = None
    against: Encoder | None = None
    against_recording: Recording | None = None
    untrained_recording: Recording | None = None
    config: RecordingConfig = field(default_factory=RecordingConfig)
    store: Path | None = None
    random_baseline: bool = True

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


class ForwardPass(NamedTuple):
    """A pass of a model over a corpus, by name."""

    model: str
    corpus: str


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


@overload
def run(  # pyright: ignore[reportOverlappingOverload]  # a list is an object
    analysis: str, encoder: list[Any] | Iterator[Any], corpus: Any = None, **arguments: Any
) -> Results[Result]: ...
@overload
def run(  # pyright: ignore[reportOverlappingOverload]
    analysis: list[str] | tuple[str, ...], encoder: list[Any] | Iterator[Any], corpus: Any = None, **arguments: Any
) -> Results[Results[Result]]: ...
@overload
def run(
    analysis: list[str] | tuple[str, ...], encoder: object = None, corpus: Any = None, **arguments: Any
) -> Results[Result]: ...
@overload
def run(analysis: str, encoder: object = None, corpus: Any = None, **arguments: Any) -> Result: ...
def run(
    analysis: str | Sequence[str],
    encoder: Any = None,
    corpus: Any = None,
    *,
    recording: Recording | None = None,
    against: Any = None,
    untrained: Recording | None = None,
    config: RecordingConfig | None = None,
    store: str | Path | None = None,
    like: str | None = None,
    random_baseline: bool = True,
    progress: ProgressFactory | None = None,
    notify: NotifyFunction | None = None,
    **options: Any,
) -> Result | Results[Any]:
    """The result of an analysis, or those of several, of several models, or of both.

    `analysis` is a name, or a list of names: several analyses share one forward pass, and their `Results` are by name.
    `encoder` is what `bertology.load` takes, or a list of these: the results are then by model. `corpus` is what
    `bertology.corpus` or `bertology.read` take. Instead of both, a `recording` can be analysed, with `untrained` as
    the recording of its untrained model.

    `against` is the model (beside a recording: a recording) to compare with, or a list of models; layer curves then
    become one matrix of models by layers, other results are by model. With a `store` (a directory) recordings are kept
    and reused. `like` is a paper, for example clark2019, whose definitions are used where `options` do not say
    otherwise; the published numbers are then in the provenance of the result. `options` are the options of the
    analyses; of several analyses, each takes those it has.
    """
    names = [analysis] if isinstance(analysis, str) else list(dict.fromkeys(analysis))
    if not names:
        raise Refusal("No analysis was named", "a name, or a list of names", "`bertology list analyses` lists all")
    requests = named_requests(names, options)
    if like is not None:
        from bertology.analyses.presets import find_preset

        presets = [find_preset(declared, like) for declared, _ in requests]
        requests = [
            (declared, preset.with_explicit(own)) for (declared, own), preset in zip(requests, presets, strict=True)
        ]
    inputs = build_run_inputs(
        None if isinstance(encoder, list | Iterator) else encoder,
        corpus,
        recording=recording,
        untrained=untrained,
        config=config,
        store=store,
        random_baseline=random_baseline,
        models_follow=isinstance(encoder, list | Iterator),
        title=", ".join(names),
    )
    models = encoder if isinstance(encoder, list | Iterator) else None
    partners = against if isinstance(against, list | Iterator) else None
    if models is not None and partners is not None:
        raise Refusal(
            "Several models and several models to compare them with were given",
            "several of one kind",
            "Name one model with --model, or one with --against",
        )
    callbacks: dict[str, Any] = {"progress": progress, "notify": notify}
    by_analysis: dict[str, Result | Results[Result]]
    if partners is not None:
        from bertology.analyses.checkpoints import run_against_all

        by_analysis = dict(zip(names, run_against_all(requests, inputs, partners, **callbacks), strict=True))
    elif models is not None:
        by_analysis = _run_models(requests, with_partner(inputs, against), models, callbacks)
    else:
        results = run_all(requests, with_partner(inputs, against), raise_refusals=True, **callbacks).results()
        by_analysis = dict(zip(names, results, strict=True))
    if like is not None:
        by_analysis = _with_published(by_analysis, like, options)
    return by_analysis[names[0]] if isinstance(analysis, str) else Results(by_analysis, "analysis")


def build_run_inputs(
    encoder: Any,
    corpus: Any,
    *,
    recording: Recording | None = None,
    untrained: Recording | None = None,
    config: RecordingConfig | None = None,
    store: str | Path | None = None,
    random_baseline: bool = True,
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
        store=None if store is None else Path(store),
        random_baseline=random_baseline,
    )


def with_partner(inputs: RunInputs, against: Any) -> RunInputs:
    """The inputs with a model, or a recording, to compare with."""
    if against is None:
        return inputs
    if isinstance(against, Recording):
        return replace(inputs, against_recording=against)
    return replace(inputs, against=as_encoder(against))


def named_requests(names: Sequence[str], options: Mapping[str, Any]) -> list[Request]:
    """Each analysis with the options it has; an option that no analysis has is refused."""
    declared = [registry.get(name) for name in names]
    if len(declared) == 1:
        return [(declared[0], options)]
    for option in options:
        if not any(option in each.options for each in declared):
            raise unknown_name(
                f"option of {', '.join(names)}", option, {known for each in declared for known in each.options}
            )
    return [(each, {name: value for name, value in options.items() if name in each.options}) for each in declared]


def _run_models(
    requests: Sequence[Request], inputs: RunInputs, models: Sequence[Any] | Iterator[Any], callbacks: dict[str, Any]
) -> dict[str, Result | Results[Result]]:
    """The results of each analysis by model; models are used one at a time, so that they may be loaded lazily."""
    names: list[str] = []
    by_model: list[list[Result]] = []
    for model in models:
        encoder = as_encoder(model)
        names.append(encoder.name)
        report = run_all(requests, replace(inputs, encoder=encoder), raise_refusals=True, **callbacks)
        by_model.append(report.results())
    if not names:
        raise Refusal("The list of models is empty", "at least one model", "Name a model")
    names = unique_names(names)
    return {
        analysis.name: Results({name: results[i] for name, results in zip(names, by_model, strict=True)}, "model")
        for i, (analysis, _) in enumerate(requests)
    }


def _with_published(
    by_analysis: Mapping[str, Result | Results[Result]], like: str, options: Mapping[str, Any]
) -> dict[str, Result | Results[Result]]:
    """The results with the paper's numbers in their provenance."""
    from bertology.analyses.presets import find_preset, with_published

    published: dict[str, Result | Results[Result]] = {}
    for name, value in by_analysis.items():
        preset = find_preset(registry.get(name), like)
        if isinstance(value, Result):
            published[name] = with_published(value, preset, options)
        else:
            by_model = {model: with_published(result, preset, options) for model, result in value.items()}
            published[name] = Results(by_model, value.axis)
    return published


def run_analysis(
    analysis: Analysis,
    inputs: RunInputs,
    options: Mapping[str, Any] | None = None,
    *,
    progress: ProgressFactory | None = None,
    notify: NotifyFunction | None = None,
) -> Result:
    """The result of one analysis; see `run_all`."""
    return run_all([(analysis, options or {})], inputs, progress=progress, notify=notify).results()[0]


def run_all(
    requests: Sequence[Request],
    inputs: RunInputs,
    *,
    progress: ProgressFactory | None = None,
    notify: NotifyFunction | None = None,
    cache_results: bool = False,
    progress_estimate: ProgressEstimate | None = None,
    raise_refusals: bool = False,
) -> RunReport:
    """Run several analyses with one forward pass over the corpus per encoder.

    `progress` takes the title of a step and returns its callback. With `cache_results` each result is stored as soon
    as it is computed, so that a second run resumes where the first was stopped. `progress_estimate` is updated as
    steps finish. With `raise_refusals` an analysis that does not fit is refused, where this is known before the first
    forward pass.
    """
    estimate = progress_estimate or ProgressEstimate()
    before = dict(estimate.elapsed)
    resolved = [(analysis, _resolve_options(analysis, options, inputs)) for analysis, options in requests]
    refusals = [_check_runnable(analysis, options, inputs) for analysis, options in resolved]
    if raise_refusals and (first := next(filter(None, refusals), None)) is not None:
        raise first
    runnable = [request for request, refusal in zip(resolved, refusals, strict=True) if refusal is None]
    recordings = _RecordingsByRole(runnable, inputs, progress, notify, estimate)
    outcomes: list[Result | Refusal] = []
    for (analysis, options), refusal in zip(resolved, refusals, strict=True):
        if refusal is not None:
            outcomes.append(refusal)
            continue
        callback = progress(analysis.name) if progress is not None and len(runnable) > 1 else _no_progress
        callback(0, 1)
        try:
            outcomes.append(_cached_result(analysis, options, inputs, recordings, cache_results))
        except Refusal as refused:
            outcomes.append(refused)
        callback(1, 1)
    elapsed = {name: seconds - before.get(name, 0.0) for name, seconds in estimate.elapsed.items()}
    return RunReport(
        tuple(outcomes), tuple(recordings.passes), {name: seconds for name, seconds in elapsed.items() if seconds > 0}
    )


def estimate_run_seconds(requests: Sequence[Request], inputs: RunInputs) -> float:
    """Estimated seconds of `run_all`, for comparison with other runs."""
    n_words = count_words(inputs.corpus)
    roles = {role for analysis, _ in requests for role in analysis.inputs} & set(ROLE_NAMES)
    passes = len(roles) * SECONDS_PER_WORD * n_words
    return passes + sum(analysis.cost.estimate(n_words) for analysis, _ in requests)


def count_words(corpus: Corpus | None) -> int:
    """The number of words a model reads in one pass over the corpus."""
    return sum(len(text.words) for example in corpus or () for text in example.text_inputs)


@dataclass
class ProgressEstimate:
    """Progress over many passes and analyses in estimated seconds, and the seconds each step really took.

    Steps that turn out to be cached are removed from both totals, so that the fraction done predicts the rest.
    """

    callback: ProgressCallback | None = None
    remaining: float = 0.0
    completed: float = 0.0
    elapsed: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def stage(self, expected_seconds: float) -> Generator[None]:
        """Several steps with a common estimate; what was not needed of it is removed at the end."""
        rest = self.remaining - expected_seconds
        yield
        self.remaining = rest
        self._report(0.0)

    @contextmanager
    def step(self, name: str, expected_seconds: float) -> Generator[ProgressCallback]:
        """Time one step and yield its progress callback.

        A step that reports a total of 0 was cached and is not counted. Time spent in nested steps is subtracted.
        """
        start, nested_before = perf_counter(), sum(self.elapsed.values())
        cached = False

        def update(done: int, total: int) -> None:
            nonlocal cached
            cached = total == 0
            self._report(expected_seconds * done / max(1, total))

        yield update
        nested = sum(self.elapsed.values()) - nested_before
        if not cached:
            self.elapsed[name] = self.elapsed.get(name, 0.0) + perf_counter() - start - nested
            self.completed += expected_seconds
        self.remaining -= expected_seconds
        self._report(0.0)

    def _report(self, step_seconds: float) -> None:
        if self.callback is not None:
            done = self.completed + step_seconds
            self.callback(round(1000 * done), round(1000 * (self.completed + max(self.remaining, step_seconds))))


def stored_result(analysis: Analysis, inputs: RunInputs, options: Mapping[str, Any] | None = None) -> Result | None:
    """The result that an earlier run with `cache_results` stored; None if there is none. Nothing is computed."""
    if inputs.store is None or inputs.encoder is None:
        return None
    resolved = _resolve_options(analysis, options or {}, inputs)
    stored = AnalysisCache(inputs.store).lookup(analysis.function, _result_arguments(analysis, resolved, inputs))
    return None if stored is None else Result.from_json(stored)


def _result_arguments(analysis: Analysis, options: Mapping[str, Any], inputs: RunInputs) -> dict[str, Any]:
    """All that a result depends on, which it is stored under."""
    return {
        "analysis": analysis.name,
        "version": analysis.version,
        "options": options,
        "files": files_in_options(options),
        "names": [encoder.name for encoder in (inputs.encoder, inputs.against) if encoder is not None],
        **{input.name: getattr(inputs, input.name) for input in fields(inputs) if input.name != "store"},
    }


def _cached_result(
    analysis: Analysis,
    options: Mapping[str, Any],
    inputs: RunInputs,
    recordings: _RecordingsByRole,
    cache_results: bool,
) -> Result:
    """The result stored by an earlier run, or computed now."""
    if not cache_results or inputs.store is None or inputs.encoder is None or inputs.recording is not None:
        return _compute_result(analysis, options, inputs, recordings)
    arguments = _result_arguments(analysis, options, inputs)
    stored = recordings.cache.get_or_compute(
        analysis.function, arguments, lambda: _compute_result(analysis, options, inputs, recordings).to_json()
    )
    return Result.from_json(stored)


class _RecordingsByRole:
    """The recordings of a run by role, each made when first needed and shared by all analyses."""

    def __init__(
        self,
        requests: Sequence[Request],
        inputs: RunInputs,
        progress: ProgressFactory | None,
        notify: NotifyFunction | None,
        progress_estimate: ProgressEstimate,
    ) -> None:
        self.passes: list[ForwardPass] = []
        self.progress_estimate = progress_estimate
        self.n_words = count_words(inputs.corpus)
        self._requests = requests
        self._inputs = inputs
        self._progress = progress
        self._notify = notify
        self._recordings: dict[str, Recording | None] = {}

    @property
    def cache(self) -> AnalysisCache:
        """The cache for finished parts of an analysis, with its progress."""
        return AnalysisCache(self._inputs.store, self._progress)

    def __getitem__(self, role: str) -> Recording | None:
        if role not in self._recordings:
            self._recordings[role] = self._record_with_pairs(role)
        return self._recordings[role]

    def _record_with_pairs(self, role: str) -> Recording | None:
        sites = [site for a, options in self._requests if role in a.inputs for site in a.sites(options)]
        paired = [site for analysis, _ in self._requests if role in analysis.inputs for site in analysis.paired_sites]
        partner = {"recording": "against", "randomised": "recording"}.get(role)
        recorded, recorded_partner = self._inputs.recorded(role), self._inputs.recorded(partner or "")
        if recorded is not None and recorded_partner is not None:
            compared = {site.storage_key: site.compare_recordings(recorded, recorded_partner) for site in paired}
            return replace(recorded, sites={**recorded.sites, **compared}).with_sites(resolve_sites(sites))
        other = self._encoder(partner) if partner is not None and paired else None
        unit = self._comparison_unit(role, other) if other is not None else "tokens"
        bound = {site.storage_key: site.bind(other, unit) for site in paired} if other is not None else {}
        recording = self._record(role, resolve_sites([*resolve_sites(sites), *bound.values()]))
        if recording is None:
            return None
        available = {key: site for key, site in bound.items() if site.storage_key in recording.sites}
        return replace(
            recording, sites={**recording.sites, **{key: recording[site] for key, site in available.items()}}
        )

    def _comparison_unit(self, role: str, other: Encoder) -> ComparisonUnit:
        """Words if the encoder of a role and `other` tokenise the corpus differently."""
        recorded, encoder = self._inputs.recorded(role), self._encoder(role)
        if recorded is not None:
            texts, tokens = [inp.text for inp in recorded.inputs], [inp.tokens for inp in recorded.inputs]
        elif encoder is not None:
            texts = [text for example in self._inputs.corpus or () for text in example.text_inputs]
            tokens = encoder.tokenise(texts)
        else:
            return "tokens"
        return "tokens" if are_same_tokens(tokens, other.tokenise(texts)) else "words"

    def _record(self, role: str, sites: tuple[Site, ...]) -> Recording | None:
        recorded = self._inputs.recorded(role)
        if recorded is not None:
            return recorded.with_sites(sites)
        encoder = self._encoder(role)
        if encoder is None or self._inputs.corpus is None:
            return None
        forward_pass = ForwardPass(encoder.name, self._inputs.corpus.name)
        bar = self._progress(f"recording {encoder.name}") if self._progress else _no_progress
        with self.progress_estimate.step(" on ".join(forward_pass), SECONDS_PER_WORD * self.n_words) as update:

            def progress(done: int, total: int) -> None:
                needed = total if sites else 0
                update(done, needed)
                bar(done, total)
                if needed and not done:
                    self.passes.append(forward_pass)

            return record(
                encoder,
                self._inputs.corpus,
                sites,
                config=self._inputs.config,
                store=self._inputs.store,
                progress=progress,
                notify=self._notify if sites else None,
            )

    def _encoder(self, role: str) -> Encoder | None:
        if role == "randomised":
            encoder = self._inputs.encoder if self._inputs.random_baseline else None
            return encoder.randomised(seed=0) if isinstance(encoder, Randomisable) else None
        return self._inputs.against if role == "against" else self._inputs.encoder


def _check_runnable(analysis: Analysis, options: Mapping[str, Any], inputs: RunInputs) -> Refusal | None:
    """Why the analysis cannot run, checked first so that it does not spoil passes shared with others."""
    try:
        _check_inputs(analysis, options, inputs)
        if inputs.encoder is not None and inputs.recording is None:
            sites = resolve_sites(analysis.sites(options), inputs.encoder.task_heads)
            check_sites_available(inputs.encoder, sites, inputs.config)
    except Refusal as refusal:
        return refusal
    return None


def _check_inputs(analysis: Analysis, options: Mapping[str, Any], inputs: RunInputs) -> None:
    corpus = inputs.recording.corpus if inputs.recording is not None else inputs.corpus
    if "encoder" in analysis.required_inputs and inputs.encoder is None:
        raise Refusal(
            f"{analysis.name} runs the model, and a recording cannot be run",
            "a model and a corpus",
            f"Run it on the model: `bertology run {analysis.name} --model MODEL --corpus CORPUS`",
        )
    if "overflow" in analysis.options and inputs.config.max_length is not None:
        raise Refusal(
            f"{analysis.name} evaluates whole examples, and a maximum length of {inputs.config.max_length} was given",
            "the limit of the model",
            "Leave out --max-length; --overflow says what is done with examples longer than the model allows",
        )
    if "recording" in analysis.inputs and inputs.recording is None and (inputs.encoder is None or corpus is None):
        name = corpus.name if corpus is not None else "CORPUS"
        raise Refusal(
            f"{analysis.name} needs activations on {name}, and neither a model nor a recording of {name} was given",
            f"a model, or a recording of {name}",
            "Name the model with --model instead of --recording, or use a recording of this corpus: "
            f"`bertology record MODEL {name} --sites attention,hidden -o DIR`",
        )
    if corpus is not None and analysis.annotations:
        corpus.require_annotations(*analysis.annotations, analysis_name=analysis.name)
    if corpus is not None and analysis.check_corpus is not None:
        analysis.check_corpus(corpus, options)
    if "against" in analysis.inputs and inputs.against is None and inputs.against_recording is None:
        raise Refusal(
            f"{analysis.name} compares two models, and one was given",
            "two models, or recordings of two models on the same corpus",
            "Add --against MODEL, or --against-recording DIR beside --recording",
        )
    if analysis.paired_sites and "against" in analysis.inputs:
        first = inputs.recording.encoder if inputs.recording is not None else inputs.encoder
        second = inputs.against_recording.encoder if inputs.against_recording is not None else inputs.against
        if first is not None and second is not None:
            check_same_size(first, second)


def _compute_result(
    analysis: Analysis, options: Mapping[str, Any], inputs: RunInputs, recordings: _RecordingsByRole
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


def _no_progress(done: int, total: int) -> None:
    """Report nothing."""
