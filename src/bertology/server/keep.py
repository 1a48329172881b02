"""What is kept of the workbench: offline pages of pins, tables of weights, references, and how to make them again."""

from __future__ import annotations

import csv
import io
import shlex
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, Field

from bertology.html import render
from bertology.results.palette import PALETTES
from bertology.server.jobs import JobRequest
from bertology.server.limits import LIMITS
from bertology.server.live import LiveAnswer, LiveRequest
from bertology.server.texts import RequestModel
from bertology.views.page import fragment, page_script, view_page
from bertology.views.payload import Payload, dequantise
from bertology.views.view import truncate_title


class PinRequest(RequestModel):
    """A pinned picture: what was looked at, the state of the view, as in its address, and a caption."""

    live: LiveRequest
    against: LiveRequest | None = None
    state: str = Field(default="", max_length=500, pattern=r"^[\w=&,.%:+-]*$")
    caption: str = Field(default="", max_length=2000)


class KeepRequest(RequestModel):
    """Pins that become one page."""

    title: str = Field(default="", max_length=200)
    pins: list[PinRequest] = Field(min_length=1, max_length=LIMITS.pins)


class KeptCommands(BaseModel):
    """The command line and the Python code that make again what is seen; `notes` say what they cannot."""

    command_line: str
    python: str
    notes: list[str]


def pin_payload(pin: PinRequest, answers: Sequence[LiveAnswer], text: str) -> Payload:
    """The data of a page for a pin: one run, or two to compare."""
    runs = [answer.run for answer in answers]
    if len(runs) > 1 and runs[0].name == runs[1].name:
        runs[1] = runs[1].model_copy(update={"name": f"{runs[1].name} (second)"})
    notes = [f"One text. {note}" for answer in answers for note in (_describe(answer), *answer.notes)]
    return Payload(title=truncate_title(pin.caption or text), runs=runs, notes=notes, state=pin.state)


def pins_page(
    title: str, pins: Sequence[PinRequest], payloads: Sequence[Payload], commands: Sequence[KeptCommands]
) -> str:
    """A page that opens offline; one pin is a page of its own, several stand below each other."""
    if len(payloads) == 1:
        return view_page(payloads[0])
    return render(
        "pins.html",
        title=title or "bertology: pins",
        palettes=PALETTES,
        pins=[
            {"caption": pin.caption or payload.title, "view": fragment(payload, payload.state), "python": made.python}
            for pin, payload, made in zip(pins, payloads, commands, strict=True)
        ],
        script=page_script(),
    )


def weights_csv(answer: LiveAnswer) -> str:
    """All weights of an answer, one per line; layers, heads and tokens are counted from 1."""
    stream = io.StringIO()
    writer = csv.writer(stream)
    writer.writerow(["model", "quantity", "layer", "head", "from", "from_token", "to", "to_token", "weight"])
    tokens = [token.text for token in answer.run.tokens]
    for quantity in answer.run.quantities:
        values = dequantise(quantity.weights)
        for layer, weights in zip(answer.layers, values, strict=True):
            for head, rows in enumerate(weights, 1):
                for source, row in enumerate(rows):
                    for target, weight in enumerate(row):
                        cells = (source + 1, _cell(tokens[source]), target + 1, _cell(tokens[target]), f"{weight:.6g}")
                        writer.writerow([answer.model, quantity.name, layer, head, *cells])
    return stream.getvalue()


def live_commands(request: LiveRequest, model: str, text: str, text_b: str | None) -> KeptCommands:
    """How to make the picture of a live request again."""
    changes = request.intervention
    notes: list[str] = []
    words = ["bertology", "view", text, *([text_b] if text_b is not None else []), "--model", model]
    words += [word for name in request.quantities if name != "attention" for word in ("--quantity", name)]
    lines = ["import bertology", "", f"encoder = bertology.load({model!r})"]
    calls = [("keeping", changes.keep), ("without", changes.off), ("uniform", changes.uniform)]
    for method, heads in calls:
        if heads:
            lines.append(f"encoder = encoder.{method}({', '.join(map(repr, heads))})")
    if changes.layers_off:
        removed = sorted(set(changes.layers_off))
        lines.append(f"encoder = encoder.with_layers(*(n for n in range(1, encoder.layers + 1) if n not in {removed}))")
    if not changes.is_empty:
        notes.append("The command line shows the unchanged model; the Python code changes it.")
    if changes.mean:
        notes.append("Heads replaced by their mean are left out: see interventions/head_ablation with --ablation mean.")
    if request.edits:
        notes.append("Edited tokens are left out: write the text with the mask token, or with other words.")
    texts = ", ".join(map(repr, [text] if text_b is None else [text, text_b]))
    quantities = f", quantities={tuple(dict.fromkeys(['attention', *request.quantities]))!r}"
    shown = quantities if any(name != "attention" for name in request.quantities) else ""
    layer = f", layer={request.layers[0]}" if request.layers and len(request.layers) == 1 else ""
    lines.append(f'bertology.view(encoder, {texts}{shown}{layer}).save("view.html")')
    return KeptCommands(command_line=shlex.join(words), python="\n".join(lines), notes=notes)


def job_commands(request: JobRequest) -> KeptCommands:
    """How to compute a job again."""
    against = ["--against", request.against] if request.against else []
    limit = ["--limit", str(request.limit)] if request.limit is not None else []
    inputs = [repr(request.model), repr(request.corpus)]
    keywords = {"against": request.against} if request.against else {}
    if request.kind == "analysis":
        flags = [word for name, value in request.options.items() for word in _flag(name, value)]
        like = ["--like", request.like] if request.like else []
        words = ["run", request.analysis, "--model", request.model, "--corpus", request.corpus]
        named = {**keywords, **({"like": request.like} if request.like else {}), **request.options}
        corpus = f"bertology.read({request.corpus!r}, limit={request.limit})" if limit else inputs[1]
        python = f"bertology.run({', '.join([repr(request.analysis), inputs[0], corpus, *_keywords(named)])})"
        line = ["bertology", *words, *against, *limit, *like, *flags]
    elif request.kind in {"claims", "report"}:
        papers = [word for paper in request.papers for word in ("--paper", paper)]
        full = ["--full"] if request.full else []
        line = ["bertology", request.kind, request.model, "--corpus", request.corpus, *against, *limit, *full, *papers]
        named = {**keywords, **({"papers": request.papers} if request.papers else {})}
        named |= {"limit": request.limit} if request.limit is not None else {}
        named |= {"full": True} if request.full else {}
        python = f"bertology.{request.kind}({', '.join([*inputs, *_keywords(named)])})"
    else:
        site = "attention.strongest_links" if request.kind == "links" else "hidden.words"
        line = ["bertology", "record", request.model, request.corpus, "--sites", site, "-o", "DIR"]
        python = f"bertology.record({inputs[0]}, {inputs[1]}, [{site!r}])"
    return KeptCommands(command_line=shlex.join(line), python=f"import bertology\n\n{python}", notes=[])


def _flag(name: str, value: object) -> list[str]:
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}", str(value)]


def _keywords(values: Mapping[str, object]) -> list[str]:
    return [f"{name}={value!r}" for name, value in values.items()]


def _describe(answer: LiveAnswer) -> str:
    changes = "; ".join(f"{change}: {' '.join(names)}" for change, names in answer.changes.items())
    return f"{answer.model}{f' ({changes})' if changes else ''}, {answer.n_tokens} tokens."


def _cell(text: str) -> str:
    """A token for a spreadsheet, which would run a cell that begins like a formula."""
    return f"'{text}" if text[:1] in {"=", "+", "-", "@", "\t", "\r"} else text
