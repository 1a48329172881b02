"""The types of the front-end from the schema of the payload; `python -m bertology.views.typescript` prints them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bertology.views.payload import Payload

HEADER = "// Generated from src/bertology/views/payload.py by `python -m bertology.views.typescript`; do not edit.\n"
PLAIN = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def typescript() -> str:
    """The text of frontend/src/payload.ts."""
    schema = Payload.model_json_schema()
    named: dict[str, Any] = {**schema.get("$defs", {}), "Payload": schema}
    return HEADER + "".join(_interface(name, definition) for name, definition in named.items())


def _interface(name: str, definition: Mapping[str, Any]) -> str:
    about = " ".join(str(definition.get("description", "")).split())
    fields = "".join(f"  {field}: {_type(kind)};\n" for field, kind in definition["properties"].items())
    return f"\n/** {about} */\nexport interface {name} {{\n{fields}}}\n"


def _type(kind: Mapping[str, Any]) -> str:
    if "$ref" in kind:
        return str(kind["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in kind:
        return " | ".join(_type(one) for one in kind["anyOf"])
    if kind["type"] == "array":
        inner = _type(kind["items"])
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    return PLAIN[kind["type"]]


if __name__ == "__main__":
    print(typescript(), end="")
