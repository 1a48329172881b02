"""`bertology claims`: test published findings on a model."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertology.cli import options
from bertology.cli.completion import complete_model
from bertology.errors import Refusal
from bertology.number_ranges import COUNT_OR_ZERO, PROPORTION

if TYPE_CHECKING:
    from rich.text import Text

    from bertology.claims.claim_results import ClaimResult, ClaimResults, ClaimResultsByModel
    from bertology.progress import ProgressFactory

HELP = "Test published findings on a model: each holds, fails, is inconclusive or does not apply."
STYLES = {"holds": "green", "fails": "red", "inconclusive": "yellow", "not applicable": "dim"}

VERDICT_WIDTH = 16
"""Columns of the terminal for the verdict; the answer has the rest."""
INTERVAL_NOTE = "In brackets: 95 % intervals, corrected where one of many heads or layers was chosen."

DEFAULT_AGAINST = "mini-pairs"
"""The fine-tuned model the built-in model is compared with by default."""
QUICK_LIMIT = 60
"""Number of examples with --quick."""


@dataclass(frozen=True)
class ClaimsOptions:
    """The corpus, the model to compare with, and the effort of `claims` and `report`."""

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
        COUNT_OR_ZERO,
        typer.Option(
            metavar="N",
            help="Maximum number of sentences probes are trained on, sampled from the corpus (0: all). [default: 500; "
            "structural probes: all]",
        ),
    ] = None
    claims: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Test the claims of this TOML file, instead of the published ones or, with --paper, beside those.",
        ),
    ] = None
    no_fill: Annotated[
        bool,
        typer.Option(
            "--no-fill",
            help="Leave out claims that need what the corpus lacks (trees, parts of speech ...), instead of testing "
            "them on the built-in corpus of its language.",
        ),
    ] = False
    max_unknown_tokens: Annotated[
        float,
        PROPORTION,
        typer.Option(
            metavar="SHARE",
            help="Refuse a corpus if more than this share of its tokens is unknown to the tokeniser; 1 refuses none.",
        ),
    ] = 0.1
    overflow: Annotated[
        Literal["error", "skip", "truncate", "window"] | None,
        typer.Option(
            help="Inputs longer than the model allows: stop, skip, truncate, or split into overlapping windows. "
            "[default: skip; interventions treat them as in training]"
        ),
    ] = None
    engine: options.EngineName = None
    store: options.Store = None
    no_store: options.NoStore = False
    max_hours: options.MaxHours = options.MAX_HOURS

    def python_arguments(
        self, models: list[str], loading: options.ModelOptions, *, papers: Sequence[str], progress: ProgressFactory
    ) -> dict[str, Any]:
        """The arguments of `bertology.claims`; models and corpora are loaded, and defaults are announced."""
        if self.quick and self.limit is not None:
            raise Refusal("Both --quick and --limit were given", "one of them", "Remove one")
        limit = QUICK_LIMIT if self.quick else self.limit
        reading = options.CorpusOptions(self.format, skip_malformed=self.skip_malformed, limit=limit)
        recordings = options.RecordingOptions(self.recording, self.against_recording, self.untrained_recording).open(
            model=next(iter(models), None), against=self.against, corpus=self.corpus, limit=limit
        )
        texts = None if recordings.recording is not None else reading.read(self.corpus)
        against = self.against
        if not models and against is None and recordings.recording is None:
            against = DEFAULT_AGAINST
            options.print_message(
                f"No --against given; comparing with `{DEFAULT_AGAINST}`, fine-tuned from `{options.DEFAULT_MODEL}`."
            )
        encoder = None if recordings.recording is not None else loading.load_all(models or [None])
        partner = recordings.against or (loading.load(against) if against is not None else None)
        return {
            "encoder": encoder,
            "corpus": texts,
            "against": partner,
            "recording": recordings.recording,
            "untrained": recordings.untrained,
            "papers": papers,
            "claims": self.claims,
            "full": self.full,
            "train_size": self.train_size,
            "limit": limit,
            "fill": not self.no_fill,
            "max_unknown": self.max_unknown_tokens,
            "overflow": self.overflow,
            "store": options.store_directory(self.store, no_store=self.no_store),
            "max_hours": self.max_hours,
            "engine": self.engine,
            "progress": progress,
            "notify": options.print_message,
        }


def claims_command(
    model: Annotated[
        list[str] | None,
        typer.Argument(
            help="Model to analyse (default: the built-in `mini`, compared with `mini-pairs`); several models give one "
            "table of verdicts.",
            autocompletion=complete_model,
        ),
    ] = None,
    arguments: ClaimsOptions = ClaimsOptions(),
    loading: options.ModelOptions = options.ModelOptions(),
    paper: options.Papers = None,
    fail_on: Annotated[
        Literal["fails", "inconclusive"] | None,
        typer.Option(
            help="Exit with status 1 if a claim `fails`, or if one fails or is `inconclusive`: for automated checks."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Test the claims and print the scoreboard."""
    from bertology.claims.claim_results import ClaimResults
    from bertology.claims.run import claims

    with options.progress_bars() as progress:
        models = options.expand_models(model or [])
        results = claims(**arguments.python_arguments(models, loading, papers=paper or (), progress=progress))
    by_model = [results] if isinstance(results, ClaimResults) else list(results.values())
    print_notes(by_model)
    if as_json:
        typer.echo(json.dumps(results.to_json(), ensure_ascii=False))
    elif isinstance(results, ClaimResults):
        print_scoreboard(results)
    else:
        print_verdicts_by_model(results)
    failing = {"fails": {"fails"}, "inconclusive": {"fails", "inconclusive"}}.get(fail_on or "", set[str]())
    if any(result.verdict.outcome in failing for each in by_model for result in each):
        raise typer.Exit(1)


