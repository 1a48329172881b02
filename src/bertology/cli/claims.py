"""`bertology claims`: which published findings hold for a model."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from bertology.cli import inputs, judging

if TYPE_CHECKING:
    from bertology.claims.examine import Finding

HELP = "Judge published findings on a model: holds, fails, inconclusive, or not applicable and why."
STYLES = {"holds": "green", "fails": "red", "inconclusive": "yellow", "not applicable": "dim"}


def claims(
    model: judging.Model = None,
    against: inputs.Against = None,
    corpus: inputs.CorpusName = None,
    format: inputs.Format = None,
    skip_bad: inputs.SkipBad = False,
    limit: inputs.Limit = None,
    paper: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Only claims of this paper, as in clark2019; may be given again."),
    ] = None,
    quick: judging.Quick = False,
    full: judging.Full = False,
    train_limit: judging.TrainLimit = None,
    recording: inputs.RecordingDir = None,
    long: inputs.LongPolicy = "skip",
    device: inputs.Device = "cpu",
    store: inputs.Store = None,
    no_store: inputs.NoStore = False,
    allow_pickle: inputs.AllowPickle = False,
    as_json: inputs.Json = False,
) -> None:
    """Run what the claims need and print the scoreboard."""
    done = judging.judged(
        judging.chosen(paper, full=full, train_limit=train_limit),
        model=model,
        against=against,
        corpus=corpus,
        format=format,
        skip_bad=skip_bad,
        limit=limit,
        quick=quick,
        recording=recording,
        long=long,
        device=device,
        store=store,
        no_store=no_store,
        allow_pickle=allow_pickle,
    )
    if as_json:
        from bertology.report.text import as_record

        typer.echo(json.dumps([as_record(finding) for finding in done.findings], ensure_ascii=False))
    else:
        show(done.findings)


def show(findings: list[Finding]) -> None:
    """The scoreboard: verdict, claim, and the numbers behind it."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from bertology.claims.judge import tally

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for finding in findings:
        outcome, claim = finding.verdict.outcome, finding.claim
        text = Text(claim.finding)
        text.append(f"\n{claim.id} · {claim.paper}, {claim.place}: {claim.published}", style="dim")
        text.append(f"\n{finding.verdict.why}\n", style="dim" if outcome == "not applicable" else "")
        table.add_row(Text(outcome, style=STYLES[outcome]), text)
    console = Console()
    console.print(table)
    console.print(tally(finding.verdict.outcome for finding in findings))
