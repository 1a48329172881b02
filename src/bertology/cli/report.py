"""`bertology report`: every analysis on one model and corpus, as one page that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bertology.cli import inputs

HELP = "Run everything on a model and write one self-contained page."


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
    """Run what can be run and write the page; what cannot be run is named on it with its reason."""
    from bertology.analyses import registry
    from bertology.analyses.run import run_all
    from bertology.cli.progress import progress_bars
    from bertology.encoder.builtin import BUILT_IN
    from bertology.errors import Refusal
    from bertology.recording.recorder import Policy
    from bertology.results.page import Section, page

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
    analyses = {analysis.name: analysis for analysis in registry.load_all()}
    refused: dict[str, Refusal] = {}
    with progress_bars() as progress:
        results = run_all(
            [(analysis, {}) for analysis in analyses.values()],
            subject,
            progress=progress,
            notify=_tell,
            refused=refused,
        )
    sections = [Section(analyses[r.analysis].question, analyses[r.analysis].about, r) for r in results]
    name = subject.encoder.name if subject.encoder else ""
    built_in = BUILT_IN.get(model or inputs.DEFAULT_MODEL)
    notices = [f"{name}: {built_in.about}"] if built_in else []
    for notice in notices:
        typer.echo(notice, err=True)
    try:
        _write(output, page(f"{name} on {read.name}", notices, sections, {n: str(r) for n, r in refused.items()}))
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
