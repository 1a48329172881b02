"""`bertology record`: keep what a model does on a corpus at named sites, to analyse later without the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bertology.cli import inputs

HELP = "Record a model on a corpus at named sites into a folder; an interrupted recording goes on where it stopped."


def record(
    model: Annotated[str, typer.Argument(help="The model.")],
    corpus: Annotated[str, typer.Argument(help="The corpus.")],
    sites: Annotated[
        str, typer.Option(metavar="SITES", help="Sites, separated by commas; `bertology list sites` names them.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to record into.")],
    format: inputs.Format = None,
    format_option: inputs.FormatOption = None,
    skip_bad: inputs.SkipBad = False,
    limit: inputs.Limit = None,
    spacing: inputs.Spacing = "original",
    long: inputs.LongPolicy = "error",
    max_pieces: inputs.MaxPieces = None,
    half: Annotated[bool, typer.Option("--half", help="Keep raw sites in float16, half the size.")] = False,
    objective: inputs.Objective = "auto",
    seed: inputs.Seed = 0,
    device: inputs.Device = "cpu",
    dtype: inputs.Precision = "float32",
    allow_pickle: inputs.AllowPickle = False,
) -> None:
    """Record, and say what was recorded."""
    from bertology.analyses import registry
    from bertology.cli.progress import progress_bars
    from bertology.encoder.load import load
    from bertology.recording.recorder import Policy
    from bertology.recording.recorder import record as record_sites

    registry.load_all()
    read = inputs.read_corpus(corpus, format, format_option, skip_bad, limit, spacing)
    encoder = load(model, device=device, dtype=dtype, allow_pickle=allow_pickle)
    policy = Policy(long=long, max_pieces=max_pieces, half=half, objective=objective, seed=seed)
    with progress_bars() as progress:
        recording = record_sites(
            encoder,
            read,
            [name.strip() for name in sites.split(",") if name.strip()],
            policy=policy,
            folder=output,
            progress=progress(f"recording {encoder.name}"),
            notify=lambda line: typer.echo(line, err=True),
        )
    counts = ", ".join(f"{count} {name}" for name, count in recording.counts.items())
    typer.echo(f"{output}: {len(recording)} inputs at {', '.join(sorted(recording.sites))} ({counts})", err=True)
    typer.echo(str(output))
