"""`bertology prune`: cut heads out of a model for good, and write what is left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertology.cli import inputs
from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.encoder.encoder import Encoder

HELP = "Cut heads out of a model for good: it becomes smaller and faster, and answers as with these heads at 0."


def prune(
    model: Annotated[str, typer.Argument(help="The model.")],
    heads: Annotated[
        str, typer.Option(metavar="HEADS", help="The heads to cut out: `3-10,4-6`, layer and head from 1.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="DIR", help="The folder to write the smaller model to.")
    ],
    allow_pickle: inputs.AllowPickle = False,
    as_json: inputs.Json = False,
) -> None:
    """Prune, and print the folder of the model, or with --json what was cut out of it."""
    from bertology.encoder import pruning
    from bertology.encoder.huggingface import HuggingFaceEncoder
    from bertology.encoder.load import load
    from bertology.measures.causes.named_heads import named_heads

    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise Refusal(f"{output} is there already", "a folder that is new or empty", "Choose another with -o")
    encoder = load(model, allow_pickle=allow_pickle)
    if not isinstance(encoder, HuggingFaceEncoder):
        raise _without_heads(encoder)
    gone = named_heads(heads, encoder, "--heads", "Write heads as `3-10,4-6`: layer and head from 1, commas between")
    pruned = pruning.prune(encoder, ~gone)
    pruning.save_pruned(pruned, output)
    sizes = [sum(weights.nbytes for weights in one.model.parameters()) for one in (encoder, pruned)]
    cut = {"removed": int(gone.sum()), "heads": gone.size, "bytes before": sizes[0], "bytes after": sizes[1]}
    megabytes = " MB of weights become ".join(f"{size / 1e6:.1f}" for size in sizes)
    typer.echo(f"{cut['removed']} of {cut['heads']} heads cut out; {megabytes} MB", err=True)
    typer.echo(json.dumps({"model": str(output), **cut}, ensure_ascii=False) if as_json else str(output))


def _without_heads(encoder: Encoder) -> Refusal:
    return Refusal(f"{encoder.name} has no heads to cut out", "a transformer", "Choose another model")
