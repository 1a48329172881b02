"""Folders of .npz files that somebody else saved: `attention` (or `attn`) and `tokens` (or `left`) in each.

A JSON-lines file beside them may give words and a parse: {"file", "words", "heads" (1-based, 0 the root), "relations"},
and "label" and "id" where there are any. Where it is there it says which files belong to the recording; others are
counted and left out, since a folder may hold maps of several models.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bertology.corpus.faults import Fault
from bertology.corpus.sentence import Sentence, sentence
from bertology.corpus.trees import check_tree
from bertology.errors import Refusal
from bertology.recording.foreign import from_arrays
from bertology.recording.recording import Recording
from bertology.recording.shards import Array

KEYS: dict[str, tuple[str, ...]] = {
    "tokens": ("tokens", "left"),
    "attention": ("attention", "attn", "attentions"),
    "hidden": ("hidden", "hidden_states"),
}


def has_arrays(path: Path) -> bool:
    """Whether this is an .npz file or a folder of them."""
    return (path.suffix == ".npz" and path.is_file()) or (path.is_dir() and any(path.glob("*.npz")))


def open_arrays(path: Path, *, renormalise: bool = False) -> Recording:
    """The recording in a folder of .npz files, or in one such file."""
    files = sorted(path.glob("*.npz")) if path.is_dir() else [path]
    described = _described(sorted(path.glob("*.jsonl"))) if path.is_dir() else {}
    absent = sorted(described.keys() - {file.name for file in files})
    if absent:
        raise Refusal(f"{path / absent[0]} is missing", "every file named in the JSON-lines file", "Put it there")
    chosen = [file for file in files if file.name in described] if described else files
    loaded = [_load(file) for file in chosen]
    try:
        recording = from_arrays(
            [arrays["tokens"].tolist() for arrays in loaded],
            attention=_one_each("attention", chosen, loaded),
            hidden=_one_each("hidden", chosen, loaded),
            words=[described[file.name] for file in chosen] if described else None,
            name=_model_name(path, chosen, loaded),
            corpus=path.name,
            renormalise=renormalise,
        )
    except Refusal as refusal:
        raise _with_file(refusal, path, chosen) from refusal
    counts = dict(recording.counts)
    if len(files) > len(chosen):
        counts["files without words left out"] = len(files) - len(chosen)
    return replace(recording, counts=counts)


def _with_file(refusal: Refusal, path: Path, files: list[Path]) -> Refusal:
    listing = ", ".join(f"input {number + 1} is {file.name}" for number, file in enumerate(files[:1]))
    where = f"{path} ({listing}, and so on in order of name)" if len(files) > 1 else str(path)
    return Refusal(refusal.found, refusal.expected, refusal.remedy, where=where)


def _load(file: Path) -> dict[str, Array]:
    try:
        # Opened here, since NumPy does not close a file that turns out to be no archive.
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            found = {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise Refusal(
            f"{file} cannot be read ({error})",
            "an .npz file of plain arrays, without pickled objects",
            "Save it again with numpy.savez(file, attention=..., tokens=numpy.array(tokens))",
        ) from error
    named = {name: next((found[key] for key in keys if key in found), None) for name, keys in KEYS.items()}
    tokens = named["tokens"]
    if tokens is None or tokens.ndim != 1 or tokens.dtype.kind != "U":
        raise Refusal(
            f"{file} has no list of tokens (it has {', '.join(sorted(found)) or 'nothing'})",
            "an array of strings called `tokens` (or `left`)",
            "Save the tokens beside the attention",
        )
    model = {"model": found["model"]} if "model" in found else {}
    return {name: array for name, array in named.items() if array is not None} | model


def _one_each(name: str, files: list[Path], loaded: list[dict[str, Array]]) -> list[Array] | None:
    having = [name in arrays for arrays in loaded]
    if any(having) and not all(having):
        lacking = files[having.index(False)]
        raise Refusal(f"{lacking} has no {name}, others in its folder do", f"{name} in every file", "Leave it out")
    return [arrays[name] for arrays in loaded] if all(having) else None


def _model_name(path: Path, files: list[Path], loaded: list[dict[str, Array]]) -> str:
    names = {str(np.ravel(arrays["model"])[0]) if "model" in arrays else "" for arrays in loaded}
    if len(names) > 1:
        raise Refusal(
            f"{path} holds maps of several models ({', '.join(sorted(name or 'unnamed' for name in names))})",
            "files of one model",
            "Put each model's files into a folder of their own",
        )
    return next(iter(names)) or (path.stem if path.is_file() else path.name)


def _described(files: Iterable[Path]) -> dict[str, Sentence]:
    found: dict[str, Sentence] = {}
    for file in files:
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            if line.strip():
                name, described = _described_line(line, f"{file}, line {number}")
                found[name] = described
    return found


def _described_line(line: str, where: str) -> tuple[str, Sentence]:
    try:
        data: Mapping[str, Any] = json.loads(line)
        own = sentence(data["words"], id=str(data.get("id", "")))
        heads, relations = data.get("heads"), data.get("relations")
        if heads is not None:
            heads = tuple(int(head) - 1 for head in heads)
            check_tree(heads, range(len(own)))
        lengths = {len(own), *(len(layer) for layer in (heads, relations) if layer is not None)}
        if len(lengths) > 1:
            raise ValueError("words, heads and relations differ in number")
        return data["file"], replace(
            own,
            heads=heads,
            relations=None if relations is None else tuple(relations),
            label=None if data.get("label") is None else str(data["label"]),
        )
    except (Fault, ValueError, KeyError, TypeError) as error:
        reason = error.found if isinstance(error, Fault) else f"{type(error).__name__}: {error}"
        raise Refusal(
            f"This line describes no input ({reason})",
            'a line such as {"file": "a.npz", "words": ["She", "ran"], "heads": [2, 0], "relations": ["a", "b"]}',
            "Correct the line",
            where=where,
        ) from error
