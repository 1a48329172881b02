"""Read a result that `bertology run ... --json` printed."""

from __future__ import annotations

from pathlib import Path

from bertology.errors import Refusal
from bertology.input_files import describe_error, parse_json_text, read_bytes, shorten_name
from bertology.results.result import Result


def read_result(file: Path) -> Result:
    """The result in a file; anything else is refused with the first thing that is wrong."""
    try:
        return Result.from_json(parse_json_text(read_bytes(file).decode("utf-8")))
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise Refusal(
            f"{shorten_name(file)} is not a result ({describe_error(error)})",
            "the JSON object that `bertology run ... --json` prints",
            "Write it with that command, or remove the file",
        ) from error
