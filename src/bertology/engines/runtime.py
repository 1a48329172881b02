"""The versions that driver and workers must share for their results to be the same."""

from __future__ import annotations

import hashlib
import platform
from functools import lru_cache
from importlib import metadata
from pathlib import Path

PACKAGES = ("torch", "transformers", "numpy")


@lru_cache
def runtime_versions() -> dict[str, str]:
    """Python, bertology with a digest of its source, and the libraries that compute."""
    from bertology import __version__

    versions = {"Python": platform.python_version(), "bertology": f"{__version__} (code {_code_digest()})"}
    return versions | {name: metadata.version(name) for name in PACKAGES}


def _code_digest() -> str:
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        digest.update(str(file.relative_to(package)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:8]


def version_differences(expected: dict[str, str], here: dict[str, str]) -> str:
    """What differs between two sets of versions, in words; empty if nothing does."""
    names = [name for name in {**expected, **here} if expected.get(name) != here.get(name)]
    return ", ".join(f"{name} {here.get(name, 'missing')} instead of {expected.get(name, 'missing')}" for name in names)
