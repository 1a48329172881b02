"""Values of a JSON file by key, with a fault that names the place where one is missing or of another type."""

from __future__ import annotations

import json
from typing import cast

from bertology.corpus.faults import Fault

REMEDY = "Check that the file is complete and that --format names its format"


def parse_json(text: str, line: int = 1) -> object:
    """The value that the text spells; `line` is the file's line at which the text begins."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        found = f"The JSON breaks off at column {error.colno}: {error.msg}"
        raise Fault("invalid JSON", found, "valid JSON", REMEDY, line=line + error.lineno - 1) from error
    except (ValueError, RecursionError) as error:
        raise Fault("invalid JSON", f"The JSON cannot be read: {error}", "valid JSON", REMEDY, line=line) from error


def keyed(value: object, where: str) -> dict[str, object]:
    """The value as an object."""
    if not isinstance(value, dict):
        raise _wrong(value, "an object", where)
    return cast("dict[str, object]", value)


def listed(value: object, where: str) -> list[object]:
    """The value as a list."""
    if not isinstance(value, list):
        raise _wrong(value, "a list", where)
    return cast("list[object]", value)


def written(value: object, where: str) -> str:
    """The value as text that is not blank."""
    if not isinstance(value, str) or not value.strip():
        raise _wrong(value, "text", where)
    return encodable(value, where)


def counted(value: object, where: str) -> int:
    """The value as a whole number from 0."""
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise _wrong(value, "a whole number from 0", where)
    return value


def at(value: object, key: str, where: str) -> object:
    """What the object holds under the key."""
    mapping = keyed(value, where)
    if key not in mapping:
        found = f"{where or 'The object'} has no key {key!r}"
        raise Fault("missing key", found, f"the key {key!r}; there are {', '.join(list(mapping)[:8])}", REMEDY)
    return mapping[key]


def text_at(value: object, key: str, where: str) -> str:
    """The text under the key."""
    return written(at(value, key, where), f"{where} {key}".strip())


def list_at(value: object, key: str, where: str) -> list[object]:
    """The list under the key."""
    return listed(at(value, key, where), f"{where} {key}".strip())


def as_cell(value: object) -> str | None:
    """A scalar as the text a table would hold; None for null, a list or an object."""
    if isinstance(value, str):
        return encodable(value, "A value")
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | float) else None


def encodable(text: str, where: str) -> str:
    """The text, unless it holds half of a surrogate pair, which no tokeniser and no file can take."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        found = f"{where} holds half of a surrogate pair at character {error.start}"
        raise Fault("not UTF-8", found, "text that can be written in UTF-8", "Correct the escape") from error
    return text


def _wrong(value: object, expected: str, where: str) -> Fault:
    shown = json.dumps(value)[:40] if value is not None else "null"
    return Fault("wrong value", f"{where or 'The file'} is {shown}", expected, REMEDY)
