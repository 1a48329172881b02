"""`bertology atlas`: judge findings for many models and write one page of what holds where."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertology.cli import options
from bertology.cli.completion import complete_analysis, complete_model
from bertology.errors import Refusal, count_noun
from bertology.number_ranges import COUNT_OR_ZERO, PROPORTION

if TYPE_CHECKING:
    from bertology.atlas.content import Atlas

HELP = "Test published findings on many models and write one page of what holds where."


def atlas_command(
    model: Annotated[
        list[str] | None,
        typer.Argument(
            help="Models to judge, such as mini, random:mini (untrained), 'mini@10%', a directory, a hub name, or a "
            "pattern such as 'runs/checkpoint-*'.",
            autocompletion=complete_model,
        ),
    ] = None,
    corpus: options.CorpusName = None,
    format: options.Format = None,
    skip_malformed: options.SkipMalformed = False,
    limit: options.Limit = None,
    paper: options.Papers = None,
    claims: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Test the claims of this TOML file, instead of the published ones or, with --paper, beside those.",
        ),
    ] = None,
    add: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Add the models of an earlier atlas (a file of --json) without loading them; may be repeated.",
        ),
    ] = None,
    without: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ANALYSIS",
            help="Leave out the claims that this analysis tests, such as probes/pipeline; may be repeated.",
            autocompletion=complete_analysis,
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Also test the claims that take minutes to an hour a model: fine-tuning, freezing, pruning and "
            "ablation, attacks, learning curves.",
        ),
    ] = False,
    train_size: Annotated[
        int | None,
        COUNT_OR_ZERO,
        typer.Option(metavar="N", help="Maximum number of sentences probes are trained on (0: all)."),
    ] = None,
    no_fill: Annotated[
        bool,
        typer.Option("--no-fill", help="Leave out claims that need what the corpus lacks (trees, tags ...)."),
    ] = False,
    max_unknown_tokens: Annotated[
        float,
        PROPORTION,
        typer.Option(
            metavar="SHARE",
            help="Leave out a model if more than this share of the tokens is unknown to its tokeniser.",
        ),
    ] = 0.1,
    overflow: Annotated[
        Literal["error", "skip", "truncate", "window"] | None,
        typer.Option(help="Inputs longer than a model allows: stop, skip, truncate, or split into windows."),
    ] = None,
    engine: options.EngineName = None,
    loading: options.ModelOptions = options.ModelOptions(),
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON with every number instead of HTML.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write. [default: atlas.html]")
    ] = None,
    store: options.Store = None,
    no_store: options.NoStore = False,
    max_hours: options.MaxHours = options.MAX_HOURS,
) -> None:
    """Judge the models, each once, and write the atlas; models that cannot be judged are named with the reason."""
    from bertology.atlas.build import atlas

    file = output or Path("atlas.json" if as_json else "atlas.html")
    if as_json and file.suffix != ".json":
        raise Refusal(f"--json was given, and {file.name} does not end in .json", "a .json file", "Change -o")
    reading = options.CorpusOptions(format, skip_malformed=skip_malformed, limit=limit)
    with options.progress_bars() as progress:
        content = atlas(
            list(options.expand_models(model or (), keep_repeats=True)),
            reading.read(corpus),
            add=add or (),
            output=file,
            papers=paper or (),
            claims=claims,
            without=without or (),
            full=full,
            train_size=train_size,
            limit=limit,
            fill=not no_fill,
            max_unknown=max_unknown_tokens,
            overflow=overflow,
            device=loading.device,
            dtype=loading.dtype,
            allow_pickle=loading.allow_pickle,
            store=options.store_directory(store, no_store=no_store),
            engine=engine,
            max_hours=max_hours,
            progress=progress,
            notify=options.print_message,
        )
    _print_summary(content)
    typer.echo(str(file))
    if any(each.is_failure for each in content.not_judged):
        raise typer.Exit(1)


def _print_summary(content: Atlas) -> None:
    """Print on stderr what was judged, what was left out, and what the models agree on."""
    for each in content.not_judged:
        options.print_message(f"{each.name} {'failed:' if each.is_failure else 'could not be judged.'} {each.reason}")
    for message in content.messages:
        options.print_message(message)
    counts = [(kind, sum(a.agreement == kind for a in content.agreements)) for kind in ("universal", "differs")]
    significant = sum(difference.is_significant for difference in content.differences)
    options.print_message(
        f"{count_noun(len(content), 'models')}, {count_noun(len(content.claims), 'findings')}: "
        f"{', '.join(f'{n} {kind}' for kind, n in counts)}; {significant} of {len(content.differences):,} differences "
        "between two models remain after Holm's correction."
    )
