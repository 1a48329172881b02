"""Readers: a declared function a format, found by name or by the file's suffix, and `read`, which runs one.

One format is one file in `corpus/readers/`; the file's name is the format's name.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

from bertology.corpus.corpus import Corpus, Item
from bertology.corpus.sentence import Sentence
from bertology.corpus.source import Problems
from bertology.errors import Refusal, unknown_name

ReadFunction = Callable[..., Iterator[Item]]

SPARSE = ("chunks", "entities", "mentions", "senses")
"""Layers that a format writes only where there is something to write."""


@dataclass(frozen=True)
class Reader:
    """A corpus format: its name, what it is, the suffixes and sniffing that recognise it, and its function."""

    name: str
    about: str
    example: str
    suffixes: tuple[str, ...]
    function: ReadFunction
    recognises: Callable[[Path], bool] | None = None

    @property
    def options(self) -> dict[str, inspect.Parameter]:
        """The keyword-only parameters of the function: what `--format-option name=value` may set."""
        parameters = inspect.signature(self.function).parameters.values()
        return {p.name: p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


_readers: dict[str, Reader] = {}


def reader(
    name: str,
    *,
    about: str,
    example: str,
    suffixes: tuple[str, ...] = (),
    recognises: Callable[[Path], bool] | None = None,
) -> Callable[[ReadFunction], ReadFunction]:
    """Declare `function(path, problems, *, options) -> items` as the reader of a format.

    `example` is a few lines of the format for `bertology list corpora`; `recognises` decides by looking at a path
    where the suffix does not tell.
    """

    def declare(function: ReadFunction) -> ReadFunction:
        _readers[name] = Reader(name, about, example, suffixes, function, recognises)
        return function

    return declare


@cache
def readers() -> dict[str, Reader]:
    """Every format by name: those in `corpus/readers/`, then those of installed plug-ins."""
    import bertology.corpus.readers as package

    for module in pkgutil.iter_modules(package.__path__):
        importlib.import_module(f"{package.__name__}.{module.name}")
    from importlib.metadata import entry_points

    for entry in entry_points(group="bertology.readers"):
        entry.load()
    return dict(sorted(_readers.items()))


def read(
    path: str | Path,
    format: str | None = None,
    *,
    skip_bad: bool = False,
    limit: int | None = None,
    **options: Any,
) -> Corpus:
    """The corpus at `path`.

    `format` is found from the suffix where it is not given; malformed input is refused with file and line, or
    counted with `skip_bad`; `limit` stops after that many items.
    """
    path = Path(path)
    if not path.exists():
        raise Refusal(f"{path} does not exist", "a corpus file or folder", "Check the path given to --corpus")
    chosen = readers()[format] if format in readers() else _recognise(path, format)
    unknown = set(options) - set(chosen.options)
    if unknown:
        raise unknown_name(f"option of the format {chosen.name}", sorted(unknown)[0], chosen.options)
    problems = Problems(skip_bad=skip_bad)
    items = tuple(islice(chosen.function(path, problems, **options), limit))
    if not items:
        left_out = f" ({len(problems.skipped)} skipped)" if problems.skipped else ""
        raise Refusal(
            f"{path} holds no items{left_out}",
            f"at least one item in the format {chosen.name} ({chosen.about})",
            "Check that the file is not empty and that --format names its format",
        )
    return Corpus(_completed(items), name=path.name, format=chosen.name, skipped=tuple(problems.skipped))


def _completed(items: tuple[Item, ...]) -> tuple[Item, ...]:
    """A layer that some parts carry is empty in the others, not absent: the source is annotated as a whole.

    A sentence of an entity-annotated file in which no entity occurs says so by writing nothing.
    """
    parts = [part for item in items for part in item.parts]
    sparse = [layer for layer in SPARSE if any(getattr(part, layer) is not None for part in parts)]
    if not sparse:
        return items

    def complete(part: Sentence) -> Sentence:
        empty = {layer: _nothing(layer, part) for layer in sparse if getattr(part, layer) is None}
        return replace(part, **empty) if empty else part

    return tuple(replace(item, parts=tuple(complete(part) for part in item.parts)) for item in items)


def _nothing(layer: str, part: Sentence) -> Any:
    return (None,) * len(part) if layer == "senses" else ()


def _recognise(path: Path, format: str | None) -> Reader:
    if format is not None:
        raise unknown_name("corpus format", format, readers(), remedy="See `bertology list corpora`")
    for candidate in readers().values():
        if candidate.recognises is not None and candidate.recognises(path):
            return candidate
    suffixes = [s for s in path.suffixes if s not in {".gz", ".xz", ".bz2"}]
    by_suffix = [r for r in readers().values() if suffixes and suffixes[-1] in r.suffixes]
    if len(by_suffix) == 1:
        return by_suffix[0]
    possible = [r.name for r in by_suffix] or list(readers())
    raise Refusal(
        f"The name {path.name!r} does not tell which format it is in",
        f"one of the formats {', '.join(possible)}",
        "Say which with --format; `bertology list corpora` describes them",
    )
