"""`bertology report`: the published findings judged on one model, and the analyses behind them, as an offline page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bertology.cli import inputs
from bertology.errors import Refusal

HELP = "Judge the published findings on a model and write one self-contained page."


def report(
    model: Annotated[str | None, typer.Argument(help="The model; the built-in one if left out.")] = None,
    against: inputs.Against = None,
    corpus: inputs.CorpusName = None,
    format: inputs.Format = None,
    skip_bad: inputs.SkipBad = False,
    limit: inputs.Limit = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("report.html"),
    long: inputs.LongPolicy = "skip",
    device: inputs.Device = "cpu",
    store: inputs.Store = None,
    no_store: inputs.NoStore = False,
    allow_pickle: inputs.AllowPickle = False,
) -> None:
    """Run what the claims need and write the page; what cannot be judged is named on it with its reason."""
    from bertology.analyses import registry
    from bertology.claims.examine import examine
    from bertology.claims.shelf import all_claims
    from bertology.cli.progress import progress_bars
    from bertology.encoder.builtin import BUILT_IN
    from bertology.recording.recorder import Policy
    from bertology.report.page import Section, page

    read = inputs.read_corpus(corpus, format, None, skip_bad, limit, "original")
    subject = inputs.subject_of(
        model=model,
        against=against,
        corpus=read,
        recording=None,
        policy=Policy(long=long),
        device=device,
        dtype="float32",
        allow_pickle=allow_pickle,
        store=store,
        no_store=no_store,
        randomise=True,
    )
    with progress_bars() as progress:
        findings = examine(all_claims(), subject, progress=progress, notify=_tell)
    results = {id(result): result for finding in findings for result in finding.results}
    declared = {result.analysis: registry.get(result.analysis) for result in results.values()}
    sections = [Section(declared[r.analysis].question, declared[r.analysis].about, r) for r in results.values()]
    name = subject.encoder.name if subject.encoder else ""
    built_in = BUILT_IN.get(model or inputs.DEFAULT_MODEL)
    notices = [f"{name}: {built_in.about}"] if built_in else []
    for notice in notices:
        typer.echo(notice, err=True)
    try:
        _write(output, page(f"{name} on {read.name}", notices, findings, sections))
    except OSError as error:
        raise Refusal(
            f"{output} cannot be written ({error.strerror})", "a file in a folder that exists", "Choose another with -o"
        ) from error
    typer.echo(str(output))


def _tell(line: str) -> None:
    typer.echo(line, err=True)


def _write(output: Path, text: str) -> None:
    temporary = output.with_name(f".{output.name}.partial")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(output)
