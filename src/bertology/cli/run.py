"""`bertology run`: analyses of one or several models on a corpus, or of a recording."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertology.cli import options
from bertology.cli.completion import complete_analysis, complete_preset
from bertology.cli.table_layout import wrap_line
from bertology.errors import Refusal, unknown_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bertology.analyses.declaration import Analysis
    from bertology.analyses.presets import Preset
    from bertology.results.shapes import Head

HELP = "Run analyses on one or several models; `bertology run ANALYSIS --help` lists its options."
CONTEXT: dict[str, Any] = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def run_command(
    context: typer.Context,
    analysis: Annotated[
        str | None,
        typer.Argument(
            help="Name of the analysis, as in `bertology list analyses`; further names after it share its forward "
            "pass.",
            autocompletion=complete_analysis,
        ),
    ] = None,
    model: options.Models = None,
    against: options.AgainstModels = None,
    corpus: options.CorpusName = None,
    reading: options.CorpusOptions = options.CorpusOptions(),
    recording_options: options.RecordingOptions = options.RecordingOptions(),
    like: Annotated[
        str | None,
        typer.Option(
            metavar="PAPER",
            autocompletion=complete_preset,
            help="Measure as a paper does, for example clark2019: sets the options of the analysis, unless they are "
            "given, and shows the published numbers; see `bertology list presets`.",
        ),
    ] = None,
    overflow: options.OverflowOption = "error",
    max_length: options.MaxLength = None,
    objective: options.Objective = "auto",
    loading: options.ModelOptions = options.ModelOptions(),
    engine: options.EngineName = None,
    store: options.Store = None,
    no_store: options.NoStore = False,
    max_hours: options.MaxHours = options.MAX_HOURS,
    no_random_baseline: Annotated[
        bool, typer.Option("--no-random-baseline", help="Skip the untrained-model baseline (random:MODEL).")
    ] = False,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also save the figure to FILE (.svg, .pdf, .png or .html)."),
    ] = None,
    panels: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES",
            help="Panels of the figure: measures, rows of a table or numbers of sentences, separated by commas; part "
            "of a name is enough.",
        ),
    ] = None,
    width: Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH",
            help="Width of the figure, such as 85mm (also cm, in, pt, px; 170mm if not given); text keeps its size.",
        ),
    ] = None,
    caption: Annotated[
        Literal["none", "short", "full"] | None,
        typer.Option(help="Caption below the figure: none, one line, or sentences and a title (default)."),
    ] = None,
    head: Annotated[
        str | None,
        typer.Option(metavar="LAYER-HEAD", help="Print what the result says about one head, such as 8-11."),
    ] = None,
    all_rows: Annotated[
        bool, typer.Option("--all-rows", help="Print all rows of long tables, and the numbers of every head.")
    ] = False,
    answers: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also write the prediction for each item to FILE (.csv or .jsonl), to compare models item by item.",
        ),
    ] = None,
    theme: Annotated[
        Literal["light", "dark"] | None,
        typer.Option(help="Colour theme of the figure; if not given, images are light and pages follow the browser."),
    ] = None,
    as_json: options.Json = False,
    help: Annotated[bool, typer.Option("--help", "-h", help="Show this message, or the options of ANALYSIS.")] = False,
) -> None:
    """Run analyses and print their results."""
    from bertology.analyses import registry
    from bertology.analyses.presets import find_preset
    from bertology.cli.terminal import print_model_table, print_published, print_result

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
    further, arguments = split_names(context.args)
    names = list(dict.fromkeys([analysis, *further]))
    declared = [registry.get(name) for name in names]
    explicit_options = parse_analysis_options(declared, arguments, context)
    source = context.get_parameter_source("overflow")
    if source is not None and source.name == "COMMANDLINE" and any("overflow" in each.options for each in declared):
        explicit_options["overflow"] = overflow
    models, partners = options.expand_models(model or []), options.expand_models(against or [])
    if len(names) > 1 or len(models) > 1:
        _check_several(figure=figure, answers=answers, head=head)
    _check_figure(figure, panels=panels, width=width, caption=caption, theme=theme)
    if answers is not None:
        preset = find_preset(declared[0], like) if like is not None else None
        _check_answers(declared[0], preset.with_explicit(explicit_options) if preset else explicit_options, answers)

    from bertology.analyses.run_by_name import run
    from bertology.recording.plan import RecordingConfig
    from bertology.results.result import Result
    from bertology.results.results import Results

    recordings = recording_options.open(
        model=next(iter(models), None), against=next(iter(partners), None), corpus=corpus, limit=reading.limit
    )
    recording = recordings.recording
    texts = None if recording is not None else reading.read(corpus)
    encoder = None if recording is not None else loading.load_all(models or [None])
    shown_head = None if head is None else _check_head(head, encoder if recording is None else recording.encoder)
    with options.progress_bars() as progress:
        value = run(
            names if len(names) > 1 else names[0],
            encoder,
            texts,
            recording=recording,
            untrained=recordings.untrained,
            against=recordings.against or (loading.load_all(partners) if partners else None),
            config=RecordingConfig(overflow=overflow, max_length=max_length, objective=objective),
            store=options.store_directory(store, no_store=no_store),
            like=like,
            random_baseline=not no_random_baseline,
            max_hours=max_hours,
            engine=engine,
            progress=progress,
            notify=options.print_message,
            **explicit_options,
        )
    if isinstance(value, Result) and answers is not None:
        options.print_message(f"Answers: {value.save_answers(answers)} in {answers}")
    if isinstance(value, Result) and figure is not None:
        command = shlex.join(["bertology", *sys.argv[1:]])
        value.figure(figure, panels=panels or (), width=width, caption=caption or "full", theme=theme, command=command)
        options.print_message(f"Figure: {figure}")
    if as_json:
        typer.echo(json.dumps(value.to_json(), ensure_ascii=False))
        return
    if isinstance(value, Results) and len(value.all_results()) > len(names):
        print_model_table(value.table(), all_rows=all_rows)
        return
    results = [value] if isinstance(value, Result) else value.all_results()
    for each, result in zip(declared, results, strict=True):
        print_result(result, each, head=shown_head, all_rows=all_rows)
        if like is not None:
            preset = find_preset(each, like)
            print_published(result, preset, _published_findings(preset))


def _check_figure(figure: Path | None, *, width: str | None, **given: str | None) -> None:
    """Refuse, before any computation, options of a figure without a figure, and one that cannot be made."""
    from bertology.results.drawing.files import check_figure_writable
    from bertology.results.drawing.length import parse_width

    for name, value in {"width": width, **given}.items():
        if value is not None and figure is None:
            raise Refusal(f"--{name} was given without --figure", "a file for the figure", "Add --figure FILE.svg")
    if figure is None:
        return
    if width is not None and figure.suffix.lower() == ".html":
        raise Refusal(
            "--width was given for a page",
            "an image: .svg, .pdf or .png",
            "Leave out --width; a page fits the window of its reader",
        )
    if width is not None:
        parse_width(width)
    check_figure_writable(figure)


def _check_several(**single: object) -> None:
    """Refuse options that are about one result beside several analyses or models."""
    for name, value in single.items():
        if value is not None:
            raise Refusal(
                f"--{name} was given with several analyses or models",
                "one analysis of one model",
                f"Leave out --{name}; --json has every number",
            )


def split_names(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The further names of analyses, which come before all options, and the other arguments."""
    first_option = next((index for index, word in enumerate(arguments) if word.startswith("-")), len(arguments))
    return arguments[:first_option], arguments[first_option:]


