"""Generated sources of the front-end: types from the payload's schema, colours from the palette.

`python -m bertology.views.typescript frontend/src` writes them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertology.results.palette import PALETTES, Palette, Theme, css_variables
from bertology.views.payload import Payload

HEADER = "Generated from src/bertology/{} by `python -m bertology.views.typescript frontend/src`; do not edit."
PRIMITIVE_TYPES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}

PALETTE_FIELDS = (
    "background", "foreground", "muted", "grid", "above", "below", "series", "untrained", "published", "baseline",
    "gold_arc", "predicted_arc",
)  # fmt: skip
"""The colours that the front-end draws with; those of its style are variables of palette.css."""


def payload_types() -> str:
    """The text of frontend/src/payload.ts."""
    schema = Payload.model_json_schema()
    named: dict[str, Any] = {**schema.get("$defs", {}), "Payload": schema}
    interfaces = "".join(_interface(name, definition) for name, definition in named.items())
    return f"// {HEADER.format('views/payload.py')}\n{interfaces}"


def _interface(name: str, definition: Mapping[str, Any]) -> str:
    description = " ".join(str(definition.get("description", "")).split())
    fields = "".join(f"  {field}: {_type(kind)};\n" for field, kind in definition["properties"].items())
    return f"\n/** {description} */\nexport interface {name} {{\n{fields}}}\n"


def _type(kind: Mapping[str, Any]) -> str:
    if "$ref" in kind:
        return str(kind["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in kind:
        return " | ".join(_type(member) for member in kind["anyOf"])
    if kind["type"] == "array":
        inner = _type(kind["items"])
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    return PRIMITIVE_TYPES[kind["type"]]


def palette_constants() -> str:
    """The text of frontend/src/palette.ts."""
    fields = "".join(f"  {_camel_case(name)}: string{'[]' * _is_list(name)};\n" for name in PALETTE_FIELDS)
    constants = [
        f"\nexport const {theme.upper()}: Palette = {{\n{_values(palette)}}};\n" for theme, palette in PALETTES.items()
    ]
    return f"// {HEADER.format('results/palette.py')}\n\nexport interface Palette {{\n{fields}}}\n{''.join(constants)}"


def _values(palette: Palette) -> str:
    return "".join(f"  {_camel_case(name)}: {json.dumps(getattr(palette, name))},\n" for name in PALETTE_FIELDS)


def _is_list(name: str) -> bool:
    return isinstance(getattr(PALETTES["light"], name), tuple)


def _camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def palette_variables() -> str:
    """The text of frontend/src/palette.css."""
    rules: list[tuple[str, Theme]] = [(".views", "light"), ('.views[data-theme="dark"]', "dark")]
    lines = [f"{selector} {{ {css_variables(theme)} color-scheme: {theme}; }}" for selector, theme in rules]
    return f"/* {HEADER.format('results/palette.py')} */\n" + "\n".join(lines) + "\n"


GENERATED = {"payload.ts": payload_types, "palette.ts": palette_constants, "palette.css": palette_variables}

if __name__ == "__main__":
    for name, generate in GENERATED.items():
        Path(sys.argv[1], name).write_text(generate(), "utf-8")
