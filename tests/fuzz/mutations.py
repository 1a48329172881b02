"""Seeded changes to bytes, lines and JSON values: what damage, other programs and people make of a file."""

from __future__ import annotations

import copy
import gzip
import json
import math
from collections.abc import Callable
from random import Random
from typing import Any, cast

TOKENS = (
    b"", b"\0", b"\xff\xfe", b"\n", b"\r\n", b"\t", b" ", b'"', b"{", b"}", b"[", b"]", b"<", b"&x;", b"-1", b"0",
    b"1e999", b"nan", b"NaN", b"99999999999999999999", b"null", b"true", b"../x", b"\xf0\x9f\x98\x80", b"\\ud800",
    b"=", b",", b"#", b"_", b"%s", b"\xe2\x80\xa8",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2, 7, 2**31, -(2**31) - 1, 2**63, 10**30, 0.5, -0.5, 1e308, 5e-324, math.nan, math.inf,
    "", " ", "x", "0", "-1", "9" * 30, "../x", "/etc/passwd", "a\0b", "a\nb", "\ud800", "x" * 300, [], {}, [[]], [None],
    [0], ["x"], {"x": 1}, {"": {}}, [[1, 2], [3]],
)  # fmt: skip


def mutate_bytes(rng: Random, content: bytes) -> bytes:
    """The bytes after one to four changes."""
    for _ in range(rng.randint(1, 4)):
        content = rng.choice(_BYTE_CHANGES)(rng, content)
    return content


def mutate_lines(rng: Random, content: bytes) -> bytes:
    """The lines after one to four changes."""
    lines = content.split(b"\n")
    for _ in range(rng.randint(1, 4)):
        if not lines:
            return b""
        index = rng.randrange(len(lines))
        match rng.randrange(6):
            case 0:
                del lines[index]
            case 1:
                lines.insert(index, rng.choice(lines))
            case 2:
                lines[index] = mutate_bytes(rng, lines[index])
            case 3:
                lines[index] = lines[index] * rng.choice((2, 5, 200))
            case 4:
                fields = lines[index].split(rng.choice((b"\t", b" ", b",")))
                fields[rng.randrange(len(fields))] = rng.choice(TOKENS)
                lines[index] = b"\t".join(fields)
            case _:
                lines = lines[: index + 1]
    return b"\n".join(lines)


def mutate_json(rng: Random, value: Any) -> Any:
    """A copy of a JSON value after one to three changes of its parts."""
    value = copy.deepcopy(value)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        value = _change_part(rng, value)
    return value


def json_bytes(value: Any) -> bytes:
    """A value as JSON, with whatever Python can write, such as NaN."""
    return json.dumps(value).encode()


def compress(rng: Random, content: bytes) -> bytes:
    """The content as gzip, damaged in every second case."""
    packed = gzip.compress(content, mtime=0)
    return mutate_bytes(rng, packed) if rng.random() < 0.5 else packed


def deep_json(depth: int) -> bytes:
    """A list in a list in a list ..."""
    return b"[" * depth + b"]" * depth


def _change_part(rng: Random, value: Any) -> Any:
    """The value with one part of it changed; parts near the root are as likely as all below them."""
    if not isinstance(value, dict | list) or not value or rng.random() < 0.1:
        return _change_value(rng, value)
    container = cast("dict[str, Any] | list[Any]", value)
    keys: list[Any] = list(container) if isinstance(container, dict) else list(range(len(container)))
    key = rng.choice(keys)
    changed: Any = container
    if rng.random() < 0.7:
        changed[key] = _change_part(rng, changed[key])
        return changed
    match rng.randrange(5):
        case 0:
            del changed[key]
        case 1:
            changed[key] = copy.deepcopy(rng.choice(VALUES))
        case 2:
            other = rng.choice(keys)
            changed[key], changed[other] = changed[other], changed[key]
        case 3 if isinstance(changed, dict):
            changed[rng.choice(("x", "", "shape", "name", f"{key}s"))] = changed.pop(key)
        case 3:
            changed.insert(key, copy.deepcopy(changed[key]))
        case _ if isinstance(changed, dict):
            changed[rng.choice(("x", "auto_map", "__class__"))] = copy.deepcopy(rng.choice(VALUES))
        case _:
            del changed[key:]
    return changed


def _change_value(rng: Random, value: Any) -> Any:
    if isinstance(value, int | float) and not isinstance(value, bool) and rng.random() < 0.5:
        return rng.choice((value + 1, value - 1, -value, value * 1000, float(value), str(value)))
    if isinstance(value, str) and rng.random() < 0.4:
        return rng.choice((value + "x", value[:-1], value.upper(), f" {value}", value * 50))
    return copy.deepcopy(rng.choice(VALUES))


def _flip(rng: Random, content: bytes) -> bytes:
    if not content:
        return b"\0"
    index = rng.randrange(len(content))
    return content[:index] + bytes([content[index] ^ (1 << rng.randrange(8))]) + content[index + 1 :]


def _insert(rng: Random, content: bytes) -> bytes:
    index = rng.randint(0, len(content))
    return content[:index] + rng.choice(TOKENS) + content[index:]


def _delete(rng: Random, content: bytes) -> bytes:
    start = rng.randint(0, len(content))
    return content[:start] + content[start + rng.choice((1, 2, 8, 64, 1000)) :]


def _double(rng: Random, content: bytes) -> bytes:
    start = rng.randint(0, len(content))
    end = start + rng.choice((1, 8, 64, 1000))
    return content[:end] + content[start:end] * rng.choice((1, 1, 3)) + content[end:]


def _overwrite(rng: Random, content: bytes) -> bytes:
    start = rng.randint(0, len(content))
    token = rng.choice(TOKENS) or b"\0"
    return content[:start] + token + content[start + len(token) :]


def _truncate(rng: Random, content: bytes) -> bytes:
    return content[: rng.randint(0, len(content))]


def _set_word(rng: Random, content: bytes) -> bytes:
    """Set a little-endian number, as lengths and offsets are written."""
    if len(content) < 8:
        return content + b"\xff"
    size = rng.choice((2, 4, 8))
    start = rng.randrange(len(content) - 7)
    number = rng.choice((0, 1, 2 ** (8 * size) - 1, 2 ** (8 * size - 1), 255, 2**16 - 1))
    return content[:start] + (number % 2 ** (8 * size)).to_bytes(size, "little") + content[start + size :]


_BYTE_CHANGES: tuple[Callable[[Random, bytes], bytes], ...] = (
    _flip, _flip, _insert, _delete, _double, _overwrite, _truncate, _set_word,
)  # fmt: skip