def _published_findings(preset: Preset) -> list[str]:
    """What the paper reports on the claims that this analysis tests."""
    from bertology.claims.catalogue import all_claims

    return [
        f"{claim.id} ({claim.section}): {claim.published_value}"
        for claim in all_claims()
        if claim.paper == preset.paper and claim.analysis == preset.analysis and claim.published_value
    ]


def _check_head(text: str, encoder: Any) -> Head:
    """The head of `--head`; refused, before any computation, if the model does not have it."""
    from bertology.results.measure import parse_head

    head = parse_head(text)
    if encoder is not None and not (head[0] < encoder.layers and head[1] < encoder.heads):
        raise Refusal(
            f"{encoder.name} has no head {head}",
            f"a head from 1-1 to {encoder.layers}-{encoder.heads}",
            "Heads are written layer-head, both counted from 1",
        )
    return head


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


def parse_analysis_options(
    analyses: Sequence[Analysis], arguments: list[str], context: typer.Context
) -> dict[str, Any]:
    """Parse the arguments that are not options of the command as options of the analyses."""
    known = {option.flag: option for analysis in reversed(analyses) for option in analysis.options.values()}
    names = ", ".join(analysis.name for analysis in analyses)
    values: dict[str, Any] = {}
    remaining = list(arguments)
    while remaining:
        word = remaining.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            raise Refusal(
                f"{word!r} is not an option",
                "an option such as --seed 1",
                f"See `bertology run {analyses[0].name} --help`",
            )
        if name.removeprefix("no-") in known and known[name.removeprefix("no-")].type is bool and not equals:
            values[known[name.removeprefix("no-")].name] = not name.startswith("no-")
            continue
        if name not in known:
            flags = (flag for parameter in context.command.params for flag in parameter.opts)
            shared = [flag.removeprefix("--") for flag in flags if flag.startswith("--")]
            raise unknown_name(f"option of {names}", name, [*known, *shared])
        if not equals:
            if not remaining:
                raise Refusal(f"--{name} has no value", "a value after it", known[name].description)
            value = remaining.pop(0)
        values[known[name].name] = known[name].validate(known[name].parse(value))
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
        bounds = option.range.help_text if option.range is not None else ""
        default = "" if option.default in {"", None} else f" [default: {option.default}]"
        line = f"  --{option.flag:<{width}}  {option.description}{choices}{bounds}{default}"
        lines.append(wrap_line(line, width + 6))
    presets = presets_of(analysis.name)
    if presets:
        lines += ["", "Definitions of papers (--like PAPER):"]
        lines += [wrap_line(f"  {preset.paper}  {preset.describe()}", 6) for preset in presets]
    return "\n".join(lines)
