"""Corpora that come with the package, by name; any other name is a path."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Any

from bertology.corpus.corpus import Corpus
from bertology.corpus.read import read, readers
from bertology.errors import Refusal, unknown_name

BUILT_IN: dict[str, str] = {
    "english": "short documents of many genres with trees, entities, coreference and senses",
}


def corpus_named(
    name: str, format: str | None = None, *, skip_bad: bool = False, limit: int | None = None, **options: Any
) -> Corpus:
    """The built-in corpus of that name, or the one at that path."""
    if name in BUILT_IN and not Path(name).exists():
        with resources.as_file(resources.files("bertology.corpus") / "data" / f"{name}.conllu") as path:
            return read(path, "conllu", skip_bad=skip_bad, limit=limit, **options)
    if not Path(name).exists() and format is None and "/" not in name and "." not in name:
        raise unknown_name("built-in corpus", name, BUILT_IN, remedy="Or give the path of a file or folder")
    if not Path(name).exists():
        raise Refusal(f"{name} does not exist", "a corpus file, folder or built-in name", "Check the path")
    return read(name, format, skip_bad=skip_bad, limit=limit, **options)


def describe() -> list[dict[str, Any]]:
    """The built-in corpora and the formats that can be read, for `bertology list corpora`."""
    built_in = [{"name": name, "kind": "built-in corpus", "about": about} for name, about in BUILT_IN.items()]
    formats = [
        {"name": r.name, "kind": "format", "about": r.about, "suffixes": list(r.suffixes), "example": r.example}
        for r in readers().values()
    ]
    return built_in + formats
