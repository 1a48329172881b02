"""JSON schemas of what `run --json`, `claims --json` and `report --json` write."""

from __future__ import annotations

from typing import Any

from bertology.claims.verdict import OUTCOMES
from bertology.estimates.estimate import INTERVAL_LABELS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COUNT: Schema = {"type": "integer", "minimum": 0}
NUMBER: Schema = {"type": ["number", "null"]}
OBJECT: Schema = {"type": "object"}
PUBLISHED: Schema = {
    "description": "A number, or the lowest and highest of several, in the unit of the measure.",
    "anyOf": [NUMBER, {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}],
}


def json_schemas() -> dict[str, Schema]:
    """The schemas by command: `run`, `claims` and `report`."""
    return {
        "run": _document(
            "Output of `bertology run --json`: a result, or several.",
            {"anyOf": [_reference("result"), _object({"results": _list(_reference("result"))})]},
        ),
        "claims": _document(
            "Output of `bertology claims --json`: the verdicts of one model, or of several.",
            {"anyOf": [_reference("claims"), _object({"models": _list(_reference("claims"))})]},
        ),
        "report": _document("Output of `bertology report --json`.", _report_schema()),
    }


def _document(title: str, schema: Schema) -> Schema:
    definitions = {
        "estimates": _estimates_schema(),
        "model": _model_schema(),
        "corpus": _corpus_schema(),
        "input": _input_schema(),
        "result": _result_schema(),
        "claim": _claim_schema(),
        "claims": _claims_schema(),
    }
    return {"$schema": DIALECT, "title": title, **schema, "$defs": definitions}


def _object(properties: Schema, optional: Schema | None = None, description: str = "") -> Schema:
    schema: Schema = {"type": "object", "properties": {**properties, **(optional or {})}, "required": list(properties)}
    return schema | ({"description": description} if description else {})


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _by_name(values: Schema) -> Schema:
    return {"type": "object", "additionalProperties": values}


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _estimates_schema() -> Schema:
    array: Schema = {"description": "A number, or nested lists by layer and head, layer, row, or point of a curve."}
    return _object(
        {**dict.fromkeys(("value", "low", "high", "n"), array), "interval": {"enum": sorted(INTERVAL_LABELS)}},
        description="Values with the limits of their intervals, sample sizes, and the kind of interval.",
    )


def _model_schema() -> Schema:
    return _object(
        {"name": TEXT, "fingerprint": TEXT, "layers": COUNT, "heads": COUNT},
        {"dtype": {"type": ["string", "null"]}, "device": {"type": ["string", "null"]}, "changes": OBJECT},
    )


def _corpus_schema() -> Schema:
    return _object({"name": TEXT, "fingerprint": TEXT, "examples": COUNT, "words": COUNT, "skipped": _by_name(COUNT)})


def _input_schema() -> Schema:
    counts = {"counts": _by_name(COUNT), "config": OBJECT, "inputs": COUNT}
    return _object({"model": _reference("model"), "corpus": _reference("corpus")}, counts)


def _result_schema() -> Schema:
    measures = _by_name(_reference("estimates"))
    return _object(
        {
            "analysis": TEXT,
            "version": COUNT,
            "options": OBJECT,
            "inputs": {
                "description": "Models by role (`model`, `untrained`, `against` ...), or a `corpus` alone.",
                **_by_name({"anyOf": [_reference("input"), _reference("corpus")]}),
            },
            "shape": TEXT,
            "n": COUNT,
            "data": _object({}, {"measures": measures, "units": _by_name(TEXT), "sample": OBJECT}),
            "baselines": {"description": "Measures by the name of the baseline.", **_by_name(measures)},
            "provenance": _object({"versions": _by_name(TEXT), "special_tokens": TEXT, "citations": _list(TEXT)}),
        }
    )


def _claim_schema() -> Schema:
    baseline = _object({"name": TEXT, "value": NUMBER, "low": NUMBER, "high": NUMBER})
    numbers: Schema = {
        "measure": TEXT,
        "row": TEXT,
        "head": TEXT,
        "layers": _list({"type": "integer"}),
        **dict.fromkeys(("value", "low", "high"), NUMBER),
        "n": COUNT,
        "interval": {"enum": sorted(INTERVAL_LABELS)},
        "required": OBJECT,
        "difference": OBJECT,
    }
    return _object(
        {
            **dict.fromkeys(("id", "topic", "headline", "claim", "paper", "section"), TEXT),
            "published": PUBLISHED,
            "published_baseline": PUBLISHED,
            "published_value": TEXT,
            **dict.fromkeys(("analyses", "models", "corpora"), _list(TEXT)),
            "filled_from": {
                "description": "The built-in corpus that was used because the given one lacks something.",
                "type": ["string", "null"],
            },
            "verdict": {"enum": list(OUTCOMES)},
            "specificity": {"type": ["string", "null"]},
            "answer": TEXT,
            "obstacle": {"description": "Why the claim was not tested.", "type": ["string", "null"]},
            "baseline": _or_null(baseline),
            "comparisons": _list(OBJECT),
            "controls": _list(OBJECT),
            "caveats": _list(TEXT),
        },
        numbers,
        "A published finding. `value`, `low`, `high`, `n` and `interval` are those of the first comparison.",
    )


def _claims_properties() -> Schema:
    return {
        "model": _or_null(_reference("model")),
        "against": _or_null(_reference("model")),
        "corpus": _or_null(_reference("corpus")),
        "filled_from": _or_null(_reference("corpus")),
        "versions": _by_name(TEXT),
        "options": OBJECT,
        "unknown_tokens": _list(_object({"model": TEXT, "corpus": TEXT, "n_unknown": COUNT, "n_tokens": COUNT})),
        "summary": TEXT,
        "outcomes": _object(dict.fromkeys(OUTCOMES, COUNT)),
        "claims": _list(_reference("claim")),
    }


def _claims_schema() -> Schema:
    return _object(_claims_properties())


def _report_schema() -> Schema:
    return _object(
        {
            "title": TEXT,
            "messages": _list(TEXT),
            **_claims_properties(),
            "untested": _list(TEXT),
            "fine_tuning": _or_null(OBJECT),
            "examples": OBJECT,
            "results": _list(_reference("result")),
        }
    )
