"""The options that say what to look at: a model, a corpus, a recording, and how to record."""

from __future__ import annotations

import re
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.analyses.run import Subject
    from bertology.corpus.corpus import Corpus
    from bertology.encoder.encoder import Encoder
    from bertology.recording.recorder import Policy

DEFAULT_MODEL = "mini"
DEFAULT_CORPUS = "english"

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        help="A built-in name, a directory, a hub name, random:MODEL, static:MODEL, glove:PATH.",
    ),
]
Against = Annotated[str | None, typer.Option(metavar="MODEL", help="A second model to compare with.")]
Series = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="MODEL",
        help="A second model to compare with. Several, or a pattern such as 'checkpoint-*', give each curve over them.",
    ),
]
CorpusName = Annotated[
    str | None,
    typer.Option("--corpus", "-c", metavar="CORPUS", help="A built-in name, or the path of a file or folder."),
]
Format = Annotated[
    str | None, typer.Option(metavar="NAME", help="The corpus's format, where its suffix does not tell.")
]
FormatOption = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="An option of the format; may be given again.")
]
SkipBad = Annotated[bool, typer.Option("--skip-bad", help="Leave malformed items out and count them.")]
Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="Read only the first N items.")]
Spacing = Annotated[
    Literal["original", "words"], typer.Option(help="Show the text as it was written, or its words with single spaces.")
]
RecordingDir = Annotated[
    Path | None,
    typer.Option(
        "--recording", metavar="DIR", help="A recording, or a folder of .npz files, instead of model and corpus."
    ),
]
LongPolicy = Annotated[
    Literal["error", "skip", "truncate", "window"], typer.Option("--long", help="What to do with over-long inputs.")
]
MaxPieces = Annotated[
    int | None,
    typer.Option(min=3, metavar="N", help="The longest input, where shorter than the model's own limit."),
]
Device = Annotated[str, typer.Option(metavar="DEVICE", help="Where to run: cpu, cuda, cuda:1, mps.")]
Precision = Annotated[
    Literal["float32", "bfloat16"], typer.Option("--dtype", help="The precision of the forward pass.")
]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Load pickled weights, which can run code. Only for files you trust.")
]
Store = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Where recordings are kept (default: the user's cache folder)."),
]
NoStore = Annotated[bool, typer.Option("--no-store", help="Keep nothing on disk.")]
Objective = Annotated[
    Literal["auto", "mlm", "lm", "top", "gold"],
    typer.Option(
        help="What gradients are of: the loss of masked pieces (mlm), of next ones (lm), of the corpus's classes, tags "
        "or answers (gold), the score of what is predicted (top); auto: the first of mlm, lm, top that there is a head "
        "for."
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the masking for gradient sites.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def read_corpus(
    name: str | None, format: str | None, options: list[str] | None, skip_bad: bool, limit: int | None, spacing: str
) -> Corpus:
    """The corpus asked for; how much was left out goes to stderr."""
    from bertology.corpus.builtin import corpus_named

    given = dict(_name_and_value(option) for option in options or [])
    corpus = corpus_named(name or DEFAULT_CORPUS, format, skip_bad=skip_bad, limit=limit, **given)
    if corpus.skipped:
        typer.echo(f"{corpus.name}: counted while reading: {_listed(corpus.summary()['skipped'])}", err=True)
    return corpus.respaced() if spacing == "words" else corpus


def subject_of(
    *,
    model: str | None,
    against: str | None,
    corpus: Corpus | None,
    recording: Path | None,
    policy: Policy,
    device: str,
    dtype: str,
    allow_pickle: bool,
    store: Path | None,
    no_store: bool,
    randomise: bool,
) -> Subject:
    """What to run analyses on."""
    from bertology.analyses.run import Subject
    from bertology.encoder.load import load
    from bertology.recording.store import default_root

    root = None if no_store else store or default_root()
    if recording is not None:
        if model is not None:
            raise Refusal("Both --recording and --model were given", "one of them", "Leave one out")
        from bertology.recording.opening import open_recording

        opened = open_recording(recording)
        other = load(against, device=device, dtype=dtype, allow_pickle=allow_pickle) if against else None
        return Subject(recording=opened, corpus=opened.corpus, against=other, policy=policy, store=root)
    _refuse_device(device)
    encoder = load(model or DEFAULT_MODEL, device=device, dtype=dtype, allow_pickle=allow_pickle)
    if model is None:
        typer.echo(f"no --model given: using {encoder.name!r}, the built-in model", err=True)
    other = load(against, device=device, dtype=dtype, allow_pickle=allow_pickle) if against else None
    return Subject(corpus=corpus, encoder=encoder, against=other, policy=policy, store=root, randomise=randomise)


def loaded(name: str, device: str, dtype: str, allow_pickle: bool) -> Encoder:
    """One model more, loaded as the others were."""
    from bertology.encoder.load import load

    return load(name, device=device, dtype=dtype, allow_pickle=allow_pickle)


def series_of(names: list[str]) -> list[str]:
    """The models named, patterns replaced by the folders they match, in the order of the numbers in their names."""
    found: list[str] = []
    for name in names:
        # A model's own name may look like a pattern; only what names no folder is taken as one.
        if not any(sign in name for sign in "*?[") or Path(name).exists():
            found.append(name)
            continue
        matching = sorted(glob(name), key=_numbered)  # noqa: PTH207  # Path.glob takes no absolute pattern
        if not matching:
            raise Refusal(f"No folder matches {name!r}", "a pattern of folders with models", "Check --against")
        found += [path for path in matching if Path(path).is_dir()]
    return list(dict.fromkeys(found))


def _numbered(path: str) -> list[tuple[int, str]]:
    """What sorts checkpoint-90 before checkpoint-100."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path)]


def _refuse_device(device: str) -> None:
    import torch

    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    kind = device.split(":")[0]
    if not available.get(kind, False):
        usable = ", ".join(name for name, there in available.items() if there)
        raise Refusal(f"There is no device {device!r} here", f"one of: {usable}", "Choose one with --device")


def _name_and_value(option: str) -> tuple[str, str]:
    name, equals, value = option.partition("=")
    if not equals:
        raise Refusal(f"--format-option was given {option!r}", "name=value", "Write it as, for example, column=3")
    return name.replace("-", "_"), value


def _listed(reasons: Any) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in reasons.items())
