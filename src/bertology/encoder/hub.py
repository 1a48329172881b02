"""Models on the Hugging Face hub: from its local cache where they are there, else asked for once, without retries."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from bertology.encoder.checkpoint import PICKLED, SAFE, TOKENISER
from bertology.errors import Refusal

SECONDS = 10.0

_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def is_hub_name(name: str) -> bool:
    """Whether the hub could have a model of this name: `name` or `owner/name`."""
    return _NAME.fullmatch(name) is not None and ".." not in name


def fetch(name: str, *, allow_pickle: bool, suggestion: str = "") -> Path:
    """The local directory of a hub model; of its files only configuration, tokeniser and weights are downloaded."""
    from huggingface_hub import snapshot_download

    cached = _cached(name, allow_pickle)
    if cached is not None:
        return cached
    wanted = _wanted(_files(name, suggestion), allow_pickle)
    return Path(snapshot_download(name, allow_patterns=wanted))


def _cached(name: str, allow_pickle: bool) -> Path | None:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    try:
        folder = Path(snapshot_download(name, local_files_only=True))
    except LocalEntryNotFoundError:
        return None
    weights = (*SAFE, *PICKLED) if allow_pickle else SAFE
    complete = all(any((folder / file).exists() for file in group) for group in (("config.json",), weights, TOKENISER))
    return folder if complete else None


def _files(name: str, suggestion: str) -> list[str]:
    from huggingface_hub import HfApi

    try:
        info: Any = HfApi().model_info(name, timeout=SECONDS)
    except Exception as error:  # no network, no such model, no permission: the same way out
        raise Refusal(
            f"{name!r} is neither a built-in model nor a directory, and the hub did not give a model of that name "
            f"({' '.join(str(error).split())[:200]})",
            "a built-in name, a directory in Hugging Face form, or the name of a model on the hub",
            f"{suggestion}Run `bertology list models` for the built-in names, or check the path or the network",
        ) from error
    return [file.rfilename for file in info.siblings or []]


def _wanted(files: list[str], allow_pickle: bool) -> list[str]:
    """The files at the top of the repository that a model is loaded from; never code."""
    top = [file for file in files if "/" not in file]
    safe = any(file in SAFE for file in top)
    weights = ".safetensors" if safe or not allow_pickle else ".bin"
    return [file for file in top if file.endswith((".json", ".txt", ".model", weights))]
