"""`bertology prune`: remove attention heads from a model permanently."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertology.cli import options
from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.encoder.encoder import Encoder

HELP = "Remove attention heads from a model permanently; outputs equal those with the heads' output set to zero."


def prune_command(
    model: Annotated[str, typer.Argument(help="Built-in name, directory in Hugging Face format, or hub name.")],
    heads: Annotated[
        str, typer.Option(metavar="HEADS", help="Heads to remove, as layer-head counted from 1: 3-10,4-6.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="DIR", help="Directory to write to.")],
    allow_pickle: options.AllowPickle = False,
    as_json: options.Json = False,
) -> None:
    """Prune, and print the directory of the model, or with --json what was removed."""
    from bertology.encoder import pruning
    from bertology.encoder.encoder import TaskEncoder, parse_head_mask
    from bertology.encoder.load import load

    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise Refusal(f"{output} already exists", "a new or empty directory", "Choose another one with -o")
    encoder = load(model, allow_pickle=allow_pickle)
    if not isinstance(encoder, TaskEncoder):
        raise _no_heads_refusal(encoder)
    removed = parse_head_mask(
        heads, encoder, "--heads", "Write heads as `3-10,4-6`: layer and head counted from 1, comma-separated"
    )
    pruned = pruning.prune(encoder, ~removed)
    pruning.save_pruned(pruned, output)
    sizes = [sum(weights.nbytes for weights in model.model.parameters()) for model in (encoder, pruned)]
    summary = {
        "removed": int(removed.sum()),
        "heads": removed.size,
        "bytes_before": sizes[0],
        "bytes_after": sizes[1],
    }
    options.print_message(
        f"Removed {summary['removed']} of {summary['heads']} heads; weights: {sizes[0] / 1e6:.1f} MB before, "
        f"{sizes[1] / 1e6:.1f} MB after."
    )
    typer.echo(json.dumps({"model": str(output), **summary}, ensure_ascii=False) if as_json else str(output))


def _no_heads_refusal(encoder: Encoder) -> Refusal:
    return Refusal(f"{encoder.name} has no attention heads", "a transformer", "Choose another model")
