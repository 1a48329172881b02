"""Types of the front-end for the API, generated from the models of requests and answers.

`python -m bertology.server.typescript frontend/src` writes `api.ts`; types of the payload of views are imported from
`payload.ts`, so that the live picture and the pages share them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertology.server.api import ENDPOINTS
from bertology.server.endpoint import Endpoint
from bertology.server.openapi import request_models
from bertology.views.payload import Payload

HEADER = "Generated from src/bertology/server by `python -m bertology.server.typescript frontend/src`; do not edit."
PRIMITIVES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def api_types() -> str:
    """The text of frontend/src/api.ts."""
    shared = {"Payload", *Payload.model_json_schema().get("$defs", {})}
    requests = {endpoint.request.__name__ for endpoint in ENDPOINTS}
    named: dict[str, Any] = {}
    for model in request_models():
        is_request = model.__name__ in requests
        schema = model.model_json_schema(mode="validation" if is_request else "serialization")
        named |= schema.pop("$defs", {})
        named[model.__name__] = schema
    own = {name: schema for name, schema in named.items() if name not in shared}
    used = sorted(name for name in shared if any(f'/{name}"' in json.dumps(schema) for schema in own.values()))
    imports = f'\nimport type {{ {", ".join(used)} }} from "./payload";\n' if used else ""
    return f"// {HEADER}\n{imports}{''.join(_declaration(n, s) for n, s in own.items())}{_paths()}"


def _declaration(name: str, schema: Mapping[str, Any]) -> str:
    description = " ".join(str(schema.get("description", "")).split())
    # What has a default may be left out of a request; an answer has all fields.
    optional = (
        set(schema.get("properties", {})) - set(schema.get("required", ())) if name.endswith("Request") else set()
    )
    fields = "".join(
        f"  {field}{'?' * (field in optional)}: {_type(kind)};\n"
        for field, kind in schema.get("properties", {}).items()
    )
    return f"\n/** {description} */\nexport interface {name} {{\n{fields}}}\n"


def _paths() -> str:
    """Request and answer of each endpoint by method and path, relative to the page."""
    lines = [
        f'  "{endpoint.method} api/{endpoint.path}": {{ request: {endpoint.request.__name__}; answer: '
        f"{_answer_type(endpoint)} }};\n"
        for endpoint in ENDPOINTS
    ]
    return f"\n/** Request and answer of each endpoint. */\nexport interface Endpoints {{\n{''.join(lines)}}}\n"


def _answer_type(endpoint: Endpoint) -> str:
    if endpoint.answer is not None:
        return endpoint.answer.__name__
    return "unknown" if endpoint.media_type == "application/json" else "string"


def _type(kind: Mapping[str, Any]) -> str:
    if "$ref" in kind:
        return str(kind["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in kind:
        return " | ".join(dict.fromkeys(_type(member) for member in kind["anyOf"]))
    if "enum" in kind or "const" in kind:
        return " | ".join(json.dumps(value) for value in kind.get("enum", [kind.get("const")]))
    if kind.get("type") == "array":
        inner = _type(kind.get("items", {}))
        return f"({inner})[]" if " | " in inner else f"{inner}[]"
    if kind.get("type") == "object":
        values = kind.get("additionalProperties")
        return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"
    return PRIMITIVES.get(str(kind.get("type")), "unknown")


if __name__ == "__main__":
    Path(sys.argv[1], "api.ts").write_text(api_types(), "utf-8")
