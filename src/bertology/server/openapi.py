"""The description of the API: an OpenAPI document, and a page that shows it offline."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import Any

from pydantic import BaseModel

from bertology import __version__
from bertology.html import render
from bertology.server.api import ENDPOINTS
from bertology.server.endpoint import Endpoint
from bertology.server.problems import Problem

REFERENCE = "#/components/schemas/{model}"


@cache
def openapi_document() -> dict[str, Any]:
    """The API as OpenAPI 3.1; addresses are relative to that of the server."""
    schemas: dict[str, Any] = {}
    paths: dict[str, dict[str, Any]] = {}
    problem = _content(_reference(Problem, "serialization", schemas))
    for endpoint in ENDPOINTS:
        operation: dict[str, Any] = {"summary": endpoint.summary, "operationId": _operation_id(endpoint)}
        fields = endpoint.request.model_json_schema(ref_template=REFERENCE)
        schemas |= fields.pop("$defs", {})
        in_path = set(re.findall(r"{(\w+)}", endpoint.path))
        in_query = set(fields.get("properties", {})) - in_path if endpoint.method != "POST" else set[str]()
        operation["parameters"] = [
            {
                "name": name,
                "in": "path" if name in in_path else "query",
                "required": name in in_path or name in fields.get("required", ()),
                "schema": schema,
            }
            for name, schema in fields.get("properties", {}).items()
            if name in in_path | in_query
        ]
        if endpoint.method == "POST" and set(fields.get("properties", {})) - in_path:
            body = _reference(endpoint.request, "validation", schemas)
            operation["requestBody"] = {"required": True, "content": _content(body)}
        operation["responses"] = {
            "200": {"description": "The answer.", "content": _answer(endpoint, schemas)},
            "4XX": {"description": "What was found, expected, and what to do.", "content": problem},
        }
        paths.setdefault(f"/api/{endpoint.path}", {})[endpoint.method.lower()] = operation
    return {
        "openapi": "3.1.0",
        "info": {"title": "bertology workbench", "version": __version__},
        "servers": [{"url": ".."}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"bearer": []}],
    }


def openapi_page() -> str:
    """The API as a page without scripts."""
    return render("api.html", version=__version__, endpoints=[_described(endpoint) for endpoint in ENDPOINTS])


def _described(endpoint: Endpoint) -> dict[str, Any]:
    schema = endpoint.request.model_json_schema()
    fields = [
        {"name": name, "type": _type_name(field), "default": field.get("default", "")}
        for name, field in schema.get("properties", {}).items()
    ]
    doc = " ".join(str(schema.get("description", "")).split())
    return {
        "method": endpoint.method,
        "path": endpoint.path,
        "summary": endpoint.summary,
        "doc": doc,
        "fields": fields,
        "answer": endpoint.answer.__name__ if endpoint.answer else endpoint.media_type,
        "answer_doc": " ".join((endpoint.answer.__doc__ or "").split()) if endpoint.answer else "",
    }


def _type_name(field: dict[str, Any]) -> str:
    if "$ref" in field:
        return str(field["$ref"]).rsplit("/", 1)[-1]
    if "anyOf" in field:
        return " or ".join(_type_name(member) for member in field["anyOf"])
    if "enum" in field:
        return " | ".join(map(str, field["enum"]))
    if field.get("type") == "array":
        return f"list of {_type_name(field.get('items', {}))}"
    return str(field.get("type", "any"))


def _operation_id(endpoint: Endpoint) -> str:
    return "_".join([endpoint.method.lower(), *re.findall(r"\w+", endpoint.path)])


def _answer(endpoint: Endpoint, schemas: dict[str, Any]) -> dict[str, Any]:
    if endpoint.answer is None:
        return {endpoint.media_type: {"schema": {"type": "object" if "json" in endpoint.media_type else "string"}}}
    return _content(_reference(endpoint.answer, "serialization", schemas))


def _content(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _reference(model: type[BaseModel], mode: Any, schemas: dict[str, Any]) -> dict[str, Any]:
    schema = model.model_json_schema(ref_template=REFERENCE, mode=mode)
    schemas |= schema.pop("$defs", {})
    schemas[model.__name__] = schema
    return {"$ref": REFERENCE.format(model=model.__name__)}


def request_models(endpoints: Iterable[Endpoint] = ENDPOINTS) -> list[type[BaseModel]]:
    """All models of requests and answers, each once."""
    models = [model for e in endpoints for model in (e.request, e.answer) if model is not None]
    return list(dict.fromkeys([*models, Problem]))
