"""Recordings from .npz files of other programs: `attention` (or `attn`) and `tokens` (or `left`) in each file.

A JSON-lines file in the same folder may hold words and a parse: {"file", "words", "heads" (governors counted from 1, 0
for the root), "relations"}, and optionally "label" and "id". If it exists, only the files it names belong to the
recording; others are counted and skipped, since a folder may hold attention of several models.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bertology.arrays import Array
from bertology.corpus.readers.conllu import check_tree
from bertology.corpus.sentence import Sentence, sentence_from_words
from bertology.corpus.text_files import ParseError
from bertology.errors import Refusal
from bertology.recording.from_arrays import from_arrays
from bertology.recording.recording import Recording

ARRAY_KEYS: dict[str, tuple[str, ...]] = {
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
    annotated = _read_annotations(sorted(path.glob("*.jsonl"))) if path.is_dir() else {}
    missing = sorted(annotated.keys() - {file.name for file in files})
    if missing:
        raise Refusal(
            f"{path / missing[0]} is missing",
            "every file named in the JSON-lines file",
            "Add the file, or remove its line",
        )
    used = [file for file in files if file.name in annotated] if annotated else files
    archives = [_load(file) for file in used]
    try:
        recording = from_arrays(
            [arrays["tokens"].tolist() for arrays in archives],
            attention=_collect_arrays("attention", used, archives),
            hidden=_collect_arrays("hidden", used, archives),
            words=[annotated[file.name] for file in used] if annotated else None,
            name=_model_name(path, archives),
            corpus=path.name,
            renormalise=renormalise,
        )
    except Refusal as refusal:
        location = f"{path} (input 1 is {used[0].name}, and so on by name)" if len(used) > 1 else str(path)
        raise Refusal(refusal.problem, refusal.expected, refusal.remedy, location=location) from refusal
    counts = dict(recording.counts)
    if len(files) > len(used):
        counts["files without words skipped"] = len(files) - len(used)
    return replace(recording, counts=counts)


def _load(file: Path) -> dict[str, Array]:
    try:
        # Opened here, because NumPy does not close a file that turns out not to be an archive.
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
            arrays = {key: archive[key] for key in archive.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise Refusal(
            f"{file} cannot be read ({error})",
            "an .npz file of plain arrays, without pickled objects",
            "Save it again with numpy.savez(file, attention=..., tokens=numpy.array(tokens))",
        ) from error
    by_name = {name: next((arrays[key] for key in keys if key in arrays), None) for name, keys in ARRAY_KEYS.items()}
    tokens = by_name["tokens"]
    if tokens is None or tokens.ndim != 1 or tokens.dtype.kind != "U":
        raise Refusal(
            f"{file} has no list of tokens (it has: {', '.join(sorted(arrays)) or 'nothing'})",
            "an array of strings called `tokens` (or `left`)",
            "Save the tokens together with the attention",
        )
    model = {"model": arrays["model"]} if "model" in arrays else {}
    return {name: array for name, array in by_name.items() if array is not None} | model


def _collect_arrays(name: str, files: list[Path], archives: list[dict[str, Array]]) -> list[Array] | None:
    present = [name in arrays for arrays in archives]
    if any(present) and not all(present):
        file = files[present.index(False)]
        raise Refusal(f"{file} has no {name}, but other files in its folder do", f"{name} in every file", "Remove it")
    return [arrays[name] for arrays in archives] if all(present) else None


def _model_name(path: Path, archives: list[dict[str, Array]]) -> str:
    names = {str(np.ravel(arrays["model"])[0]) if "model" in arrays else "" for arrays in archives}
    if len(names) > 1:
        raise Refusal(
            f"{path} holds attention of several models ({', '.join(sorted(name or 'unnamed' for name in names))})",
            "files of one model",
            "Put the files of each model into a separate folder",
        )
    return next(iter(names)) or (path.stem if path.is_file() else path.name)


def _read_annotations(files: Iterable[Path]) -> dict[str, Sentence]:
    sentences: dict[str, Sentence] = {}
    for file in files:
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            if line.strip():
                name, sentence = _parse_annotation(line, f"{file}, line {number}")
                sentences[name] = sentence
    return sentences


def _parse_annotation(line: str, location: str) -> tuple[str, Sentence]:
    try:
        data: Mapping[str, Any] = json.loads(line)
        sentence = sentence_from_words(data["words"], id=str(data.get("id", "")))
        governors, relations = data.get("heads"), data.get("relations")
        if governors is not None:
            governors = tuple(int(governor) - 1 for governor in governors)
            check_tree(governors, range(len(sentence)))
        lengths = {len(sentence), *(len(values) for values in (governors, relations) if values is not None)}
        if len(lengths) > 1:
            raise ValueError("words, heads and relations differ in number")
        return data["file"], replace(
            sentence,
            governors=governors,
            relations=None if relations is None else tuple(relations),
            label=None if data.get("label") is None else str(data["label"]),
        )
    except (ParseError, ValueError, KeyError, TypeError) as error:
        reason = error.problem if isinstance(error, ParseError) else f"{type(error).__name__}: {error}"
        raise Refusal(
            f"This line does not describe an input ({reason})",
            'a line such as {"file": "a.npz", "words": ["She", "ran"], "heads": [2, 0], "relations": ["a", "b"]}',
            "Correct the line",
            location=location,
        ) from error
