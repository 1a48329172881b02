"""Recordings from .npz files of other programs: `attention` (or `attn`) and `tokens` (or `left`) in each file.

A JSON-lines file in the same folder may hold words and annotations: {"file", "words"} and any annotation of `Sentence`
by its name. Word indices count from 0 and spans are [start, end, label] with an exclusive end; `heads` are governors as
in CoNLL-U, counted from 1, 0 for the root. A pair has two such objects as "segments". `source` and `factors` are those
of `Example`. If the file exists, only the .npz files it names belong to the recording; others are counted and skipped,
since a folder may hold attention of several models.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

import numpy as np

from bertology.arrays import Array
from bertology.atomic_files import write_atomically
from bertology.corpus.example import Example
from bertology.corpus.readers.conllu import check_tree
from bertology.corpus.sentence import (
    ANNOTATIONS,
    LABEL_FIELDS,
    SPAN_ANNOTATIONS,
    WORD_ANNOTATIONS,
    SemanticFrame,
    Sentence,
    Span,
    locate_words,
    sentence_from_words,
)
from bertology.corpus.stored_examples import check_example
from bertology.corpus.text_files import ParseError
from bertology.encoder.tokens import SpecialToken
from bertology.errors import Refusal, unknown_name
from bertology.folder_lock import folder_lock
from bertology.input_files import load_arrays, parse_json_text, read_bytes, unreadable
from bertology.recording.from_arrays import from_arrays
from bertology.recording.recording import Recording

ARRAY_KEYS: dict[str, tuple[str, ...]] = {
    "tokens": ("tokens", "left"),
    "attention": ("attention", "attn", "attentions"),
    "hidden": ("hidden", "hidden_states"),
}


OPTIONAL_KEYS = ("model", "special_kinds", "attention_windows")
"""Further arrays: the name of the model, the kind of each token, and the attention window of each layer."""
NO_WINDOW = -1
ANNOTATIONS_FILE = "inputs.jsonl"
EXAMPLE_FIELDS = ("kind", "source", "factors", "labels")
SEGMENT_FIELDS = ("words", "text", "id", "document", "heads", *ANNOTATIONS, "marked_words", *LABEL_FIELDS)


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
            attention_windows=_attention_windows(archives[0]),
            renormalise=renormalise,
            special_tokens=_special_tokens(archives),
        )
    except Refusal as refusal:
        location = f"{path} (input 1 is {used[0].name}, and so on by name)" if len(used) > 1 else str(path)
        raise Refusal(refusal.problem, refusal.expected, refusal.remedy, location=location) from refusal
    counts = dict(recording.counts)
    if len(files) > len(used):
        counts["files without words skipped"] = len(files) - len(used)
    return replace(recording, counts=counts)


def _load(file: Path) -> dict[str, Array]:
    arrays = load_arrays(
        file, "an .npz file of plain arrays, as numpy.savez(file, attention=..., tokens=...) writes it"
    )
    by_name = {name: next((arrays[key] for key in keys if key in arrays), None) for name, keys in ARRAY_KEYS.items()}
    tokens = by_name["tokens"]
    if tokens is None or tokens.ndim != 1 or tokens.dtype.kind != "U":
        raise Refusal(
            f"{file} has no list of tokens (it has: {', '.join(sorted(arrays)) or 'nothing'})",
            "an array of strings called `tokens` (or `left`)",
            "Save the tokens together with the attention",
        )
    if not all(_is_encodable(token) for token in tokens.tolist()):
        raise Refusal(f"{file} has a token with an unpaired surrogate", "text that UTF-8 can encode", "Correct it")
    optional = {key: arrays[key] for key in OPTIONAL_KEYS if key in arrays}
    _check_optional(file, optional, len(tokens))
    return {name: array for name, array in by_name.items() if array is not None} | optional


def _check_optional(file: Path, arrays: Mapping[str, Array], n_tokens: int) -> None:
    """Refuse a name, kinds of tokens or attention windows that are none."""
    model, kinds, windows = (arrays.get(name) for name in OPTIONAL_KEYS)
    if model is not None and (model.dtype.kind != "U" or not model.size or not _is_encodable(str(model.flat[0]))):
        raise Refusal(f"{file} has a `model` that is no name", "an array with one string", "Save the model's name")
    valid_kinds = [int(kind) for kind in SpecialToken]
    if kinds is not None and (
        kinds.dtype.kind not in "iu" or kinds.shape != (n_tokens,) or not np.isin(kinds, valid_kinds).all()
    ):
        raise Refusal(
            f"{file} has `special_kinds` of type {kinds.dtype} and shape {kinds.shape}",
            f"one whole number for each of {n_tokens} tokens, of {', '.join(map(str, valid_kinds))}",
            "Leave `special_kinds` out, or save one for each token",
        )
    if windows is not None and (windows.dtype.kind not in "iu" or windows.ndim != 1 or (windows < NO_WINDOW).any()):
        raise Refusal(
            f"{file} has `attention_windows` of type {windows.dtype} and shape {windows.shape}",
            f"one whole number for each layer, {NO_WINDOW} for a layer without a window",
            "Leave `attention_windows` out if no layer has a window",
        )


def _is_encodable(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _attention_windows(arrays: Mapping[str, Array]) -> list[int | None]:
    windows: list[int] = arrays["attention_windows"].tolist() if "attention_windows" in arrays else []
    return [None if window == NO_WINDOW else window for window in windows]


def _special_tokens(archives: Iterable[Mapping[str, Array]]) -> dict[str, SpecialToken]:
    """The special tokens of files that say the kind of each token."""
    return {
        token: SpecialToken(kind)
        for arrays in archives
        if "special_kinds" in arrays
        for token, kind in zip(arrays["tokens"].tolist(), arrays["special_kinds"].tolist(), strict=True)
        if kind != SpecialToken.NONE
    }


def _collect_arrays(name: str, files: list[Path], archives: list[dict[str, Array]]) -> list[Array] | None:
    present = [name in arrays for arrays in archives]
    if any(present) and not all(present):
        file = files[present.index(False)]
        raise Refusal(f"{file} has no {name}, but other files in its folder do", f"{name} in every file", "Remove it")
    return [arrays[name] for arrays in archives] if all(present) else None


def _model_name(path: Path, archives: list[dict[str, Array]]) -> str:
    names = {str(arrays["model"].flat[0]) if "model" in arrays else "" for arrays in archives}
    if len(names) > 1:
        raise Refusal(
            f"{path} holds attention of several models ({', '.join(sorted(name or 'unnamed' for name in names))})",
            "files of one model",
            "Put the files of each model into a separate folder",
        )
    return next(iter(names)) or (path.stem if path.is_file() else path.name)


def _read_annotations(files: Iterable[Path]) -> dict[str, Example]:
    inputs: dict[str, Example] = {}
    for file in files:
        for number, line in enumerate(_read_text(file).splitlines(), 1):
            if line.strip():
                name, example = _parse_line(line, f"{file}, line {number}")
                inputs[name] = example
    return inputs


def _read_text(file: Path) -> str:
    try:
        return read_bytes(file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise unreadable(file, error, "JSON lines in UTF-8") from error


def _parse_line(line: str, location: str) -> tuple[str, Example]:
    try:
        data: dict[str, Any] = parse_json_text(line)
        file = str(data.pop("file"))
        own = {name: data.pop(name) for name in EXAMPLE_FIELDS if name in data}
        shared = {name: data[name] for name in ("label", "id") if data.get(name) is not None}
        if "segments" in data:
            segments = tuple(_parse_segment(segment) for segment in data.pop("segments"))
            for name in data.keys() - shared.keys():
                raise unknown_name("field of a line with segments", name, ("file", "segments", "label", "id", *own))
        else:
            segments = (_parse_segment(data),)
        default_kind = "pair" if len(segments) > 1 else "sentence"
        example = Example(
            segments,
            own.get("kind", default_kind),
            str(shared["label"]) if "label" in shared else None,
            str(shared.get("id", "")),
            str(own.get("source", "")),
            *(
                MappingProxyType({str(key): str(value) for key, value in own.get(name, {}).items()})
                for name in ("factors", "labels")
            ),
        )
        check_example(example)
        return file, example
    except Refusal as refusal:
        raise Refusal(refusal.problem, refusal.expected, refusal.remedy, location=location) from refusal
    except (ParseError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        reason = error.problem if isinstance(error, ParseError) else f"{type(error).__name__}: {error}"
        raise Refusal(
            f"This line does not describe an input ({reason})",
            'a line such as {"file": "a.npz", "words": ["She", "ran"], "heads": [2, 0], "relations": ["a", "b"]}',
            "Correct the line",
            location=location,
        ) from error


def _parse_segment(data: Mapping[str, Any]) -> Sentence:
    """The words and annotations of one segment; a field that is not known is refused."""
    for name in data:
        if name not in SEGMENT_FIELDS:
            raise unknown_name("annotation", name, SEGMENT_FIELDS)
    words = [str(word) for word in data["words"]]
    values: dict[str, Any] = {name: data[name] for name in ANNOTATIONS if data.get(name) is not None}
    if data.get("heads") is not None:
        if "governors" in values:
            raise ValueError("both heads and governors")
        values["governors"] = [int(head) - 1 for head in data["heads"]]
    for name in values.keys() & set(WORD_ANNOTATIONS):
        values[name] = tuple(values[name])
        if len(values[name]) != len(words):
            raise ValueError(f"words and {name} differ in number: {len(words)} and {len(values[name])}")
    if "governors" in values:
        check_tree(values["governors"], range(len(words)))
    for name in values.keys() & set(SPAN_ANNOTATIONS):
        values[name] = tuple(_parse_span(span, name, len(words)) for span in values[name])
    if "frames" in values:
        values["frames"] = tuple(_parse_frame(frame, len(words)) for frame in values["frames"])
    if "label" in values:
        values["label"] = str(values["label"])
    marked = {str(role): tuple(map(int, marked)) for role, marked in (data.get("marked_words") or {}).items()}
    _check_word_indices((word for role in marked.values() for word in role), "marked_words", len(words))
    word_labels = {str(name): tuple(map(str, labels)) for name, labels in (data.get("word_labels") or {}).items()}
    for name, labels in word_labels.items():
        if len(labels) != len(words):
            raise ValueError(f"words and {name} differ in number: {len(words)} and {len(labels)}")
    span_labels = {
        str(name): tuple(_parse_span(span, str(name), len(words)) for span in spans)
        for name, spans in (data.get("span_labels") or {}).items()
    }
    text = data.get("text")
    sentence = sentence_from_words(words, id=str(data.get("id") or ""))
    offsets = None if text is None else locate_words(words, text)
    if text is not None and offsets is None:
        raise ValueError("the text does not consist of the words")
    return replace(
        sentence,
        text=sentence.text if text is None else text,
        offsets=offsets or sentence.offsets,
        document=str(data.get("document") or ""),
        marked_words=MappingProxyType(marked),
        word_labels=MappingProxyType(word_labels),
        span_labels=MappingProxyType(span_labels),
        **values,
    )


def _parse_span(span: Sequence[Any], name: str, n_words: int) -> Span:
    start, end, *label = span
    _check_word_indices((int(start), int(end) - 1), name, n_words)
    if int(start) >= int(end):
        raise ValueError(f"{name} has an empty span: {list(span)}")
    return Span(int(start), int(end), *map(str, label))


def _parse_frame(frame: Mapping[str, Any], n_words: int) -> SemanticFrame:
    predicate = int(frame["predicate"])
    _check_word_indices((predicate,), "frames", n_words)
    arguments = tuple(_parse_span(span, "frames", n_words) for span in frame["arguments"])
    return SemanticFrame(predicate, str(frame.get("sense", "")), arguments)


def _check_word_indices(indices: Iterable[int], name: str, n_words: int) -> None:
    for index in indices:
        if not 0 <= index < n_words:
            raise ValueError(f"{name} has the word {index} of {n_words} words, counted from 0")


def save_arrays(recording: Recording, folder: Path) -> Path:
    """Write the attention and hidden states of a recording as .npz files, with words and annotations beside them."""
    sites = [site for site in ("attention", "hidden") if site in recording.sites]
    if not sites:
        raise Refusal(
            f"The recording of {recording.encoder.name} has neither attention nor hidden states",
            "a recording of one of them",
            "Record it with --sites attention",
        )
    kinds = {example.kind for example in recording.corpus if len(example.text_inputs) != 1}
    if kinds:
        raise Refusal(
            f"The recording has examples of kind {', '.join(sorted(kinds))}, which have several inputs",
            "sentences, pairs or questions",
            "Record the corpus into a folder with `bertology record`",
        )
    with folder_lock(folder):  # a second writer waits, and then finds the files of the first
        if any(folder.iterdir()):
            raise Refusal(f"{folder} is not empty", "a new folder", "Choose another folder, or empty this one")
        _write_arrays(recording, folder, sites)
    return folder


def _write_arrays(recording: Recording, folder: Path, sites: Sequence[str]) -> None:
    width = len(str(len(recording)))
    lines: list[str] = []
    for index, recorded in enumerate(recording.inputs):
        name = f"{index + 1:0{width}}.npz"
        arrays: dict[str, Any] = {site: np.asarray(recording[site][index]) for site in sites}
        arrays |= {
            "tokens": np.array(recorded.tokens.tokens, np.str_),
            "special_kinds": recorded.tokens.special_kinds,
            "model": np.array([recording.encoder.name], np.str_),
        }
        if recording.encoder.attention_windows:
            windows = [NO_WINDOW if w is None else w for w in recording.encoder.attention_windows]
            arrays["attention_windows"] = np.array(windows, np.int64)
        buffer = BytesIO()
        np.savez(buffer, **arrays)
        write_atomically(folder / name, buffer.getvalue())
        example = replace(recording.corpus[recorded.example_index], segments=recorded.text.segments)
        lines.append(json.dumps({"file": name, **_example_to_json(example)}, ensure_ascii=False))
    write_atomically(folder / ANNOTATIONS_FILE, "".join(f"{line}\n" for line in lines).encode())


def _example_to_json(example: Example) -> dict[str, Any]:
    first, *others = segments = [_segment_to_json(segment) for segment in example.segments]
    fields = {"label": example.label, "id": example.id, "source": example.source}
    fields |= {"factors": dict(example.factors), "labels": dict(example.labels)}
    fields = {name: value for name, value in fields.items() if value}
    is_plain = not others and all(first.get(name) == fields.get(name) for name in ("label", "id"))
    return {**fields, **first} if is_plain else {"kind": example.kind, **fields, "segments": segments}


def _segment_to_json(segment: Sentence) -> dict[str, Any]:
    values = {name: getattr(segment, name) for name in SEGMENT_FIELDS if name != "heads"}
    present = {name: value for name, value in values.items() if value not in (None, "", {})}
    return {name: _to_json(value) for name, value in present.items()}


def _to_json(value: Any) -> Any:
    if isinstance(value, Span):
        return [value.start, value.end, value.label]
    if isinstance(value, SemanticFrame):
        arguments = [_to_json(argument) for argument in value.arguments]
        return {"predicate": value.predicate, "sense": value.sense, "arguments": arguments}
    if isinstance(value, tuple):
        return [_to_json(element) for element in cast("tuple[Any, ...]", value)]
    if isinstance(value, Mapping):
        return {name: _to_json(element) for name, element in cast("Mapping[str, Any]", value).items()}
    return value
