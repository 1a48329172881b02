"""`bertology view`: what a model does with a text, as one page that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertology.cli import inputs
from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.corpus.corpus import Item

HELP = "Look inside: attention on a text or a pair of texts, as one self-contained page."


def view(
    text: Annotated[str | None, typer.Argument(help="The text, unless --corpus names one.")] = None,
    text_b: Annotated[str | None, typer.Argument(help="A second text, to make a pair.")] = None,
    model: inputs.Model = None,
    against: inputs.Against = None,
    against_text: Annotated[str | None, typer.Option(metavar="TEXT", help="A second text to compare with.")] = None,
    corpus: inputs.CorpusName = None,
    format: inputs.Format = None,
    number: Annotated[
        int, typer.Option(min=1, metavar="N", help="Which item of --corpus to show; its tree is drawn with it.")
    ] = 1,
    results: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="A result (`bertology run ... --json`) or a folder of them: labels heads, draws arcs."
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The page to write.")] = Path(
        "view.html"
    ),
    quantity: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What to look at besides attention: norm, gradient; may be given twice."),
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
    from bertology.results.whole_file import require_place
    from bertology.views.view import view as view_of

    require_place(output)
    item = _text(text, corpus, format, number)
    encoder = load(model or inputs.DEFAULT_MODEL, device=device, dtype=dtype, allow_pickle=allow_pickle)
    if model is None:
        typer.echo(f"no --model given: using {encoder.name!r}, the built-in model", err=True)
    other = load(against, device=device, dtype=dtype, allow_pickle=allow_pickle) if against else None
    made = view_of(
        encoder,
        item,
        text_b,
        against=other,
        against_text=against_text,
        quantities=("attention", *(quantity or ())),
        neurons=neurons,
        results=results or None,
        view=shown,
    )
    for note in made.payload.notes:
        typer.echo(note, err=True)
    typer.echo(str(made.save(output)))


def _text(text: str | None, corpus: str | None, format: str | None, number: int) -> str | Item:
    """The text given, or the item of the corpus that was asked for."""
    if (text is None) == (corpus is None):
        raise Refusal(
            "There is no text to look at" if text is None else "Both a text and a corpus are given",
            "a text, or --corpus with --number",
            'Write for example: bertology view "I went to the store."',
        )
    if text is not None:
        if not text.strip():
            raise Refusal("The text is empty", "a text of at least one word", "Put it between quotation marks")
        return text
    read = inputs.read_corpus(corpus, format, None, False, number, "original")
    if len(read) < number:
        raise Refusal(
            f"{read.name} has {len(read)} items", f"--number from 1 to {len(read)}", "Give a number that it has"
        )
    return read[number - 1]
