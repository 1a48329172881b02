"""`bertology report`: the published findings judged on one model, and the analyses behind them, as an offline page."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertology.cli import inputs, judging
from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.report.content import Content

HELP = "Judge the published findings on a model and write one self-contained page."


def report(
    model: judging.Model = None,
    against: inputs.Against = None,
    corpus: inputs.CorpusName = None,
    format: inputs.Format = None,
    skip_bad: inputs.SkipBad = False,
    limit: inputs.Limit = None,
    quick: judging.Quick = False,
    full: judging.Full = False,
    train_limit: judging.TrainLimit = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write Markdown instead of a page.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write every number as JSON instead of a page.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write; report.html.")
    ] = None,
    long: inputs.LongPolicy = "skip",
    device: inputs.Device = "cpu",
    store: inputs.Store = None,
    no_store: inputs.NoStore = False,
    allow_pickle: inputs.AllowPickle = False,
) -> None:
    """Run what the claims need and write the page; what cannot be judged is named on it with its reason."""
    from bertology.report.page import page
    from bertology.report.text import as_json as json_of
    from bertology.report.text import as_markdown
    from bertology.results.whole_file import require_place, write_whole

    if markdown and as_json:
        raise Refusal("Both --markdown and --json were given", "one of them", "Write two reports: passes are shared")
    write, suffix = (as_markdown, ".md") if markdown else (json_of, ".json") if as_json else (page, ".html")
    file = output or Path(f"report{suffix}")
    require_place(file)
    done = judging.judged(
        judging.chosen(None, full=full, train_limit=train_limit),
        model=model,
        against=against,
        corpus=corpus,
        format=format,
        skip_bad=skip_bad,
        limit=limit,
        quick=quick,
        recording=None,
        long=long,
        device=device,
        store=store,
        no_store=no_store,
        allow_pickle=allow_pickle,
    )
    typer.echo(str(write_whole(file, write(content_of(done, full=full)).encode())))


def content_of(done: judging.Judged, *, full: bool) -> Content:
    """What the report says of the verdicts and of every analysis they rest on."""
    from bertology.analyses import registry
    from bertology.claims.evidence import evidence_for
    from bertology.claims.shelf import all_claims
    from bertology.encoder.builtin import BUILT_IN
    from bertology.report.content import Content, Section
    from bertology.report.inside import inside

    subject = done.subject
    results = {id(result): result for finding in done.findings for result in finding.results}
    declared = {result.analysis: registry.get(result.analysis) for result in results.values()}
    sections = [Section(declared[r.analysis].question, declared[r.analysis].about, r) for r in results.values()]
    models = [encoder.name for encoder in (subject.encoder, subject.against) if encoder is not None]
    notices = [f"{name}: {BUILT_IN[name].about}" for name in models if name in BUILT_IN]
    left = [] if full else [claim.id for claim in all_claims() if claim.slow]
    if left:
        notices.append(f"{len(left)} more findings take minutes and were not judged; --full judges them too.")
    corpus = subject.corpus.name if subject.corpus is not None else ""
    views = ""
    if subject.encoder is not None and subject.corpus is not None:
        views = inside(subject.encoder, subject.corpus, list(results.values()))
    judging.tell("looking for the texts behind the verdicts")
    texts = evidence_for(done.findings, subject)
    return Content(
        f"{' and '.join(models)} on {corpus}",
        notices,
        done.findings,
        sections,
        done.passes,
        views,
        done.seconds,
        texts,
        left,
    )
