"""What the package ships about its built-in models: one JSON file for each."""

from __future__ import annotations

from importlib import resources
from typing import TypeVar

from pydantic import BaseModel

Shipped = TypeVar("Shipped", bound=BaseModel)


def read_shipped(kind: type[Shipped], prefix: str) -> list[Shipped]:
    """The shipped files whose names begin with the prefix."""
    folder = resources.files("bertology.views") / "data"
    files = [file for file in folder.iterdir() if file.name.startswith(prefix)]
    return [kind.model_validate_json(file.read_text("utf-8")) for file in files]
