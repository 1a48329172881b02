"""Strict keys of cached values: the function, its code, every argument by content, and the versions of libraries.

Nothing is left out by choice. A value of a type that is not known here is an error, not an omission.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import json
import types
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from bertology.atomic_files import digest_bytes, digest_file
from bertology.corpus.sentence import OffsetArray
from bertology.corpus.text_examples import TextExamples
from bertology.lazy import torch
from bertology.results.result import versions

PACKAGE = "bertology"
PACKAGES_ABOVE = {"claims", "cli", "views", "atlas", "server"}
"""Packages of bertology that no analysis imports: its numbers cannot depend on them."""
CODE_SUFFIXES = {".py", ".toml", ".json", ".txt"}
MAX_SHOWN = 300
"""Descriptions of arguments longer than this are replaced by their digest."""

_SCALARS = (type(None), bool, int, float, str)
_DIGEST = "_content_digest"


def cache_key(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The key of a call as JSON: readable where an argument is short, a digest where it is long."""
    return {
        "function": _name(function),
        "arguments": {name: _shorten(describe_value(value)) for name, value in arguments.items()},
        "code": code_digest(PACKAGE) + _foreign_code(function.__module__),
        "versions": dict(_installed()),
    }


def describe_value(value: Any) -> Any:
    """The content of a value as JSON, so that different values have different descriptions.

    Encoders are described by their fingerprint, arrays and files by a digest of their bytes, dataclasses by all of
    their fields, functions by name and by the values that they close over.
    """
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Enum):
        return {"enum": _name(type(value)), "member": value.name}
    if isinstance(value, str | int | float):
        return {"value": _name(type(value)), "is": repr(value)}
    if isinstance(value, np.generic | np.ndarray):
        return _describe_array("array", np.asarray(value))
    if isinstance(value, bytes):
        return {"bytes": digest_bytes(value)}
    if isinstance(value, Path):
        return describe_path(value)
    if isinstance(value, Mapping):
        return {"mapping": [[describe_value(key), describe_value(item)] for key, item in value.items()]}
    if isinstance(value, Set):
        return {"set": sorted(_dump(describe_value(item)) for item in value)}
    if isinstance(value, tuple | list | range | OffsetArray | TextExamples):
        return [item if type(item) in _SCALARS else describe_value(item) for item in value]
    return _describe_object(value)


def describe_path(path: Path) -> dict[str, Any]:
    """The content of a file; of a folder, such as that of a model, the names, sizes and times of its files."""
    if path.is_dir():
        files = [(file.name, file.stat()) for file in sorted(path.iterdir()) if file.is_file()]
        listing = [(name, status.st_size, status.st_mtime_ns) for name, status in files]
        return {"folder": digest_bytes(_dump(listing).encode())}
    return {"file": digest_file(path)} if path.is_file() else {"missing file": str(path)}


def files_in_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """The content of every file that the text of an option may name, such as treebank.conllu or glove:vectors.txt."""
    texts = [value for value in options.values() if isinstance(value, str)]
    paths = {candidate: Path(candidate).expanduser() for text in texts for candidate in _path_candidates(text)}
    return {name: describe_path(path) for name, path in sorted(paths.items()) if _exists(path)}


