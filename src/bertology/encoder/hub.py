"""Models on the Hugging Face hub: from the local cache if present, else downloaded without retries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from bertology.encoder.checkpoint_validation import PICKLE_FILES, SAFETENSORS_FILES, TOKENISER_FILES
from bertology.errors import Refusal
from bertology.machine_errors import raise_machine_error

TIMEOUT_SECONDS = 10.0

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,96}(/[A-Za-z0-9_.-]{1,96})?")


def is_hub_name(name: str) -> bool:
    """Whether this can be the name of a model on the hub: `name` or `owner/name`."""
    parts = name.split("/")
    is_allowed = all(not part.startswith(("-", ".")) and not part.endswith(("-", ".")) for part in parts)
    return _NAME.fullmatch(name) is not None and is_allowed and ".." not in name and "--" not in name


def resolve_hub_model(name: str, *, allow_pickle: bool, suggestion: str = "", revision: str | None = None) -> Path:
    """The local directory of a hub model; downloads configuration, tokeniser and weights only."""
    from huggingface_hub import snapshot_download

    cached = _find_cached(name, allow_pickle, revision)
    if cached is not None:
        return cached
    patterns = _select_files(_list_files(name, suggestion, revision), allow_pickle)
    return Path(snapshot_download(name, allow_patterns=patterns, revision=revision))


def _find_cached(name: str, allow_pickle: bool, revision: str | None) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, local_files_only=True, revision=revision))
    except LocalEntryNotFoundError:
        return None
    weights = (*SAFETENSORS_FILES, *PICKLE_FILES) if allow_pickle else SAFETENSORS_FILES
    is_complete = all(
        any((folder / file).exists() for file in group) for group in (("config.json",), weights, TOKENISER_FILES)
    )
    return folder if is_complete else None


def _list_files(name: str, suggestion: str, revision: str | None) -> list[str]:
    from huggingface_hub import HfApi

    try:
        info: Any = HfApi().model_info(name, timeout=TIMEOUT_SECONDS, revision=revision)
    except Exception as error:  # no network, no such model, no permission: the same remedy
        raise_machine_error(error)
        raise Refusal(
            f"{name!r} is neither a built-in model nor a directory, and the hub returned no model of that name"
            f"{f' with the revision {revision!r}' if revision else ''} "
            f"({' '.join(str(error).split())[:200]})",
            "a built-in name, a directory in Hugging Face format, or the name of a model on the hub",
            f"{suggestion}Run `bertology list models` for the built-in names, or check the path or the network",
        ) from error
    return [file.rfilename for file in info.siblings or []]


def _select_files(files: list[str], allow_pickle: bool) -> list[str]:
    """The top-level files that a model is loaded from; never code."""
    top_level = [file for file in files if "/" not in file]
    has_safetensors = any(file in SAFETENSORS_FILES for file in top_level)
    weights = ".safetensors" if has_safetensors or not allow_pickle else ".bin"
    return [file for file in top_level if file.endswith((".json", ".txt", ".model", weights))]
