"""`bertology view`: what a model does with a text, as one page that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from bertology.cli import inputs

HELP = "Look inside: attention on a text or a pair of texts, as one self-contained page."


def view(
    text: Annotated[str, typer.Argument(help="The text.")],
    text_b: Annotated[str | None, typer.Argument(help="A second text, to make a pair.")] = None,
    model: inputs.Model = None,
    against: inputs.Against = None,
    output: Annotated[Path, typer.Option("--output", "-o", help="The page to write.")] = Path("view.html"),
    quantity: Annotated[
        list[str] | None,
        typer.Option(help="What to look at besides attention: norm, gradient; may be given twice."),
    ] = None,
    neurons: Annotated[
        bool | None,
        typer.Option("--neurons/--no-neurons", help="Put queries and keys on the page (default: up to 128 pieces)."),
    ] = None,
    shown: Annotated[
        Literal["head", "model", "matrix", "neuron", "difference"],
        typer.Option("--view", help="The view that the page opens with."),
    ] = "head",
    device: inputs.Device = "cpu",
    dtype: inputs.Precision = "float32",
    allow_pickle: inputs.AllowPickle = False,
) -> None:
    """Write the page and print its name."""
    from bertology.encoder.load import load
    from bertology.views.view import view as view_of

    encoder = load(model or inputs.DEFAULT_MODEL, device=device, dtype=dtype, allow_pickle=allow_pickle)
    if model is None:
        typer.echo(f"no --model given: using {encoder.name!r}, the built-in model", err=True)
    other = load(against, device=device, dtype=dtype, allow_pickle=allow_pickle) if against else None
    quantities = ("attention", *(quantity or ()))
    made = view_of(encoder, text, text_b, against=other, quantities=quantities, neurons=neurons, view=shown)
    typer.echo(str(made.save(output)))