@lru_cache
def code_digest(package: str) -> str:
    """A digest of the source of a package, of bertology without the packages that no analysis imports."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        return ""
    origin = Path(spec.origin)
    folder = origin.parent
    files = sorted(folder.rglob("*")) if origin.name == "__init__.py" else [origin]
    digest = hashlib.sha256()
    for file in files:
        name = file.relative_to(folder)
        is_above = package == PACKAGE and name.parts[0] in PACKAGES_ABOVE
        if file.suffix in CODE_SUFFIXES and not is_above and file.is_file():
            digest.update(f"{name} {digest_file(file)}\n".encode())
    return digest.hexdigest()[:32]


def _describe_object(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        tensor = value.detach().cpu().contiguous()
        content = tensor.flatten().view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        return {"tensor": [str(tensor.dtype), list(tensor.shape), digest_bytes(content)]}
    if isinstance(value, functools.partial):
        return {"partial": [describe_value(item) for item in (value.func, value.args, value.keywords)]}
    if isinstance(value, types.MethodType):
        return {"method": value.__func__.__qualname__, "of": describe_value(value.__self__)}
    if isinstance(value, types.FunctionType):
        return _describe_function(value)
    if isinstance(value, type):
        return {"name": _name(value), "code": _foreign_code(value.__module__)}
    if isinstance(value, types.BuiltinFunctionType):
        owner = value.__self__
        of = None if owner is None or isinstance(owner, types.ModuleType) else describe_value(owner)
        return {"builtin": _name(value), "of": of}
    return _describe_instance(value)


def _describe_instance(value: Any) -> Any:
    kind = {"class": _name(type(value)), "code": _foreign_code(type(value).__module__)}
    if getattr(value, "tokenise", None) is not None and getattr(value, "forward", None) is not None:
        return {**kind, "encoder": [value.fingerprint, value.device, value.max_length]}
    if not is_dataclass(value):
        fingerprint = getattr(value, "fingerprint", None)
        if not isinstance(fingerprint, str) or not fingerprint:
            raise TypeError(f"the content of a {_name(type(value))} is not known, so that nothing can be cached by it")
        return {**kind, "fingerprint": fingerprint}
    known: str | None = getattr(value, _DIGEST, None)
    if known is not None:
        return {**kind, "digest": known}
    content = {field.name: describe_value(getattr(value, field.name)) for field in fields(value)}
    is_frozen = bool(getattr(type(value), "__dataclass_params__").frozen)  # noqa: B009 # untyped
    if not is_frozen or getattr(value, "__dict__", None) is None:
        return {**kind, "fields": content}
    # A frozen value is described once, however often it is an argument.
    digest = digest_bytes(_dump(content).encode())
    object.__setattr__(value, _DIGEST, digest)
    return {**kind, "digest": digest}


def _describe_function(function: types.FunctionType) -> dict[str, Any]:
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {
        "function": _name(function),
        "code": _foreign_code(function.__module__),
        "closure": {name: describe_value(cell.cell_contents) for name, cell in cells},
        "defaults": describe_value([function.__defaults__, function.__kwdefaults__]),
    }


def _describe_array(kind: str, array: np.ndarray[Any, Any]) -> dict[str, Any]:
    if array.dtype.hasobject:
        raise TypeError("an array of Python objects has no bytes that say what it contains")
    return {kind: [array.dtype.str, list(array.shape), digest_bytes(np.ascontiguousarray(array).tobytes())]}


@lru_cache
def _foreign_code(module: str) -> str:
    """The code of a package other than bertology and the libraries whose versions are in the key; else empty."""
    package = module.partition(".")[0]
    return "" if package in {PACKAGE, "builtins", *_installed()} else code_digest(package)


@lru_cache
def _installed() -> Mapping[str, str]:
    return versions()


def _path_candidates(text: str) -> Iterator[str]:
    """The text, its parts between commas, and what follows a colon or comes before #, + or @ in each of them."""
    for part in {text, *text.split(",")}:
        rest = part.strip()
        while rest:
            yield rest
            yield from filter(None, (rest.partition(mark)[0] for mark in "#+@" if mark in rest))
            rest = rest.partition(":")[2]


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name that is too long, or one with a null character
        return False


def _name(value: Any) -> str:
    return f"{value.__module__}.{value.__qualname__}"


def _dump(description: Any) -> str:
    return json.dumps(description, ensure_ascii=True)


def _shorten(description: Any) -> Any:
    text = _dump(description)
    return description if len(text) <= MAX_SHOWN else {"digest": digest_bytes(text.encode())}