def print_notes(by_model: Sequence[ClaimResults]) -> None:
    """Print on stderr what the verdicts rest on: forward passes, unknown tokens, and corpora that were filled in."""
    from bertology.analyses.run import describe_passes

    passes = [forward_pass for results in by_model for forward_pass in results.passes]
    options.print_message(describe_passes(passes) or "All recordings were in the store.")
    counts = (f"{count}." for results in by_model for count in results.unknown_tokens)
    fillings = (note for results in by_model if (note := results.filling_note()))
    for line in dict.fromkeys([*counts, *fillings]):
        options.print_message(line)


def print_scoreboard(claim_results: ClaimResults) -> None:
    """Print the claims by topic, each with its verdict, its headline and the answer in sentences, then the totals."""
    from rich.console import Console
    from rich.table import Table

    from bertology.claims.claim import TOPICS

    console = Console(highlight=False)
    for topic in TOPICS:
        results = [result for result in claim_results if result.claim.topic == topic]
        if not results:
            continue
        console.print(f"{topic}\n", style="bold underline")
        table = Table(box=None, pad_edge=False, show_header=False, padding=(0, 2, 0, 0))
        table.add_column(width=VERDICT_WIDTH)
        table.add_column(ratio=1)
        for result in results:
            table.add_row(_verdict_text(result), _answer_text(result))
        console.print(table)
    console.print(INTERVAL_NOTE, style="dim")
    console.print(claim_results.summary)


def _verdict_text(result: ClaimResult) -> Text:
    """The outcome, and below it how it relates to the controls."""
    from rich.text import Text

    from bertology.claims.verdict import SPECIFIC

    verdict = result.verdict
    text = Text(verdict.outcome, style=STYLES[verdict.outcome])
    if verdict.qualification:
        text.append(f"\n{verdict.qualification}", style="green" if verdict.specificity in SPECIFIC else "yellow")
    return text


def _answer_text(result: ClaimResult) -> Text:
    """The headline, the answer, and where the finding was published."""
    from rich.text import Text

    claim = result.claim
    text = Text(result.headline, style="dim" if result.verdict.outcome == "not applicable" else "bold")
    text.append(f"\n{result.answer}\n", style="not bold")
    source = f"{claim.short_reference}, {claim.section}"
    text.append(" · ".join(filter(None, [claim.id, " and ".join(result.models), source])), style="not bold dim")
    text.append("\n")
    return text


def print_verdicts_by_model(results: ClaimResultsByModel) -> None:
    """Print the verdicts of several models: a row for each claim, a column for each model, then the totals."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE, pad_edge=False)
    for column in ("paper", "claim", *results):
        table.add_column(column, overflow="fold")
    first = next(iter(results.values()))
    for claim_result, verdicts in zip(first, results.verdicts().values(), strict=True):
        cells = [Text(verdict.label, style=STYLES[verdict.outcome]) for verdict in verdicts.values()]
        table.add_row(claim_result.claim.paper, claim_result.claim.id, *cells)
    console = Console(highlight=False)
    console.print(table)
    for model, claim_results in results.items():
        console.print(f"{model}: {claim_results.summary}", markup=False)
