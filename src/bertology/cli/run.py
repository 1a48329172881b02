"""`bertology run`: one analysis on a model and a corpus, or on a recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertology.cli import options
from bertology.cli.table_layout import wrap_line
from bertology.errors import Refusal, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bertology.analyses.declaration import Analysis
    from bertology.analyses.presets import Preset

HELP = "Run one analysis; `bertology run ANALYSIS --help` lists its options."
CONTEXT: dict[str, Any] = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def run_command(
    context: typer.Context,
    analysis: Annotated[
        str | None, typer.Argument(help="Name of the analysis, as in `bertology list analyses`.")
    ] = None,
    model: options.Model = None,
    against: options.AgainstModels = None,
    corpus: options.CorpusName = None,
    reading: options.CorpusOptions = options.CorpusOptions(),
    recording_options: options.RecordingOptions = options.RecordingOptions(),
    like: Annotated[
        str | None,
        typer.Option(
            metavar="PAPER",
            help="Measure as a paper does, for example clark2019: sets the options of the analysis, unless they are "
            "given, and shows the published numbers; see `bertology list presets`.",
        ),
    ] = None,
    overflow: options.OverflowOption = "error",
    max_length: options.MaxLength = None,
    objective: options.Objective = "auto",
    loading: options.ModelOptions = options.ModelOptions(),
    store: options.Store = None,
    no_store: options.NoStore = False,
    no_random_baseline: Annotated[
        bool, typer.Option("--no-random-baseline", help="Skip the untrained-model baseline (random:MODEL).")
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also save the figure to FILE (.svg, .png or .html)."),
    ] = None,
    answers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the prediction for each item to FILE (.csv or .jsonl), to compare models item by item.",
        ),
    ] = None,
    theme: Annotated[Literal["light", "dark"], typer.Option(help="Colour theme of the figure.")] = "light",
    as_json: options.Json = False,
    help: Annotated[bool, typer.Option("--help", "-h", help="Show this message, or the options of ANALYSIS.")] = False,
) -> None:
    """Run one analysis and print its result."""
    from bertology.analyses import registry
    from bertology.analyses.presets import find_preset, with_published

    if help:
        typer.echo(context.get_help())
        if analysis is not None:
            typer.echo(analysis_help(registry.get(analysis)))
        raise typer.Exit
    if analysis is None:
        raise Refusal(
            "No analysis was named",
            "a name, as in `bertology run attention/entropy`",
            "`bertology list analyses` lists all, `bertology run --help` shows the options",
        )
    declared = registry.get(analysis)
    explicit_options = parse_analysis_options(declared, context.args, context)
    source = context.get_parameter_source("overflow")
    if "overflow" in declared.options and source is not None and source.name == "COMMANDLINE":
        explicit_options["overflow"] = overflow
    preset = find_preset(declared, like) if like is not None else None
    analysis_options = explicit_options if preset is None else preset.with_explicit(explicit_options)
    if figure is not None:
        from bertology.results.drawing.files import check_figure_writable

        check_figure_writable(figure)
    if answers is not None:
        _check_answers(declared, analysis_options, answers)

    from bertology.analyses.checkpoints import run_checkpoints
    from bertology.analyses.run import run_analysis
    from bertology.cli.terminal import print_published, print_result
    from bertology.recording.plan import RecordingConfig

    partners = options.expand_models(against or [])
    first_partner = partners[0] if partners else None
    recordings = recording_options.open(model=model, against=first_partner, corpus=corpus, limit=reading.limit)
    texts = reading.read(corpus) if recordings.recording is None else None
    inputs = options.build_run_inputs(
        model=model,
        against=first_partner,
        corpus=texts,
        recordings=recordings,
        config=RecordingConfig(overflow=overflow, max_length=max_length, objective=objective),
        loading=loading,
        store=store,
        no_store=no_store,
        random_baseline=not no_random_baseline,
    )
    with options.progress_bars() as progress:
        callbacks: dict[str, Any] = {"progress": progress, "notify": options.print_message}
        if len(partners) > 1:
            further = map(loading.load, partners[1:])
            result = run_checkpoints(declared, inputs, partners, further, analysis_options, **callbacks)
        else:
            result = run_analysis(declared, inputs, analysis_options, **callbacks)
    if preset is not None:
        result = with_published(result, preset, explicit_options)
    if answers is not None:
        options.print_message(f"Answers: {result.save_answers(answers)} in {answers}")
    if figure is not None:
        options.print_message(f"Figure: {result.save(figure, theme)}")
    if as_json:
        typer.echo(json.dumps(result.to_json(), ensure_ascii=False))
    else:
        print_result(result, declared)
        if preset is not None:
            print_published(result, preset, _published_findings(preset))


def _published_findings(preset: Preset) -> list[str]:
    """What the paper reports on the claims that this analysis tests."""
    from bertology.claims.claim import all_claims

    return [
        f"{claim.id} ({claim.section}): {claim.published_value}"
        for claim in all_claims()
        if claim.paper == preset.paper and claim.analysis == preset.analysis and claim.published_value
    ]


def _check_answers(analysis: Analysis, analysis_options: Mapping[str, Any], path: Path) -> None:
    """Refuse, before any computation, answers that the analysis does not have or that cannot be written."""
    from bertology.analyses import registry
    from bertology.results.answers import check_answers_writable

    if not analysis.answers:
        names = ", ".join(other.name for other in registry.load_all() if other.answers)
        raise Refusal(f"{analysis.name} has no answers to single items", f"one of: {names}", "Leave out --answers")
    if isinstance(analysis.answers, tuple):
        view = analysis_options.get("show", analysis.options["show"].default)
        if view not in analysis.answers:
            views = " or ".join(f"--show {name}" for name in analysis.answers)
            raise Refusal(f"{analysis.name} --show {view} has no answers to single items", views, f"Add {views}")
    check_answers_writable(path)


def parse_analysis_options(analysis: Analysis, arguments: list[str], context: typer.Context) -> dict[str, Any]:
    """Parse the arguments that are not options of the command as options of the analysis."""
    known = {option.flag: option for option in analysis.options.values()}
    values: dict[str, Any] = {}
    remaining = list(arguments)
    while remaining:
        word = remaining.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            raise Refusal(
                f"{word!r} is not an option",
                "an option such as --seed 1",
                f"See `bertology run {analysis.name} --help`",
            )
        if name.removeprefix("no-") in known and known[name.removeprefix("no-")].type is bool and not equals:
            values[known[name.removeprefix("no-")].name] = not name.startswith("no-")
            continue
        if name not in known:
            flags = (flag for parameter in context.command.params for flag in parameter.opts)
            shared = [flag.removeprefix("--") for flag in flags if flag.startswith("--")]
            raise unknown_name(f"option of {analysis.name}", name, [*known, *shared])
        if not equals:
            if not remaining:
                raise Refusal(f"--{name} has no value", "a value after it", known[name].description)
            value = remaining.pop(0)
        values[known[name].name] = known[name].parse(value)
    return values


def analysis_help(analysis: Analysis) -> str:
    """The description of an analysis, its options and its presets."""
    from bertology.analyses.presets import presets_of

    paragraphs = [wrap_line(" ".join(paragraph.split())) for paragraph in analysis.description.split("\n\n")]
    lines = [
        "",
        wrap_line(f"{analysis.name} (version {analysis.version}): {analysis.question}"),
        "",
        "\n\n".join(paragraphs),
        "",
    ]
    lines.append(wrap_line(analysis.special_tokens))
    if analysis.annotations:
        lines.append(wrap_line(f"Needs annotations: {', '.join(analysis.annotations)}."))
    if analysis.options:
        lines += ["", "Analysis options:"]
    width = max((len(option.flag) for option in analysis.options.values()), default=0)
    for option in analysis.options.values():
        choices = f" ({' | '.join(option.choices)})" if option.choices else ""
        default = "" if option.default in {"", None} else f" [default: {option.default}]"
        line = f"  --{option.flag:<{width}}  {option.description}{choices}{default}"
        lines.append(wrap_line(line, width + 6))
    presets = presets_of(analysis.name)
    if presets:
        lines += ["", "Definitions of papers (--like PAPER):"]
        lines += [wrap_line(f"  {preset.paper}  {preset.describe()}", 6) for preset in presets]
    return "\n".join(lines)
