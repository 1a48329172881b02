"""`bertology.run`: one analysis by name or several, on one model or several."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, overload

from bertology.analyses import registry
from bertology.analyses.checkpoints import run_against_all
from bertology.analyses.engine_runs import can_spread_models, spread_runs
from bertology.analyses.presets import find_preset, with_published
from bertology.analyses.run import (
    MessageCallback,
    Request,
    RunInputs,
    build_run_inputs,
    run_all,
    with_partner,
)
from bertology.encoder.load import as_encoder
from bertology.engines.engine import Engine, open_engine, refuse_without_store
from bertology.errors import Refusal, unknown_name
from bertology.number_ranges import HOURS
from bertology.progress import ProgressFactory
from bertology.recording.plan import RecordingConfig
from bertology.recording.recording import Recording
from bertology.results.result import Result
from bertology.results.results import Results, unique_names
from bertology.store_paths import StorePath
from bertology.work_estimate import MAX_HOURS


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
    store: str | StorePath | None = None,
    like: str | None = None,
    random_baseline: bool = True,
    max_hours: Annotated[float | None, HOURS] = MAX_HOURS,
    engine: Engine | str | None = None,
    progress: ProgressFactory | None = None,
    notify: MessageCallback | None = None,
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
    otherwise; the published numbers are then in the provenance of the result. With an `engine` (`local:4`, `ray`,
    `ray:ADDRESS`) and a `store`, its workers record and analyse. Work that is estimated to take longer than `max_hours`
    for a model is refused before it starts (None: no bound). `options` are the options of the analyses; of several
    analyses, each takes those it has.
    """
    names = [analysis] if isinstance(analysis, str) else list(dict.fromkeys(analysis))
    if not names:
        raise Refusal("No analysis was named", "a name, or a list of names", "`bertology list analyses` lists all")
    requests = named_requests(names, options)
    if like is not None:
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
        max_hours=max_hours,
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
    refuse_without_store(None if engine == "local" else engine, store)
    callbacks: dict[str, Any] = {"progress": progress, "notify": notify}
    by_analysis: dict[str, Result | Results[Result]]
    with open_engine(engine) as opened:
        inputs = replace(inputs, engine=opened)
        if partners is not None:
            if opened is not None and can_spread_models(partners, opened):
                spread_runs(requests, inputs, list(partners), opened, progress, role="against")
            by_analysis = dict(zip(names, run_against_all(requests, inputs, partners, **callbacks), strict=True))
        elif models is not None:
            inputs = with_partner(inputs, against)
            if opened is not None and can_spread_models(models, opened):
                spread_runs(requests, inputs, list(models), opened, progress)
            by_analysis = _run_models(requests, inputs, models, callbacks)
        else:
            results = run_all(requests, with_partner(inputs, against), raise_refusals=True, **callbacks).results()
            by_analysis = dict(zip(names, results, strict=True))
    if like is not None:
        by_analysis = _with_published(by_analysis, like, options)
    return by_analysis[names[0]] if isinstance(analysis, str) else Results(by_analysis, "analysis")


def named_requests(names: Sequence[str], options: Mapping[str, Any]) -> list[Request]:
    """Each analysis with the options it has; an option that no analysis has is refused."""
    declared = [registry.get(name) for name in names]
    if len(declared) == 1:
        declared[0].resolve_options(options)
        return [(declared[0], options)]
    for option in options:
        if not any(option in each.options for each in declared):
            raise unknown_name(
                f"option of {', '.join(names)}", option, {known for each in declared for known in each.options}
            )
    requests: list[Request] = [
        (each, {name: value for name, value in options.items() if name in each.options}) for each in declared
    ]
    for each, own in requests:
        each.resolve_options(own)
    return requests


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
    published: dict[str, Result | Results[Result]] = {}
    for name, value in by_analysis.items():
        preset = find_preset(registry.get(name), like)
        if isinstance(value, Result):
            published[name] = with_published(value, preset, options)
        else:
            by_model = {model: with_published(result, preset, options) for model, result in value.items()}
            published[name] = Results(by_model, value.axis)
    return published
