"""The `bertology view` command that makes the same page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any


def command_of_view(
    model: Any, text: Any, text_b: Any, against: Any, against_text: Any, quantities: Sequence[str]
) -> str:
    """The command for models by name and plain texts; empty if something was given that a command cannot name."""
    if not all(value is None or isinstance(value, str) for value in (model, text, text_b, against, against_text)):
        return ""
    texts = [value for value in (text, text_b) if value is not None]
    options = {"--model": model, "--against": against, "--against-text": against_text}
    return format_command(texts, options, quantities)


def format_command(arguments: Sequence[str], options: Mapping[str, Any], quantities: Sequence[str]) -> str:
    """A command line with quoted arguments; options without a value are left out, those with a list are repeated."""
    words = ["bertology", "view", *arguments]
    for name, value in options.items():
        for each in value if isinstance(value, list) else [value]:
            words += [] if each is None else [name, str(each)]
    for quantity in quantities[1:]:
        words += ["--quantity", quantity]
    return shlex.join(words)
