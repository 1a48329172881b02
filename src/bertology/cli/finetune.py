"""`bertology finetune`: fine-tune a model on a task and save it in Hugging Face format."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from bertology.cli import options
from bertology.number_ranges import (
    COUNT,
    COUNT_OR_ZERO,
    FRACTION,
    LEARNING_RATE_OR_ZERO,
    PENALTY,
    PROPORTION,
    REPETITIONS,
    SEED,
)

HELP = "Fine-tune a model on a task; an interrupted run resumes."


def finetune_command(
    model: Annotated[str, typer.Argument(help="Built-in name, directory in Hugging Face format, or hub name.")],
    corpus: Annotated[str, typer.Argument(help="Built-in name, file or directory, annotated for the task.")],
    task: Annotated[
        Literal["sentence", "pair", "token", "dependency", "qa", "choice"],
        typer.Option(
            help="Task: sentence or pair classification, token classification, dependency parsing, extractive qa, or "
            "multiple choice."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Directory to write to.")],
    reading: options.CorpusOptions = options.CorpusOptions(),
    validation: Annotated[
        str | None, typer.Option(metavar="CORPUS", help="Corpus for selecting the best epoch.")
    ] = None,
    validation_fraction: Annotated[
        float,
        FRACTION,
        typer.Option(metavar="X", help="Fraction of the data used for validation if there is no --validation corpus."),
    ] = 0.1,
    test: Annotated[str | None, typer.Option(metavar="CORPUS", help="Corpus for evaluating the final model.")] = None,
    label: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Label to predict: a column of the corpus; with --task token also tags, pos, xpos, entities, chunks "
            "or relations.",
        ),
    ] = None,
    seed: Annotated[
        int,
        SEED,
        typer.Option(metavar="N", help="Random seed for the task head's initial weights, dropout and data order."),
    ] = 0,
    epochs: Annotated[int, REPETITIONS, typer.Option(metavar="N", help="Maximum number of epochs.")] = 3,
    patience: Annotated[
        int,
        COUNT,
        typer.Option(metavar="N", help="Stop after this many epochs without improvement on the validation set."),
    ] = 2,
    batch_size: Annotated[int, COUNT, typer.Option(metavar="N", help="Examples per batch.")] = 16,
    learning_rate: Annotated[
        float | None,
        LEARNING_RATE_OR_ZERO,
        typer.Option(metavar="X", help="Peak learning rate (default: chosen by model width, 5e-5 for 768)."),
    ] = None,
    warmup_ratio: Annotated[
        float, PROPORTION, typer.Option(metavar="X", help="Fraction of training steps for linear warm-up.")
    ] = 0.1,
    weight_decay: Annotated[float, PENALTY, typer.Option(metavar="X", help="Weight decay of weight matrices.")] = 0.01,
    dtype: Annotated[
        Literal["auto", "float32", "bfloat16"],
        typer.Option(help="Training precision; `auto`: bfloat16 on GPUs that support it."),
    ] = "auto",
    max_length: options.MaxLength = None,
    freeze_layers: Annotated[
        int | None, COUNT_OR_ZERO, typer.Option(metavar="K", help="Freeze the embeddings and the first K layers.")
    ] = None,
    keep_layers: Annotated[
        int | None, COUNT_OR_ZERO, typer.Option(metavar="K", help="Keep only the first K layers.")
    ] = None,
    reinitialise_layers: Annotated[
        int, COUNT_OR_ZERO, typer.Option(metavar="K", help="Re-initialise the last K layers.")
    ] = 0,
    random_weights: Annotated[
        bool, typer.Option("--random-weights", help="Start from random weights (control).")
    ] = False,
    keep_checkpoints: Annotated[
        bool, typer.Option("--keep-checkpoints", help="Save the model after every epoch, as checkpoint-STEP.")
    ] = False,
    device: options.Device = "cpu",
    allow_pickle: options.AllowPickle = False,
    max_hours: options.MaxHours = options.MAX_HOURS,
    as_json: options.Json = False,
) -> None:
    """Fine-tune, and print the directory of the model, or with --json its metadata."""
    from bertology.encoder.layer_variants import LayerVariant
    from bertology.encoder.load import load
    from bertology.training.finetune import finetune
    from bertology.training.loop import TrainingConfig

    unlimited = replace(reading, limit=None)
    train_corpus = reading.read(corpus)
    validation_corpus, test_corpus = (None if name is None else unlimited.read(name) for name in (validation, test))
    with options.progress_bars() as progress:
        finetuned = finetune(
            load(model, device=device, allow_pickle=allow_pickle),
            train_corpus,
            task,
            output,
            validation=validation_corpus,
            validation_fraction=validation_fraction,
            test=test_corpus,
            config=TrainingConfig(
                seed,
                epochs,
                batch_size,
                learning_rate,
                warmup_ratio,
                weight_decay=weight_decay,
                patience=patience,
                dtype=dtype,
            ),
            variant=LayerVariant(freeze_layers, keep_layers, reinitialise_layers, random_weights),
            label=label,
            max_length=max_length,
            keep_checkpoints=keep_checkpoints,
            max_hours=max_hours,
            progress=progress,
            notify=options.print_message,
        )
    typer.echo(json.dumps(finetuned.metadata, ensure_ascii=False) if as_json else str(output))
