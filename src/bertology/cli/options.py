"""Options that several commands share: the model, the corpus, the recording, and how to record."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import wraps
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

import typer
from annotated_types import Interval
from typer.models import ParameterInfo

from bertology.cli.completion import complete_corpus, complete_format, complete_model, complete_paper
from bertology.errors import Refusal
from bertology.input_files import check_path, path_exists
from bertology.lazy import torch
from bertology.number_ranges import COUNT, HOURS, MAX_COUNT, NumberRange, check_number, range_of_hint
from bertology.progress import progress_bars as progress_bars
from bertology.store_paths import StorePath, store_path
from bertology.work_estimate import MAX_HOURS as MAX_HOURS

if TYPE_CHECKING:
    from bertology.corpus.corpus import Corpus
    from bertology.corpus.stream import CorpusStream
    from bertology.encoder.encoder import Encoder
    from bertology.encoder.load import ModelSource
    from bertology.recording.recording import Recording

DEFAULT_MODEL = "mini"
DEFAULT_CORPUS = "english"

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        autocompletion=complete_model,
        help="Built-in name, directory in Hugging Face format, hub name, random:MODEL (untrained), static:MODEL (input "
        "embeddings) or glove:PATH. [default: mini]",
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        metavar="MODEL",
        autocompletion=complete_model,
        help="Built-in name, directory in Hugging Face format, hub name, random:MODEL (untrained), static:MODEL (input "
        "embeddings) or glove:PATH; repeat it, or give a pattern, to compare models in one table. [default: mini]",
    ),
]
Against = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        autocompletion=complete_model,
        help="Second model to compare with, for example a fine-tuned one.",
    ),
]
AgainstModels = Annotated[
    list[str] | None,
    typer.Option(
        "--against",
        metavar="MODEL",
        autocompletion=complete_model,
        help="Second model to compare with; repeat it, or give a pattern such as 'checkpoint-*', to follow a measure "
        "over several checkpoints.",
    ),
]
CorpusName = Annotated[
    str | None,
    typer.Option(
        "--corpus",
        "-c",
        metavar="CORPUS",
        autocompletion=complete_corpus,
        help="Built-in name, file or directory; see `bertology list corpora`. [default: english]",
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        autocompletion=complete_format,
        help="Format of the corpus, if its file suffix does not determine it; see `bertology list corpora`.",
    ),
]
SkipMalformed = Annotated[bool, typer.Option("--skip-malformed", help="Skip malformed examples and report how many.")]
Limit = Annotated[int | None, COUNT, typer.Option(metavar="N", help="Read only the first N examples of the corpus.")]
RecordingDir = Annotated[
    str | None,
    typer.Option(
        "--recording",
        metavar="DIR",
        help="Analyse an existing recording (a directory, or an address such as s3://bucket/folder), or a directory of "
        ".npz files, instead of --model and --corpus.",
    ),
]
AgainstRecordingDir = Annotated[
    str | None,
    typer.Option(
        "--against-recording",
        metavar="DIR",
        help="Recording of a second model on the same corpus, to compare with --recording.",
    ),
]
UntrainedRecordingDir = Annotated[
    str | None,
    typer.Option(
        "--untrained-recording",
        metavar="DIR",
        help="Recording of the untrained model (random:MODEL) on the same corpus, as baseline of --recording.",
    ),
]
OverflowOption = Annotated[
    Literal["error", "skip", "truncate", "window"],
    typer.Option(help="Inputs longer than the model allows: stop, skip, truncate, or split into overlapping windows."),
]
MaxLength = Annotated[
    int | None,
    Interval(ge=3, le=MAX_COUNT),
    typer.Option(
        metavar="N", help="Maximum input length in tokens, special tokens included (default: the model's limit)."
    ),
]
Device = Annotated[str, typer.Option(metavar="DEVICE", help="Device: cpu, cuda, cuda:1, mps.")]
AllowPickle = Annotated[
    bool, typer.Option("--allow-pickle", help="Load pickled weights. They can execute code: only for files you trust.")
]
Store = Annotated[
    str | None,
    typer.Option(
        metavar="DIR",
        help="Directory, or address such as s3://bucket/folder, for recordings and results (default: the user's cache "
        "directory).",
    ),
]
NoStore = Annotated[bool, typer.Option("--no-store", help="Do not read or write the store.")]
MaxHours = Annotated[
    float,
    HOURS,
    typer.Option(
        "--max-hours",
        metavar="N",
        help="Refuse work that is estimated, before it starts, to take longer than this many hours.",
    ),
]
Papers = Annotated[
    list[str] | None,
    typer.Option(
        "--paper",
        metavar="KEY",
        help="Only claims of this paper, such as clark2019; may be repeated.",
        autocompletion=complete_paper,
    ),
]
Objective = Annotated[
    Literal["auto", "mlm", "lm", "prediction", "gold"],
    typer.Option(
        help="Function whose gradient is taken: masked (`mlm`) or causal (`lm`) language-modelling loss, score of the "
        "`prediction`, or loss on `gold` labels; `auto`: the first of mlm, lm, prediction the model supports."
    ),
]
EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="Where forward passes and analyses run: `local` (this process), `local:N` (N processes, which share the "
        "cores or have a GPU each), `ray` or `ray:ADDRESS` (a Ray cluster that sees the same folders). [default: "
        "local]",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")]


@dataclass(frozen=True)
class RecordingOptions:
    """Recordings to analyse instead of models and a corpus."""

    recording: RecordingDir = None
    against_recording: AgainstRecordingDir = None
    untrained_recording: UntrainedRecordingDir = None

    def open(self, *, model: str | None, against: str | None, corpus: str | None, limit: int | None) -> Recordings:
        """The recordings; options that recordings replace are refused beside them."""
        from bertology.recording.manifest import open_recording

        if self.recording is None and (self.against_recording or self.untrained_recording):
            raise Refusal(
                "A recording to compare with was given, and no --recording",
                "two recordings of the same corpus",
                "Add --recording DIR",
            )
        conflicts = {
            "--recording": {"a model": model, "--corpus": corpus} if self.recording is not None else {},
            "--against-recording": {"--against": against} if self.against_recording is not None else {},
        }
        for name, others in conflicts.items():
            for other, value in others.items():
                if value is not None:
                    raise Refusal(f"Both {name} and {other} were given", "one of them", "Remove one")
        paths = self.recording, self.against_recording, self.untrained_recording
        opened = (None if path is None else open_recording(path) for path in paths)
        return Recordings(*(r if r is None or limit is None else r.first_examples(limit) for r in opened))


class Recordings(NamedTuple):
    """The recordings given on the command line."""

    recording: Recording | None = None
    against: Recording | None = None
    untrained: Recording | None = None


@dataclass(frozen=True)
class CorpusOptions:
    """How a corpus is read."""

    format: Format = None
    format_option: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="Option of the corpus format; may be repeated.")
    ] = None
    skip_malformed: SkipMalformed = False
    limit: Limit = None
    spacing: Annotated[
        Literal["original", "words"],
        typer.Option(help="`original` text, or annotated `words` joined by single spaces."),
    ] = "original"

    def read(self, name: str | None) -> Corpus:
        """Read the corpus; what was skipped is reported on stderr."""
        from bertology.corpus.read import load_corpus

        corpus = load_corpus(name or DEFAULT_CORPUS, self.format, **self._reading_options)
        print_skipped(corpus)
        return corpus.with_single_spaces() if self.spacing == "words" else corpus

    def stream(self, name: str, part_size: int | None) -> CorpusStream:
        """The corpus as a stream, of which nothing is read yet."""
        from bertology.corpus.stream import PART_SIZE, stream_corpus

        stream = stream_corpus(name, self.format, part_size=part_size or PART_SIZE, **self._reading_options)
        return stream.with_single_spaces() if self.spacing == "words" else stream

    @property
    def _reading_options(self) -> dict[str, Any]:
        format_options = dict(_name_and_value(option) for option in self.format_option or [])
        return {"skip_malformed": self.skip_malformed, "limit": self.limit, **format_options}


def print_skipped(corpus: Corpus) -> None:
    """Report on stderr what was skipped or changed in a corpus."""
    skipped = corpus.skipped_counts
    if skipped:
        print_message(f"{corpus.name}: {', '.join(f'{count} {reason}' for reason, count in skipped.items())}.")


@dataclass(frozen=True)
class ModelOptions:
    """How models are loaded and run."""

    device: Device = "cpu"
    dtype: Annotated[
        Literal["float32", "bfloat16", "float16"], typer.Option("--dtype", help="Precision of the forward pass.")
    ] = "float32"
    allow_pickle: AllowPickle = False

    def load(self, name: str) -> Encoder:
        """Load a model."""
        from bertology.encoder.load import load

        _refuse_device(self.device)
        return load(name, device=self.device, dtype=self.dtype, allow_pickle=self.allow_pickle)

    def load_or_default(self, name: str | None) -> Encoder:
        """Load a model; the built-in one, with a message, if there is no name."""
        if name is None:
            print_message(f"No --model given; using the built-in model `{DEFAULT_MODEL}`.")
        return self.load(name or DEFAULT_MODEL)

    def load_all(self, names: Sequence[str | None]) -> Encoder | list[ModelSource]:
        """Load a model, the built-in one if its name is None; several are loaded when they are needed."""
        from bertology.encoder.load import ModelSource

        if len(names) == 1:
            return self.load_or_default(names[0])
        _refuse_device(self.device)
        return [ModelSource(name or DEFAULT_MODEL, self.device, self.dtype, self.allow_pickle) for name in names]


def expand_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command with the fields of its option groups as options, and every number and path checked first.

    An option group is a parameter whose default is a dataclass; the values of that instance are the defaults. The help
    of a number says its range.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {name: p.default for name, p in signature.parameters.items() if is_dataclass(p.default)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        members = [parameter]
        if name in groups:
            hints = get_type_hints(type(groups[name]), include_extras=True)
            members = [
                parameter.replace(
                    name=field.name, default=getattr(groups[name], field.name), annotation=hints[field.name]
                )
                for field in fields(groups[name])
            ]
        parameters += [member.replace(kind=inspect.Parameter.KEYWORD_ONLY) for member in members]
    numbers = {parameter.name: option for parameter in parameters if (option := _number_option(parameter))}

    @wraps(command)
    def expanded(**values: Any) -> None:
        for name, value in values.items():
            if name in numbers:
                check_number(value, numbers[name].range, numbers[name].flag, numbers[name].description)
            _check_paths(value)
        for name, group in groups.items():
            values[name] = type(group)(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    expanded.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    vars(expanded)["__signature__"] = signature.replace(parameters=parameters)
    return expanded


@dataclass(frozen=True)
class _NumberOption:
    """A number on the command line, with its range."""

    flag: str
    description: str
    range: NumberRange


def _number_option(parameter: inspect.Parameter) -> _NumberOption | None:
    """The option of a parameter that is a number; its help then says the range."""
    bounds = range_of_hint(parameter.annotation, parameter.default)
    info = next((entry for entry in get_args(parameter.annotation) if isinstance(entry, ParameterInfo)), None)
    if bounds is None or info is None:
        return None
    flags = [name for name in info.param_decls or () if name.startswith("--")]
    option = _NumberOption(flags[0] if flags else f"--{parameter.name.replace('_', '-')}", info.help or "", bounds)
    if not option.description.endswith(bounds.help_text):  # options are shared between commands
        info.help = option.description + bounds.help_text
    return replace(option, description=option.description.removesuffix(bounds.help_text))


def _check_paths(value: Any) -> None:
    """Refuse a path that no file can have."""
    for path in value if isinstance(value, list) else [value]:
        if isinstance(path, Path):
            check_path(path)


def store_directory(store: str | None, *, no_store: bool) -> StorePath | None:
    """The directory or address of the store: the given one, or the default; None with --no-store."""
    from bertology.recording.store import default_root

    if no_store:
        return None
    return default_root() if store is None else output_folder(store)


def output_folder(text: str) -> StorePath:
    """The folder of a recording or a store, local or at an address; one that cannot be is refused."""
    path = store_path(text)
    return check_path(path) if isinstance(path, Path) else path


def expand_models(names: Sequence[str], *, keep_repeats: bool = False) -> list[str]:
    """Model names with patterns replaced by the matching directories, sorted by the numbers in their names."""
    expanded: list[str] = []
    for name in names:
        # The name of an existing directory may look like a pattern.
        if not any(character in name for character in "*?[") or path_exists(name):
            expanded.append(name)
            continue
        matching = sorted(glob(name), key=_natural_sort_key)  # noqa: PTH207  # Path.glob takes no absolute pattern
        if not matching:
            raise Refusal(
                f"No directory matches {name!r}", "a pattern that matches model directories", "Check the pattern"
            )
        expanded += [path for path in matching if Path(path).is_dir()]
    return expanded if keep_repeats else list(dict.fromkeys(expanded))


def _natural_sort_key(path: str) -> list[tuple[int, str]]:
    """A sort key that puts checkpoint-90 before checkpoint-100."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", path)]


def _refuse_device(device: str) -> None:
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    kind = device.split(":")[0]
    if not available.get(kind, False):
        usable = ", ".join(name for name, is_available in available.items() if is_available)
        raise Refusal(f"The device {device!r} is not available", f"one of: {usable}", "Choose one with --device")


def _name_and_value(option: str) -> tuple[str, str]:
    name, equals, value = option.partition("=")
    if not equals:
        raise Refusal(
            f"--format-option was given {option!r}", "NAME=VALUE", "Write for example --format-option column=3"
        )
    return name.replace("-", "_"), value


def print_message(line: str) -> None:
    """Print a message on stderr; stdout is for results."""
    typer.echo(line, err=True)
