"""Typed access to parsed JSON, with a `ParseError` that names the location of a missing or wrong value."""

from __future__ import annotations

import json
from typing import cast

from bertology.corpus.text_files import ParseError

REMEDY = "Check that the file is complete and that --format names its format"


def parse_json(text: str, line: int = 1) -> object:
    """Parse a JSON value; `line` is the line number at which the text begins."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        problem = f"The JSON is invalid at column {error.colno}: {error.msg}"
        raise ParseError("invalid JSON", problem, "valid JSON", REMEDY, line=line + error.lineno - 1) from error
    except (ValueError, RecursionError) as error:
        problem = f"The JSON cannot be parsed: {error}"
        raise ParseError("invalid JSON", problem, "valid JSON", REMEDY, line=line) from error


def as_object(value: object, location: str) -> dict[str, object]:
    """Return the value if it is an object."""
    if not isinstance(value, dict):
        raise _unexpected_value_error(value, "an object", location)
    return cast("dict[str, object]", value)


def as_list(value: object, location: str) -> list[object]:
    """Return the value if it is a list."""
    if not isinstance(value, list):
        raise _unexpected_value_error(value, "a list", location)
    return cast("list[object]", value)


def as_text(value: object, location: str) -> str:
    """Return the value if it is text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise _unexpected_value_error(value, "text", location)
    return check_encodable(value, location)


def as_count(value: object, location: str) -> int:
    """Return the value if it is an integer of at least 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _unexpected_value_error(value, "an integer of at least 0", location)
    return value


def get_value(value: object, key: str, location: str) -> object:
    """Return the value of a key of an object."""
    mapping = as_object(value, location)
    if key not in mapping:
        problem = f"{location or 'The object'} has no key {key!r}"
        expected = f"the key {key!r}; the keys are {', '.join(list(mapping)[:8])}"
        raise ParseError("missing key", problem, expected, REMEDY)
    return mapping[key]


def get_text(value: object, key: str, location: str) -> str:
    """Return the text of a key of an object."""
    return as_text(get_value(value, key, location), f"{location} {key}".strip())


def get_list(value: object, key: str, location: str) -> list[object]:
    """Return the list of a key of an object."""
    return as_list(get_value(value, key, location), f"{location} {key}".strip())


def to_cell(value: object) -> str | None:
    """Convert a scalar to the text of a table cell; None for null, a list or an object."""
    if isinstance(value, str):
        return check_encodable(value, "A value")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else None


def check_encodable(text: str, location: str) -> str:
    """Return the text unless it contains an unpaired surrogate, which tokenisers and UTF-8 files cannot represent."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        problem = f"{location} contains an unpaired surrogate at character {error.start}"
        raise ParseError("not UTF-8", problem, "text that UTF-8 can encode", "Correct the escape") from error
    return text


def _unexpected_value_error(value: object, expected: str, location: str) -> ParseError:
    shown = json.dumps(value)[:40] if value is not None else "null"
    return ParseError("wrong value", f"{location or 'The file'} is {shown}", expected, REMEDY)
