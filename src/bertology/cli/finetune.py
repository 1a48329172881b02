"""`bertology finetune`: teach a model a task, and write it as a directory that any tool loads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertology.cli import inputs

if TYPE_CHECKING:
    from bertology.corpus.corpus import Corpus

HELP = "Fine-tune a model on a task; an interrupted run goes on where it stopped."


def finetune(
    model: Annotated[str, typer.Argument(help="The model.")],
    data: Annotated[str, typer.Argument(help="A corpus annotated for the task.")],
    task: Annotated[
        Literal["sentence", "pair", "token", "dependency", "qa", "choice"],
        typer.Option(help="What to learn: a class of a text or pair, tags, trees, answers, or a choice."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write the model to.")],
    format: inputs.Format = None,
    format_option: inputs.FormatOption = None,
    skip_bad: inputs.SkipBad = False,
    limit: inputs.Limit = None,
    spacing: inputs.Spacing = "original",
    dev: Annotated[
        str | None, typer.Option(metavar="CORPUS", help="A corpus that decides which epoch is kept.")
    ] = None,
    dev_share: Annotated[
        float, typer.Option(metavar="X", help="Without --dev: the share of the data that decides.")
    ] = 0.1,
    test: Annotated[str | None, typer.Option(metavar="CORPUS", help="A corpus to judge the finished model by.")] = None,
    layer: Annotated[
        str | None,
        typer.Option(metavar="LAYER", help="For --task token: tags, pos, entities, chunks, xpos or relations."),
    ] = None,
    seed: Annotated[
        int, typer.Option(metavar="N", help="Seed of the head, of dropout and of the order of the items.")
    ] = 0,
    epochs: Annotated[int, typer.Option(min=1, metavar="N", help="Passes over the data, at most.")] = 3,
    patience: Annotated[
        int, typer.Option(min=1, metavar="N", help="Stop after so many epochs without a better score.")
    ] = 2,
    size: Annotated[int, typer.Option(min=1, metavar="N", help="Examples in a batch.")] = 16,
    rate: Annotated[
        float | None,
        typer.Option(min=0.0, metavar="X", help="The highest learning rate; by the model's width if left out."),
    ] = None,
    warm_up: Annotated[
        float, typer.Option(min=0.0, metavar="X", max=1.0, help="Share of the steps over which it rises.")
    ] = 0.1,
    decay: Annotated[float, typer.Option(min=0.0, metavar="X", help="Weight decay of the matrices.")] = 0.01,
    precision: Annotated[
        Literal["auto", "float32", "bfloat16"], typer.Option(help="auto: bfloat16 on graphics cards that have it.")
    ] = "auto",
    max_pieces: inputs.MaxPieces = None,
    freeze: Annotated[
        int | None, typer.Option(min=0, metavar="K", help="Keep the embeddings and the first K blocks as they are.")
    ] = None,
    truncate: Annotated[int | None, typer.Option(min=0, metavar="K", help="Drop the blocks above the first K.")] = None,
    reinitialise: Annotated[int, typer.Option(min=0, metavar="K", help="Begin the top K blocks afresh.")] = 0,
    random: Annotated[bool, typer.Option("--random", help="Begin all weights afresh: the control.")] = False,
    keep_checkpoints: Annotated[
        bool, typer.Option("--keep-checkpoints", help="Also keep the model after each epoch, in checkpoint-STEP.")
    ] = False,
    device: inputs.Device = "cpu",
    allow_pickle: inputs.AllowPickle = False,
    as_json: inputs.Json = False,
) -> None:
    """Fine-tune, and print the folder of the model, or with --json its record."""
    from bertology.cli.progress import progress_bars
    from bertology.encoder.load import load
    from bertology.encoder.variant import Variant
    from bertology.finetuning.finetune import finetune as teach
    from bertology.finetuning.loop import Recipe

    def read(name: str, limit: int | None = None) -> Corpus:
        return inputs.read_corpus(name, format, format_option, skip_bad, limit, spacing)

    corpora = read(data, limit), *(None if name is None else read(name) for name in (dev, test))
    with progress_bars() as progress:
        made = teach(
            load(model, device=device, allow_pickle=allow_pickle),
            corpora[0],
            task,
            output,
            dev=corpora[1],
            dev_share=dev_share,
            test=corpora[2],
            recipe=Recipe(seed, epochs, size, rate, warm_up, decay=decay, patience=patience, precision=precision),
            variant=Variant(freeze, truncate, reinitialise, random),
            layer=layer,
            max_pieces=max_pieces,
            keep_checkpoints=keep_checkpoints,
            progress=progress,
            notify=lambda line: typer.echo(line, err=True),
        )
    typer.echo(json.dumps(made.record, ensure_ascii=False) if as_json else str(output))
