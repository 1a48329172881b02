"""`bertology claims`: which published findings hold for a model."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertology.cli import inputs

if TYPE_CHECKING:
    from bertology.claims.examine import Finding

HELP = "Judge published findings on a model: holds, fails, inconclusive, or not applicable and why."
STYLES = {"holds": "green", "fails": "red", "inconclusive": "yellow", "not applicable": "dim"}


def claims(
    model: Annotated[str | None, typer.Argument(help="The model; the built-in one if left out.")] = None,
    against: inputs.Against = None,
    corpus: inputs.CorpusName = None,
    format: inputs.Format = None,
    skip_bad: inputs.SkipBad = False,
    limit: inputs.Limit = None,
    paper: Annotated[list[str] | None, typer.Option(help="Only claims of this paper, as in clark2019.")] = None,
    recording: inputs.RecordingDir = None,
    long: inputs.LongPolicy = "skip",
    device: inputs.Device = "cpu",
    store: inputs.Store = None,
    no_store: inputs.NoStore = False,
    allow_pickle: inputs.AllowPickle = False,
    as_json: inputs.Json = False,
) -> None:
    """Run what the claims need and print the scoreboard."""
    from bertology.claims.examine import examine
    from bertology.claims.shelf import all_claims
    from bertology.cli.progress import progress_bars
    from bertology.errors import unknown_name
    from bertology.recording.recorder import Policy

    chosen = all_claims()
    papers = sorted({claim.paper for claim in chosen})
    for one in paper or ():
        if one not in papers:
            raise unknown_name("paper with claims", one, papers)
    if paper:
        chosen = tuple(claim for claim in chosen if claim.paper in paper)
    read = None if recording else inputs.read_corpus(corpus, format, None, skip_bad, limit, "original")
    subject = inputs.subject_of(
        model=model,
        against=against,
        corpus=read,
        recording=recording,
        policy=Policy(long=long),
        device=device,
        dtype="float32",
        allow_pickle=allow_pickle,
        store=store,
        no_store=no_store,
        randomise=True,
    )
    with progress_bars() as progress:
        findings = examine(chosen, subject, progress=progress, notify=lambda line: typer.echo(line, err=True))
    if as_json:
        typer.echo(json.dumps([as_record(finding) for finding in findings], ensure_ascii=False))
    else:
        show(findings)


def as_record(finding: Finding) -> dict[str, Any]:
    """One finding as plain values."""
    claim = finding.claim
    return {
        "id": claim.id,
        "finding": claim.finding,
        "paper": claim.paper,
        "place": claim.place,
        "published": claim.published,
        "analyses": [run.analysis for run in claim.measured_by.values()],
        "verdict": finding.verdict.outcome,
        "why": finding.verdict.why,
    }


def show(findings: list[Finding]) -> None:
    """The scoreboard: verdict, claim, and the numbers behind it."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

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
    counts = Counter(finding.verdict.outcome for finding in findings)
    console.print(", ".join(f"{counts[outcome]} {outcome}" for outcome in STYLES if counts[outcome]))
