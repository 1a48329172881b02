"""`bertology record`: record activations of a model on a corpus, for later analysis without the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from bertology.cli import options
from bertology.cli.completion import complete_corpus, complete_model
from bertology.errors import count_noun
from bertology.number_ranges import SEED

HELP = "Record activations of a model on a corpus; an interrupted recording resumes."


def record_command(
    model: Annotated[
        str,
        typer.Argument(
            help="Built-in name, directory in Hugging Face format, or hub name.", autocompletion=complete_model
        ),
    ],
    corpus: Annotated[str, typer.Argument(help="Built-in name, file or directory.", autocompletion=complete_corpus)],
    sites: Annotated[
        str, typer.Option(metavar="SITES", help="Sites to record, comma-separated; see `bertology list sites`.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Directory to write to.")],
    reading: options.CorpusOptions = options.CorpusOptions(),
    overflow: options.OverflowOption = "error",
    max_length: options.MaxLength = None,
    float16: Annotated[
        bool, typer.Option("--float16", help="Store raw sites in float16, which halves their size.")
    ] = False,
    objective: options.Objective = "auto",
    seed: Annotated[
        int, SEED, typer.Option(metavar="N", help="Random seed for masking tokens (gradient sites only).")
    ] = 0,
    slice: Annotated[
        str | None,
        typer.Option(
            metavar="K/N",
            help="Record only every N-th shard, from the K-th on: N processes with K from 1 to N, on any machines that "
            "share the directory, make the whole recording.",
        ),
    ] = None,
    engine: options.EngineName = None,
    loading: options.ModelOptions = options.ModelOptions(),
    max_hours: options.MaxHours = options.MAX_HOURS,
) -> None:
    """Record, and print the directory."""
    from bertology.recording.plan import RecordingConfig
    from bertology.recording.recorder import record
    from bertology.recording.slices import parse_slice, record_slice

    texts = reading.read(corpus)
    encoder = loading.load(model)
    config = RecordingConfig(
        overflow=overflow, max_length=max_length, half_precision=float16, objective=objective, seed=seed
    )
    with open_engine(engine) as opened, options.progress_bars() as progress:
        arguments: dict[str, Any] = {
            "config": config,
            "folder": output,
            "engine": opened,
            "progress": progress(f"recording {encoder.name}"),
            "notify": options.print_message,
        }
        names = [name.strip() for name in sites.split(",") if name.strip()]
        if slice is not None:
            report = record_slice(encoder, texts, names, slice=slice, **arguments)
            state = "complete" if report.is_complete else "other slices record the rest"
            options.print_message(
                f"{output}: recorded {count_noun(report.recorded, 'shards')} of slice {slice}; {report.finished} of "
                f"{count_noun(report.shards, 'shards')} are there, {state}"
            )
            typer.echo(str(output))
            return
        recording = record(encoder, texts, names, **arguments)
    counts = ", ".join(f"{count} {name}" for name, count in recording.counts.items())
    options.print_message(f"{output}: {len(recording)} inputs at {', '.join(sorted(recording.sites))} ({counts})")
    typer.echo(str(output))
