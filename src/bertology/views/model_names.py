"""Names of models on pages: of a model in a folder its last part, never the path."""

from __future__ import annotations

import re
from pathlib import Path

_FOLDER = re.compile(r"(?:^|(?<=[:\s(]))(?:[/~]|\.{1,2}/)\S*/(?=[^/\s])")
"""The folders of a path, at the beginning of a name or after a prefix such as `random:`."""


def short_model_name(name: str) -> str:
    """The name of an encoder without the folders of its path; names of the hub (`owner/name`) stay."""
    prefix, colon, rest = name.rpartition(":")
    if rest and Path(rest).is_dir():
        return f"{prefix}{colon}{Path(rest).resolve().name}"
    return _FOLDER.sub("", name.rstrip("/")) or name
