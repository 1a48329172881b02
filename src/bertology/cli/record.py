"""`bertology record`: record activations of a model on a corpus, for later analysis without the model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from bertology.cli import options
from bertology.cli.completion import complete_corpus, complete_model
from bertology.errors import Refusal, count_noun
from bertology.number_ranges import COUNT, SEED

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
    output: Annotated[
        str,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Directory, or address such as s3://bucket/folder, to write to."
        ),
    ],
    reading: options.CorpusOptions = options.CorpusOptions(),
    stream: Annotated[
        bool,
        typer.Option("--stream", help="Read and record the corpus in parts: memory does not grow with its size."),
    ] = False,
    part_size: Annotated[
        int | None,
        COUNT,
        typer.Option(metavar="N", help="Examples in a part, with --stream. [default: 5000]"),
    ] = None,
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
    from bertology.engines.engine import open_engine
    from bertology.recording.plan import RecordingConfig
    from bertology.recording.recorder import record
    from bertology.recording.slices import parse_slice, record_slice

    if slice is not None:
        parse_slice(slice)
    folder = options.output_folder(output)
    if part_size is not None and not stream:
        raise Refusal("--part-size was given without --stream", "both or none", "Add --stream, or remove --part-size")
    if slice is not None and stream:
        raise Refusal(
            "--slice was given with --stream",
            "one of them: the parts of a stream are found one after the other",
            "Divide the file, or let the workers of --engine record each part",
        )
    texts = reading.stream(corpus, part_size) if stream else reading.read(corpus)
    encoder = loading.load(model)
    config = RecordingConfig(
        overflow=overflow, max_length=max_length, half_precision=float16, objective=objective, seed=seed
    )
    with open_engine(engine) as opened, options.progress_bars() as progress:
        arguments: dict[str, Any] = {
            "config": config,
            "folder": folder,
            "engine": opened,
            "progress": progress(f"recording {encoder.name}"),
            "notify": options.print_message,
        }
        names = [name.strip() for name in sites.split(",") if name.strip()]
        if slice is not None:
            report = record_slice(encoder, texts, names, slice=slice, **arguments)
            state = "complete" if report.is_complete else "other slices record the rest"
            options.print_message(
                f"{folder}: recorded {count_noun(report.recorded, 'shards')} of slice {slice}; {report.finished} of "
                f"{count_noun(report.shards, 'shards')} recorded, {state}"
            )
            typer.echo(str(folder))
            return
        recording = record(encoder, texts, names, max_hours=max_hours, **arguments)
    if stream:
        options.print_skipped(recording.corpus)
    counts = ", ".join(f"{count} {name}" for name, count in recording.counts.items())
    options.print_message(f"{folder}: {len(recording)} inputs at {', '.join(sorted(recording.sites))} ({counts})")
    typer.echo(str(folder))
