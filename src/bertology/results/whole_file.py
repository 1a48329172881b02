"""Pages and figures as files: refused before the work where they could not be written, and never left half written."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from bertology.errors import Refusal


def require_place(path: Path) -> None:
    """Refuse, before anything is computed, a file that could not be written."""
    if not path.parent.is_dir():
        raise Refusal(
            f"{path} cannot be written: there is no folder {path.parent}",
            "a file in a folder that exists",
            "Choose another place",
        )
    usable = os.access(path.parent, os.W_OK | os.X_OK)
    if not usable or path.is_dir():
        why = "it is a folder" if usable else f"the folder {path.parent} may not be written to"
        raise Refusal(f"{path} cannot be written: {why}", "a file in a folder of your own", "Choose another place")


def write_whole(path: Path, content: bytes) -> Path:
    """Write the file beside its place and move it there; what was there stays until then."""
    temporary = path.with_name(f".{path.name}.partial")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise Refusal(
            f"{path} cannot be written ({error.strerror})", "a file in a folder that exists", "Choose another place"
        ) from error
    return path
