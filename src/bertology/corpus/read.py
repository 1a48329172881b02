"""Read a corpus file: the registry of format readers, detection of the format, and `read`.

A format is a module in `corpus/readers/` of the same name, or a function of a plug-in: a package with an entry point in
the group `bertology.readers` that names the function and is called like the format.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from importlib import resources
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from bertology.corpus.corpus import Corpus
from bertology.corpus.example import Example
from bertology.corpus.generate import GENERATED_PREFIX, generators, load_generated
from bertology.corpus.probing_tasks import TASKS_PREFIX, build_task_corpus, parse_task_address, probing_tasks
from bertology.corpus.registration import check_options, function_options, import_modules
from bertology.corpus.sentence import Sentence
from bertology.corpus.text_examples import TextExamples
from bertology.corpus.text_files import OPENERS, ParseErrorHandler, lines
from bertology.errors import Refusal, unknown_name
from bertology.input_files import path_exists, shorten_name
from bertology.number_ranges import COUNT
from bertology.plugins import Plugin, PluginError, load_plugin

ReadFunction = Callable[..., Iterator[Example]]

READERS_PACKAGE = "bertology.corpus.readers"
DATASETS_PREFIX = "datasets:"
"""Prefix of the names of data sets of the Hugging Face hub."""
NAME_PREFIXES = (DATASETS_PREFIX, GENERATED_PREFIX, TASKS_PREFIX)
ENTRY_POINT_GROUP = "bertology.readers"
OPTIONAL_ANNOTATIONS = ("chunks", "entities", "mentions", "senses")
"""Annotations that a format writes only at the words that have them."""
GENERIC_SUFFIXES = frozenset({".txt", ".text", ".tsv", ".csv", ".json", ".jsonl"})
"""Suffixes that do not determine the format."""
MAX_LINES = 40
MAX_CHARACTERS = 100_000


@dataclass(frozen=True)
class Reader:
    """A corpus format: name, description, an example of its lines, file suffixes, and the function that reads it."""

    name: str
    description: str
    example: str
    suffixes: tuple[str, ...]
    function: ReadFunction
    matches: Callable[[Path], bool] | None = None


_readers: dict[str, Reader] = {}


def reader(
    name: str,
    *,
    description: str,
    example: str,
    suffixes: tuple[str, ...] = (),
    matches: Callable[[Path], bool] | None = None,
) -> Callable[[ReadFunction], ReadFunction]:
    """Register `function(path, errors, *, options)`, which yields examples, as the reader of a format.

    `example` is a few lines of the format, for `bertology list corpora`. `matches` looks at a file or directory and
    decides whether it has the format, if the suffix does not determine it.
    """

    def register(function: ReadFunction) -> ReadFunction:
        _readers[name] = Reader(name, description, example, suffixes, function, matches)
        return function

    return register


@cache
def readers() -> dict[str, Reader]:
    """Return all readers by name: those of this package and of installed plug-ins.

    A plug-in that cannot be loaded is left out with a warning.
    """
    import_modules(READERS_PACKAGE)
    for plugin in reader_plugins():
        if plugin.problem:
            plugin.warn()
    return dict(sorted(_readers.items()))


@cache
def reader_plugins() -> tuple[Plugin, ...]:
    """Return the readers of installed plug-ins, with the problems of those that cannot be loaded."""
    import_modules(READERS_PACKAGE)
    return tuple(load_plugin(entry, _load_plugged_in) for entry in entry_points(group=ENTRY_POINT_GROUP))


def _load_plugged_in(entry: EntryPoint) -> Reader:
    """Return the reader that an entry point names; no reader of another name is registered or replaced by it."""
    registered = dict(_readers)
    try:
        function = entry.load()
        declared = [candidate for candidate in _readers.values() if candidate.function is function]
        if not declared:
            raise PluginError(f"{entry.value} is not a function declared by @reader")
        if declared[0].name != entry.name:
            raise PluginError(f"{entry.value} reads the format {declared[0].name}, not {entry.name}")
        if entry.name in registered and registered[entry.name] is not declared[0]:
            raise PluginError("another reader has this name")
    except BaseException:
        _readers.clear()
        _readers.update(registered)
        raise
    return declared[0]


def read(
    path: str | Path,
    format: str | None = None,
    *,
    skip_malformed: bool = False,
    limit: Annotated[int | None, COUNT] = None,
    **options: Any,
) -> Corpus:
    """Read the corpus at `path`, or a corpus by name: `english`, `generated:agreement`, `datasets:NAME:SPLIT`.

    Without `format`, the suffix or the content determines the format. Malformed examples are refused with file and
    line, or with `skip_malformed` counted and skipped. `limit` is the maximum number of examples.
    """
    if not isinstance(path, str | Path):  # pyright: ignore[reportUnnecessaryIsInstance]  # callers without type checks
        raise Refusal(
            f"read was given {type(path).__name__}", "a path or a name", "Give Python objects to bertology.corpus"
        )
    if not path_exists(path):
        return load_corpus(str(path), format, skip_malformed=skip_malformed, limit=limit, **options)
    path = Path(path)
    format_reader = find_reader(path, format, options)
    errors = ParseErrorHandler(skip_malformed=skip_malformed)
    examples = tuple(islice(format_reader.function(path, errors, **options), limit))
    if not examples:
        skipped = f" ({len(errors.skipped)} skipped)" if errors.skipped else ""
        raise Refusal(
            f"{path} contains no examples{skipped}",
            f"at least one example in the format {format_reader.name} ({format_reader.description})",
            "Check that the file is not empty and that --format names its format",
        )
    return Corpus(
        fill_optional_annotations(examples, set()),
        name=path.name,
        format=format_reader.name,
        skipped=tuple(errors.skipped),
    )


def first_lines(path: Path) -> tuple[str, ...]:
    """Return up to 40 non-blank lines from the beginning of a file; none if it is a directory or not text."""
    if not path.is_file():
        return ()
    status = path.stat()
    return _first_lines(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=32)
def _first_lines(path: Path, mtime_ns: int, size: int) -> tuple[str, ...]:
    beginning: list[str] = []
    n_characters = 0
    try:
        for _, line in lines(path, ParseErrorHandler()):
            if line.strip():
                beginning.append(line[:MAX_CHARACTERS])
            n_characters += len(line)
            if len(beginning) == MAX_LINES or n_characters > MAX_CHARACTERS:
                break
    except Refusal:
        return ()
    return tuple(beginning)


def first_lines_text(path: Path) -> str:
    """Return the first non-blank lines as one text."""
    return "\n".join(first_lines(path))


def format_suffix(path: Path) -> str:
    """Return the last suffix that is not a compression suffix: `.txt` of `a.txt.xz`."""
    suffixes = [suffix for suffix in path.suffixes if suffix not in OPENERS]
    return suffixes[-1].lower() if suffixes else ""


def find_files(path: Path, pattern: str) -> list[Path]:
    """Return the files below a directory whose full name matches the pattern, sorted; a file is returned as it is."""
    if not path.is_dir():
        return [path]
    name = re.compile(pattern)
    return sorted(file for file in path.rglob("*") if file.is_file() and name.fullmatch(file.name))


def find_reader(path: Path, format: str | None, options: Mapping[str, Any]) -> Reader:
    """Return the reader of a format, or of the format that the path determines; options it lacks are refused."""
    format_reader = _detect_format(path) if format is None else _find_reader(format)
    if options:
        check_options(format_reader.function, options, f"format {format_reader.name}")
    return format_reader


def _find_reader(format: str) -> Reader:
    """Return the reader of a format, importing only its module if it is one of this package."""
    if format not in _readers and format.isidentifier() and find_spec(f"{READERS_PACKAGE}.{format}"):
        importlib.import_module(f"{READERS_PACKAGE}.{format}")
    if format not in _readers and format not in readers():
        raise unknown_name("corpus format", format, readers(), remedy="See `bertology list corpora`")
    return _readers[format]


def _detect_format(path: Path) -> Reader:
    """Return the reader that the suffix determines, or else the first whose `matches` accepts the path."""
    suffix = format_suffix(path)
    by_suffix = [r for r in readers().values() if suffix in r.suffixes]
    is_specific = suffix not in GENERIC_SUFFIXES
    if is_specific and len(by_suffix) == 1:
        return by_suffix[0]
    others = [r for r in readers().values() if r not in by_suffix]
    for candidate in [*by_suffix, *others] if is_specific else readers().values():
        if candidate.matches is not None and candidate.matches(path):
            return candidate
    if by_suffix and (is_specific or len(by_suffix) == 1):
        return by_suffix[0]
    raise Refusal(
        f"The name and content of {path.name!r} do not determine its format",
        f"one of the formats {', '.join(r.name for r in by_suffix or readers().values())}",
        "Name the format with --format; `bertology list corpora` describes all formats",
    )


def fill_optional_annotations(examples: tuple[Example, ...], present: set[str]) -> tuple[Example, ...]:
    """Make an annotation that some segments have empty, rather than absent, in the others.

    A sentence without entities in a file annotated with entities shows this only by the absence of the annotation.
    `present` are the annotations of earlier parts of the file; those of these examples are added to it.
    """
    segments = [segment for example in examples for segment in example.segments]
    present |= {
        name for name in OPTIONAL_ANNOTATIONS if any(getattr(segment, name) is not None for segment in segments)
    }
    if not present:
        return examples

    def fill(segment: Sentence) -> Sentence:
        missing = [name for name in present if getattr(segment, name) is None]
        empty: dict[str, Any] = {name: (None,) * len(segment) if name == "senses" else () for name in missing}
        return replace(segment, **empty) if empty else segment

    return tuple(replace(example, segments=tuple(map(fill, example.segments))) for example in examples)


BUILTIN_CORPORA: dict[str, str] = {
    "english": "356 sentences in 28 short documents: dependency trees, entities, coreference, word senses",
    "chinese": "60 sentences in 6 short documents: dependency trees, entities, coreference",
    "diagnostic": "291 NLI pairs in the format of the GLUE diagnostic set, by category and sub-type",
}
PAIR_CORPORA = {"diagnostic"}
"""Built-in corpora of sentence pairs; the others are treebanks."""


def as_corpus(value: object) -> Corpus:
    """Return the corpus that the value is, names or contains.

    The value is a Corpus, the name or path of one, or Python objects that `bertology.corpus` takes: a list of texts, a
    data frame, a dataset ...
    """
    if isinstance(value, Corpus):
        return value
    if isinstance(value, Path) or (isinstance(value, str) and "\n" not in value):
        return load_corpus(str(value))
    if isinstance(value, list) and value and all(isinstance(text, str) and text.strip() for text in value):
        return Corpus(TextExamples(tuple(value)), name="text")
    from bertology.corpus.from_objects import build_corpus

    return build_corpus(value)


def is_corpus_name(text: str) -> bool:
    """Whether the text is the name of a built-in, generated or hub corpus, or an existing path."""
    if "\n" in text:
        return False
    return text in BUILTIN_CORPORA or text.startswith(NAME_PREFIXES) or path_exists(text)


def load_corpus(
    name: str, format: str | None = None, *, skip_malformed: bool = False, limit: int | None = None, **options: Any
) -> Corpus:
    """Load a built-in corpus, a generated one (`generated:agreement@7:200`), or a file or directory.

    `tasks:bigram_shift:NAME` is a probing task derived from any of these; `limit` counts the examples of the task.
    `datasets:NAME[@CONFIGURATION][:SPLIT]` is a data set of the Hugging Face hub; its `options` name columns.
    """
    is_path = path_exists(name)
    if name.startswith(TASKS_PREFIX) and not is_path:
        task, seed, source = parse_task_address(name)
        corpus = load_corpus(source, format, skip_malformed=skip_malformed, **options)
        return build_task_corpus(task, corpus, seed)[:limit]
    if name.startswith(DATASETS_PREFIX) and not is_path:
        from bertology.corpus.from_objects import load_dataset_corpus

        return load_dataset_corpus(name, skip_malformed=skip_malformed, limit=limit, **options)
    if name.startswith(GENERATED_PREFIX) and format is None and not is_path:
        return load_generated(name, limit=limit, **options)
    if name in BUILTIN_CORPORA and not is_path:
        suffix, builtin_format = ("tsv", "glue_diagnostic") if name in PAIR_CORPORA else ("conllu", "conllu")
        if format not in {None, builtin_format}:
            raise Refusal(
                f"The built-in corpus {name} does not have the format {format!r}", builtin_format, "Omit --format"
            )
        with resources.as_file(resources.files("bertology.corpus") / "data" / f"{name}.{suffix}") as path:
            return read(path, builtin_format, skip_malformed=skip_malformed, limit=limit, **options)
    if not is_path and format is None and "/" not in name and "." not in name:
        names = [*BUILTIN_CORPORA, *(GENERATED_PREFIX + generator for generator in generators())]
        remedy = "Or give the path of a file or directory; in Python, put texts into a list: [text]"
        raise unknown_name("built-in corpus", name[:60], names, remedy=remedy)
    if not is_path:
        is_text = " " in name
        raise Refusal(
            f"{name[:60]!r} does not exist" if is_text else f"{shorten_name(name)} does not exist",
            "a corpus file, directory or built-in name",
            "Check the path; in Python, put texts into a list: [text]" if is_text else "Check the path",
        )
    return read(name, format, skip_malformed=skip_malformed, limit=limit, **options)


def list_corpora() -> list[dict[str, Any]]:
    """Return the built-in corpora, generators, probing tasks and formats, for `bertology list corpora`."""
    rows: list[tuple[str, str, str, dict[str, Any]]] = [
        *((name, "built-in corpus", text, {}) for name, text in BUILTIN_CORPORA.items()),
        *(
            (GENERATED_PREFIX + g.name, "generated corpus", g.description, {"options": [*function_options(g.function)]})
            for g in generators().values()
        ),
        *((f"{TASKS_PREFIX}{t.name}:CORPUS", "probing task", t.description, {}) for t in probing_tasks().values()),
        *(
            (r.name, "format", r.description, {"suffixes": list(r.suffixes), "example": r.example})
            for r in readers().values()
        ),
    ]
    return [{"name": name, "kind": kind, "description": text, **fields} for name, kind, text, fields in rows]
