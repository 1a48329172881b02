"""`bertology claims`: test published findings on a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from bertology.cli import options
from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.analyses.run import RunInputs
    from bertology.claims.claim import Claim
    from bertology.claims.run import ClaimResult, ClaimsReport

HELP = "Test published findings on a model: each holds, fails, is inconclusive or does not apply."
STYLES = {"holds": "green", "fails": "red", "inconclusive": "yellow", "not applicable": "dim"}

DEFAULT_AGAINST = "mini-pairs"
"""The fine-tuned model the built-in model is compared with by default."""
QUICK_LIMIT = 60
"""Number of examples with --quick."""


@dataclass(frozen=True)
class ClaimsOptions:
    """The model, corpus and effort of `claims` and `report`."""

    model: Annotated[
        str | None, typer.Argument(help="Model to analyse (default: the built-in `mini`, compared with `mini-pairs`).")
    ] = None
    against: options.Against = None
    recording: options.RecordingDir = None
    against_recording: options.AgainstRecordingDir = None
    untrained_recording: options.UntrainedRecordingDir = None
    corpus: options.CorpusName = None
    format: options.Format = None
    skip_malformed: options.SkipMalformed = False
    limit: options.Limit = None
    quick: Annotated[
        bool, typer.Option("--quick", help=f"Use at most {QUICK_LIMIT} examples of the corpus, for a first look.")
    ] = False
    full: Annotated[
        bool, typer.Option("--full", help="Also test the claims that take minutes (fine-tuning, pruning, attacks).")
    ] = False
    train_size: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Maximum number of sentences probes are trained on, sampled from the corpus (0: all). [default: 500; "
            "structural probes: all]",
        ),
    ] = None
    overflow: options.OverflowOption = "skip"
    device: options.Device = "cpu"
    store: options.Store = None
    no_store: options.NoStore = False
    allow_pickle: options.AllowPickle = False


def claims_command(
    arguments: ClaimsOptions = ClaimsOptions(),
    paper: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY", help="Only claims of this paper, such as clark2019; may be repeated."),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Test the claims and print the scoreboard."""
    run = run_claims(arguments, paper)
    if as_json:
        from bertology.views.report.export import as_record

        typer.echo(json.dumps([as_record(result) for result in run.report.results], ensure_ascii=False))
    else:
        print_scoreboard(run.report.results)


def print_scoreboard(claim_results: Sequence[ClaimResult]) -> None:
    """Print each claim with its verdict and the numbers behind it, then the totals."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from bertology.claims.verdict import SPECIFIC, count_verdicts

    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(max_width=16)
    table.add_column(ratio=1)
    for result in claim_results:
        outcome, claim = result.verdict.outcome, result.claim
        text = Text(claim.statement)
        models = f" · {' and '.join(result.models)}" if result.models else ""
        published = f"published ({claim.paper}, {claim.section}): {claim.published_value}"
        text.append(f"\n{claim.id}{models} · {published}", style="dim")
        text.append(f"\n{result.verdict.reason}\n", style="dim" if outcome == "not applicable" else "")
        verdict = Text(outcome, style=STYLES[outcome])
        if result.verdict.qualification:
            is_specific = result.verdict.specificity in SPECIFIC
            verdict.append(f"\n{result.verdict.qualification}", style="green" if is_specific else "yellow")
        table.add_row(verdict, text)
    console = Console()
    console.print(table)
    console.print(count_verdicts([result.verdict for result in claim_results]))


@dataclass(frozen=True)
class ClaimsRun:
    """The inputs of a run and its report."""

    inputs: RunInputs
    report: ClaimsReport


def select_claims(arguments: ClaimsOptions, papers: Sequence[str] | None) -> tuple[Claim, ...]:
    """The claims of these papers, or all; slow claims only with --full or if their paper is named."""
    from bertology.claims.claim import all_claims
    from bertology.errors import unknown_name

    known = sorted({claim.paper for claim in all_claims()})
    for paper in papers or ():
        if paper not in known:
            raise unknown_name("paper with claims", paper, known)
    selected = [
        claim for claim in all_claims() if (claim.paper in papers if papers else arguments.full or not claim.slow)
    ]
    if arguments.train_size is None:
        return tuple(selected)
    return tuple(claim.with_train_size(arguments.train_size) for claim in selected)


def run_claims(arguments: ClaimsOptions, papers: Sequence[str] | None = None) -> ClaimsRun:
    """Run the analyses the claims need, with progress bars, and judge the claims."""
    from bertology.analyses.run import describe_passes
    from bertology.claims.run import judge_claims
    from bertology.recording.plan import RecordingConfig

    claims = select_claims(arguments, papers)
    if arguments.quick and arguments.limit is not None:
        raise Refusal("Both --quick and --limit were given", "one of them", "Remove one")
    limit = QUICK_LIMIT if arguments.quick else arguments.limit
    reading = options.CorpusOptions(arguments.format, skip_malformed=arguments.skip_malformed, limit=limit)
    recordings = options.RecordingOptions(
        arguments.recording, arguments.against_recording, arguments.untrained_recording
    ).open(model=arguments.model, against=arguments.against, corpus=arguments.corpus, limit=limit)
    texts = None if arguments.recording else reading.read(arguments.corpus)
    against = arguments.against
    if arguments.model is None and against is None and arguments.recording is None:
        against = DEFAULT_AGAINST
        options.print_message(
            f"No --against given; comparing with `{DEFAULT_AGAINST}`, fine-tuned from `{options.DEFAULT_MODEL}`."
        )
    inputs = options.build_run_inputs(
        model=arguments.model,
        against=against,
        corpus=texts,
        recordings=recordings,
        config=RecordingConfig(overflow=arguments.overflow),
        loading=options.ModelOptions(arguments.device, allow_pickle=arguments.allow_pickle),
        store=arguments.store,
        no_store=arguments.no_store,
    )
    with options.progress_bars() as progress:
        report = judge_claims(claims, inputs, progress=progress, notify=options.print_message)
    options.print_message(describe_passes(report.passes) or "All recordings were in the store.")
    return ClaimsRun(inputs, report)
