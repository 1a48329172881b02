"""What `claims` and `report` share: which findings are judged, of which models, on which texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertology.cli import inputs
from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.analyses.run import Subject
    from bertology.claims.claim import Claim
    from bertology.claims.examine import Finding
    from bertology.recording.policy import Long

PARTNER = "mini-pairs"
"""What the built-in model is compared with where no model is named."""
QUICK = 60
"""So many items are enough for a first look."""

Model = Annotated[str | None, typer.Argument(help="The model; the built-in one and its partner if left out.")]
Quick = Annotated[bool, typer.Option("--quick", help=f"A first look: at most {QUICK} items of the corpus.")]
Full = Annotated[
    bool, typer.Option("--full", help="Findings that take minutes as well: fine-tuning, pruning, attacks.")
]
TrainLimit = Annotated[
    int | None,
    typer.Option(
        min=0, metavar="N", help="Probes train on at most N sentences drawn from the corpus (500 as it is); 0 for all."
    ),
]


@dataclass(frozen=True)
class Judged:
    """The verdicts, what they were given on, the passes over the texts that it took, and how long all of it took."""

    subject: Subject
    findings: list[Finding]
    passes: list[str]
    seconds: dict[str, float]


def chosen(papers: Sequence[str] | None, *, full: bool, train_limit: int | None = None) -> tuple[Claim, ...]:
    """The claims of these papers, or all; those that take minutes only where everything, or a paper, is asked for.

    With `train_limit` their probes train on so many sentences, and not on as many as the claims say.
    """
    from bertology.claims.shelf import all_claims
    from bertology.errors import unknown_name

    every = all_claims()
    known = sorted({claim.paper for claim in every})
    for one in papers or ():
        if one not in known:
            raise unknown_name("paper with claims", one, known)
    wanted = [claim for claim in every if (claim.paper in papers if papers else full or not claim.slow)]
    return tuple(wanted if train_limit is None else (claim.learning_from(train_limit) for claim in wanted))


def judged(
    claims: Sequence[Claim],
    *,
    model: str | None,
    against: str | None,
    corpus: str | None,
    format: str | None,
    skip_bad: bool,
    limit: int | None,
    quick: bool,
    recording: Path | None,
    long: Long,
    device: str,
    store: Path | None,
    no_store: bool,
    allow_pickle: bool,
) -> Judged:
    """Run what the claims need, telling how far it is, and judge them."""
    from bertology.claims.examine import examine
    from bertology.cli.progress import progress_bars
    from bertology.recording.recorder import Policy

    if quick and limit is not None:
        raise Refusal("Both --quick and --limit were given", "one of them", "Leave one out")
    most = QUICK if quick else limit
    read = None if recording else inputs.read_corpus(corpus, format, None, skip_bad, most, "original")
    if model is None and against is None and recording is None:
        against = PARTNER
        typer.echo(f"no --against given: comparing with {PARTNER!r}, its fine-tuned partner", err=True)
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
    passes: list[str] = []
    seconds: dict[str, float] = {}
    with progress_bars() as progress:
        findings = examine(claims, subject, progress=progress, notify=tell, passes=passes, seconds=seconds)
    tell(f"{len(passes)} passes over the texts: {'; '.join(passes) or 'everything was recorded before'}")
    return Judged(subject, findings, passes, seconds)


def tell(line: str) -> None:
    """A line for the user that is no result."""
    typer.echo(line, err=True)
