"""Requests to the API of the workbench: any method, path, query and body."""

from __future__ import annotations

import atexit
import json
from contextlib import ExitStack
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote

from bertology.errors import Refusal
from bertology.server.api import ENDPOINTS
from fuzz.kind import Files, Kind
from fuzz.mutations import VALUES, deep_json, mutate_bytes, mutate_json
from serving import served_workbench, write_sample

TEXTS = ("The cat sat .", "", "a", "[MASK] [MASK]", "x " * 400, "\ud800", "😀", "\0", "a\nb")
PATH_VALUES = ("1-1", "0-0", "99-99", "²-1", "..", "x", "%00", "a" * 300, "1-1/x")


class ServerRequests(Kind):
    """A workbench of the model `tiny` on a few sentences; nothing is queued."""

    name = "server"
    seconds_per_case = 20.0

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        stack = ExitStack()
        atexit.register(stack.close)
        sample = write_sample(folder, 5)
        self.client, workbench = stack.enter_context(served_workbench(folder / "store", ["tiny"], [sample]))

        def refuse(*_: Any) -> Any:
            raise Refusal("The queue is full", "a place in it", "Wait")

        jobs: Any = workbench.jobs
        jobs.submit = refuse

    def make(self, rng: Random) -> Files:
        """One request as JSON: method, path, query and body."""
        endpoint = rng.choice(ENDPOINTS)
        path = endpoint.path
        for name in ("head", "id"):
            path = path.replace(f"{{{name}}}", quote(rng.choice(PATH_VALUES), safe=""))
        schema = endpoint.request.model_json_schema()
        value = _example(rng, schema, schema.get("$defs", {}))
        value = mutate_json(rng, value) if rng.random() < 0.6 else value
        method = endpoint.method if rng.random() < 0.95 else rng.choice(("GET", "POST", "DELETE", "PUT", "HEAD"))
        request: dict[str, Any] = {"method": method, "path": path, "query": {}, "body": ""}
        if method == "POST":
            body = json.dumps(value).encode()
            body = mutate_bytes(rng, body) if rng.random() < 0.1 else body
            body = deep_json(rng.choice((150, 100_000))) if rng.random() < 0.02 else body
            request["body"] = body.decode("latin-1")
        elif isinstance(value, dict):
            request["query"] = {str(name).replace("\ud800", ""): _text(part) for name, part in value.items()}
        return {"request.json": json.dumps(request).encode()}

    def consume(self, folder: Path) -> None:
        """Send it: an error of the server is a failure."""
        request = json.loads((folder / "request.json").read_text())
        answer = self.client.request(
            request["method"],
            f"/api/{request['path']}",
            params=request["query"],
            content=request["body"].encode("latin-1"),
            headers={"content-type": "application/json"},
        )
        if answer.status_code >= 500 and answer.status_code != 503:
            raise AssertionError(f"status {answer.status_code}")
        if answer.status_code >= 400:
            raise Refusal(f"status {answer.status_code}", "", "")


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return text.encode("utf-8", "replace").decode()


def _example(rng: Random, schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    """A value that a JSON schema mostly allows."""
    if "$ref" in schema:
        return _example(rng, definitions[schema["$ref"].rpartition("/")[2]], definitions)
    if "anyOf" in schema:
        return _example(rng, rng.choice(schema["anyOf"]), definitions)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    match schema.get("type"):
        case "object":
            properties: dict[str, Any] = schema.get("properties", {})
            required = set(schema.get("required", ()))
            chosen = [name for name in properties if name in required or rng.random() < 0.5]
            value = {name: _named(rng, name, properties[name], definitions) for name in chosen}
            return value or ({"seed": 1} if "additionalProperties" in schema else {})
        case "array":
            return [_example(rng, schema.get("items", {}), definitions) for _ in range(rng.randint(0, 3))]
        case "integer":
            return rng.choice((0, 0, 1, 2, 5, schema.get("maximum", 9), -1))
        case "number":
            return rng.choice((0.0, 0.5, 1.0, -1.0))
        case "boolean":
            return rng.random() < 0.5
        case "string":
            return rng.choice(("", "x", "1-1", "tiny", "the"))
        case "null":
            return None
        case _:
            return rng.choice(VALUES)


def _named(rng: Random, name: str, schema: dict[str, Any], definitions: dict[str, Any]) -> Any:
    match name:
        case "text" | "text_b" if rng.random() < 0.8:
            return rng.choice(TEXTS)
        case "model" | "against":
            return rng.choice(("", "", "tiny", "x", "/etc/passwd"))
        case "corpus":
            return rng.choice(("", "", "sample.conllu", "x", "../x"))
        case "analysis":
            return rng.choice(("attention/entropy", "probes/word", "x"))
        case "head" | "query":
            return rng.choice(("1-1", "2-3", "1-1 NOUN -> VERB > 0.5", "1-1 -> ", ">", "1-1 > nan", "x" * 200))
        case _:
            return _example(rng, schema, definitions)
