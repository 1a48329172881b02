"""`bertology view`: attention on a text as an HTML page that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from urllib.parse import parse_qsl

import typer

from bertology.cli import options
from bertology.errors import Refusal
from bertology.number_ranges import COUNT

if TYPE_CHECKING:
    from bertology.corpus.example import Example
    from bertology.recording.recording import Recording

HELP = "Visualise attention on a text or text pair as a self-contained HTML page."


def view_command(
    text: Annotated[str | None, typer.Argument(help="Text to show (or use --corpus).")] = None,
    text_b: Annotated[str | None, typer.Argument(help="Second text, to form a pair.")] = None,
    model: options.Model = None,
    against: options.Against = None,
    against_text: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Second text to compare with, in the same model.")
    ] = None,
    recording: options.RecordingDir = None,
    against_recording: options.AgainstRecordingDir = None,
    corpus: options.CorpusName = None,
    format: options.Format = None,
    example: Annotated[
        int,
        COUNT,
        typer.Option(
            metavar="N",
            help="Number of the example in --corpus or --recording, counted from 1; its dependency tree is shown if "
            "annotated.",
        ),
    ] = 1,
    results: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Result of `bertology run ... --json`, or a directory of them, used to label heads and draw arcs.",
        ),
    ] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="HTML file to write.")] = Path(
        "view.html"
    ),
    quantity: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Also show norm-weighted attention (norm) or attention gradients (gradient); may be repeated.",
        ),
    ] = None,
    neurons: Annotated[
        bool | None,
        typer.Option(
            "--neurons/--no-neurons",
            help="Include query and key vectors for the neuron view (default: up to 128 tokens).",
        ),
    ] = None,
    initial_view: Annotated[
        Literal["head", "model", "matrix", "neuron", "difference"],
        typer.Option("--view", help="View shown first."),
    ] = "head",
    state: Annotated[
        str | None,
        typer.Option(
            metavar="FRAGMENT",
            help="Settings of the page as in its address after #, for example 'layer=3&heads=8&token=5'.",
        ),
    ] = None,
    loading: options.ModelOptions = options.ModelOptions(),
) -> None:
    """Write the page and print its path."""
    from bertology.atomic_files import check_writable
    from bertology.views.command_line import format_command
    from bertology.views.view import view, view_recording

    check_writable(output)
    quantities = ("attention", *(quantity or ()))
    shown: dict[str, Any] = {
        "quantities": quantities,
        "neurons": neurons,
        "results": results or None,
        **({"view": initial_view} | _parse_state(state)),
    }
    recordings = options.RecordingOptions(recording, against_recording).open(
        model=model, against=against, corpus=corpus, limit=None
    )
    if recordings.recording is not None:
        _refuse_text(text, against, against_text)
        index = _find_input(recordings.recording, example)
        page = view_recording(recordings.recording, index, against=recordings.against, **shown)
    else:
        page = view(
            loading.load_or_default(model),
            _select_text(text, corpus, format, example),
            text_b,
            against=loading.load(against) if against else None,
            against_text=against_text,
            **shown,
        )
    command = format_command(
        [value for value in (text, text_b) if value is not None],
        {
            "--model": model,
            "--against": against,
            "--against-text": against_text,
            "--recording": recording,
            "--against-recording": against_recording,
            "--corpus": corpus,
            "--format": format,
            "--example": example if corpus or recording else None,
            "--results": results,
        },
        quantities,
    )
    for note in [*page.payload.notes, *([page.payload.runs[0].labelling] if results else [])]:
        options.print_message(note)
    typer.echo(str(page.with_command(command).save(output)))


def _parse_state(fragment: str | None) -> dict[str, str]:
    """The settings in a fragment of a page's address."""
    pairs = parse_qsl(fragment or "", keep_blank_values=True)
    if fragment and not pairs:
        raise Refusal(
            f"--state is {fragment!r}",
            "settings such as 'layer=3&heads=8'",
            "Copy the part after # of a page's address",
        )
    return dict(pairs)


def _refuse_text(text: str | None, against: str | None, against_text: str | None) -> None:
    """Refuse what only a model can show beside a recording."""
    for name, value in (("a text", text), ("--against", against), ("--against-text", against_text)):
        if value is not None:
            raise Refusal(
                f"Both --recording and {name} were given",
                "an input of the recording, chosen with --example",
                "Remove one; compare with a second recording by --against-recording",
            )


def _find_input(recording: Recording, example: int) -> int:
    """The index of the first input of the example with the given number."""
    index = next((i for i, recorded in enumerate(recording.inputs) if recorded.example_index == example - 1), None)
    if index is None:
        n_examples = len(recording.corpus)
        reason = "was skipped when it was recorded" if example <= n_examples else f"is not among its {n_examples}"
        raise Refusal(
            f"Example {example} of the recording of {recording.encoder.name} on {recording.corpus.name} {reason}",
            f"--example from 1 to {n_examples}",
            "Choose another example",
        )
    return index


def _select_text(text: str | None, corpus: str | None, format: str | None, example: int) -> str | Example:
    """The given text, or the example of the corpus with the given number."""
    if (text is None) == (corpus is None):
        raise Refusal(
            "No text was given" if text is None else "Both a text and a corpus were given",
            "a text, or --corpus or --recording with --example",
            'Write for example: bertology view "I went to the store."',
        )
    if text is not None:
        if not text.strip():
            raise Refusal("The text is empty", "a text of at least one word", "Put it in quotation marks")
        return text
    texts = options.CorpusOptions(format, limit=example).read(corpus)
    if len(texts) < example:
        raise Refusal(
            f"{texts.name} has {len(texts)} examples, and --example is {example}",
            f"--example from 1 to {len(texts)}",
            "Choose another example",
        )
    return texts[example - 1]
