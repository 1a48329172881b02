"""`bertology report`: test published findings on a model and write an HTML report that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bertology.cli import claims, options
from bertology.cli.completion import complete_model
from bertology.errors import Refusal

HELP = "Test published findings on a model and write a self-contained HTML report."


def report_command(
    model: Annotated[
        str | None,
        typer.Argument(
            help="Model to analyse (default: the built-in `mini`, compared with `mini-pairs`).",
            autocompletion=complete_model,
        ),
    ] = None,
    arguments: claims.ClaimsOptions = claims.ClaimsOptions(),
    loading: options.ModelOptions = options.ModelOptions(),
    markdown: Annotated[bool, typer.Option("--markdown", help="Write Markdown instead of HTML.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON with every number instead of HTML.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write. [default: report.html]")
    ] = None,
) -> None:
    """Test the claims and write the report; claims that do not apply are listed with the reason.

    The exit status is 1 if an analysis of a plug-in failed; the report says why.
    """
    from bertology.atomic_files import check_writable
    from bertology.views.report.build import write_report

    if markdown and as_json:
        raise Refusal(
            "Both --markdown and --json were given", "one of them", "Write two reports: they share their forward passes"
        )
    format, suffix = ("markdown", ".md") if markdown else ("json", ".json") if as_json else ("html", ".html")
    file = output or Path(f"report{suffix}")
    check_writable(file)
    with options.progress_bars() as progress:
        prepared = arguments.python_arguments([] if model is None else [model], loading, papers=(), progress=progress)
        content = write_report(**prepared, output=file, format=format)
    typer.echo(str(file))
    if content.failures:
        raise typer.Exit(1)
