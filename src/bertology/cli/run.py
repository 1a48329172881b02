"""`bertology run`: one analysis on a model and a corpus, or on a recording."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertology.cli import inputs
from bertology.cli.columns import broken
from bertology.errors import Refusal, unknown_name

if TYPE_CHECKING:
    from bertology.analyses.declaration import Analysis

HELP = "Run one analysis. `bertology run ANALYSIS --help` shows its own options."
CONTEXT: dict[str, Any] = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def run(
    context: typer.Context,
    analysis: Annotated[str | None, typer.Argument(help="Its name, as in `bertology list analyses`.")] = None,
    model: inputs.Model = None,
    against: inputs.Series = None,
    corpus: inputs.CorpusName = None,
    format: inputs.Format = None,
    format_option: inputs.FormatOption = None,
    skip_bad: inputs.SkipBad = False,
    limit: inputs.Limit = None,
    spacing: inputs.Spacing = "original",
    recording: inputs.RecordingDir = None,
    long: inputs.LongPolicy = "error",
    max_pieces: inputs.MaxPieces = None,
    objective: inputs.Objective = "auto",
    device: inputs.Device = "cpu",
    dtype: inputs.Precision = "float32",
    allow_pickle: inputs.AllowPickle = False,
    store: inputs.Store = None,
    no_store: inputs.NoStore = False,
    no_random: Annotated[bool, typer.Option("--no-random", help="Leave out the `random:MODEL` baseline.")] = False,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also save the result's figure: a file that ends in .svg, .png or .html."),
    ] = None,
    theme: Annotated[Literal["light", "dark"], typer.Option(help="The paper of the figure.")] = "light",
    as_json: inputs.Json = False,
    help: Annotated[bool, typer.Option("--help", "-h", help="Show this, or the analysis's own options.")] = False,
) -> None:
    """Run one analysis and print its result."""
    from bertology.analyses import registry

    if help:
        typer.echo(context.get_help())
        if analysis is not None:
            typer.echo(own_help(registry.get(analysis)))
        raise typer.Exit
    if analysis is None:
        raise Refusal(
            "No analysis is named",
            "a name, as in `bertology run attention/entropy`",
            "`bertology list analyses` shows all, `bertology run --help` the options",
        )
    declared = registry.get(analysis)
    options = own_options(declared, context.args, context)
    if figure is not None:
        from bertology.results.charts.files import require_place

        require_place(figure)

    from bertology.analyses.run import run as run_declared
    from bertology.analyses.series import run_series
    from bertology.cli.progress import progress_bars
    from bertology.cli.terminal import show
    from bertology.recording.recorder import Policy

    read = None
    if recording is None:
        read = inputs.read_corpus(corpus, format, format_option, skip_bad, limit, spacing)
    others = inputs.series_of(against or [])
    subject = inputs.subject_of(
        model=model,
        against=others[0] if others else None,
        corpus=read,
        recording=recording,
        policy=Policy(long=long, max_pieces=max_pieces, objective=objective),
        device=device,
        dtype=dtype,
        allow_pickle=allow_pickle,
        store=store,
        no_store=no_store,
        randomise=not no_random,
    )
    with progress_bars() as progress:
        if len(others) > 1:
            more = (inputs.loaded(name, device, dtype, allow_pickle) for name in others[1:])
            result = run_series(declared, subject, others, more, options, progress=progress, notify=_tell)
        else:
            result = run_declared(declared, subject, options, progress=progress, notify=_tell)
    if figure is not None:
        typer.echo(f"figure: {result.save(figure, theme)}", err=True)
    if as_json:
        typer.echo(json.dumps(result.to_json(), ensure_ascii=False))
    else:
        show(result, declared)


def _tell(line: str) -> None:
    typer.echo(line, err=True)


def own_options(analysis: Analysis, words: list[str], context: typer.Context) -> dict[str, Any]:
    """The analysis's own options among the words the command line did not know."""
    known = {option.flag: option for option in analysis.options.values()}
    given: dict[str, Any] = {}
    remaining = list(words)
    while remaining:
        word = remaining.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--"):
            raise Refusal(
                f"{word!r} stands alone", "an option such as --seed 1", f"See `bertology run {analysis.name} --help`"
            )
        if name.removeprefix("no-") in known and known[name.removeprefix("no-")].kind is bool and not equals:
            given[known[name.removeprefix("no-")].name] = not name.startswith("no-")
            continue
        if name not in known:
            flags = (flag for parameter in context.command.params for flag in parameter.opts)
            shared = [flag.removeprefix("--") for flag in flags if flag.startswith("--")]
            raise unknown_name(f"option of {analysis.name}", name, [*known, *shared])
        if not equals:
            if not remaining:
                raise Refusal(f"--{name} has no value", "a value after it", known[name].about)
            value = remaining.pop(0)
        given[known[name].name] = known[name].parse(value)
    return given


def own_help(analysis: Analysis) -> str:
    """What an analysis is and the options it takes."""
    about = [broken(" ".join(paragraph.split())) for paragraph in analysis.about.split("\n\n")]
    lines = [
        "",
        broken(f"{analysis.name} (version {analysis.version}): {analysis.question}"),
        "",
        "\n\n".join(about),
        "",
    ]
    lines.append(broken(f"Special tokens: {analysis.special}."))
    if analysis.layers:
        lines.append(broken(f"Needs annotation: {', '.join(analysis.layers)}."))
    if analysis.options:
        lines += ["", "Options of this analysis:"]
    for option in analysis.options.values():
        kind = " | ".join(option.choices) or getattr(option.kind, "__name__", str(option.kind))
        lines.append(broken(f"  --{option.flag} ({kind}, default {option.default}): {option.about}", 6))
    return "\n".join(lines)
