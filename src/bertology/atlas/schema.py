"""The JSON schema of what `atlas --json` writes."""

from __future__ import annotations

from typing import Any

from pydantic.json_schema import models_json_schema

from bertology.atlas.differences import ModelDifference
from bertology.atlas.judged_model import JudgedModel, NotJudged
from bertology.atlas.profiles import ProfileMap
from bertology.atlas.seeds import SeedFamily
from bertology.atlas.training import TrainingRun
from bertology.atlas.universality import FindingAgreement, ModelPeculiarity
from bertology.claims.verdict import OUTCOMES
from bertology.views.report.findings import STATUSES
from bertology.views.report.schemas import DIALECT, NUMBER, OBJECT, TEXT, Schema

_LISTS = {
    "not_judged": NotJudged,
    "differences": ModelDifference,
    "peculiarities": ModelPeculiarity,
    "families": SeedFamily,
    "training_runs": TrainingRun,
    "records": JudgedModel,
}
TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
COUNT_OR_NULL: Schema = {"type": ["integer", "null"]}


def atlas_schema() -> Schema:
    """The schema: models, findings, the verdict of each model on each finding, and what the models say together."""
    records = (*_LISTS.values(), ProfileMap, JudgedModel, FindingAgreement)
    _, generated = models_json_schema([(record, "serialization") for record in records], ref_template="#/$defs/{model}")
    definitions: dict[str, Any] = generated["$defs"]
    model, agreement = definitions["JudgedModel"], definitions.pop("FindingAgreement")
    definitions |= {
        "AtlasModel": _object(
            {
                **{name: field for name, field in model["properties"].items() if name != "findings"},
                "size": TEXT,
                "is_finished": {"type": "boolean"},
            },
            "One model: its name in the atlas, what it was loaded by, and its size. `is_finished` says that it is "
            "trained, and no early checkpoint: what is universal is said of finished models.",
        ),
        "AtlasFinding": _object(
            {
                **dict.fromkeys(("id", "test_digest", "topic", "claim", "headline"), TEXT),
                **dict.fromkeys(("paper", "unit", "published_value"), TEXT),
                **{name: field for name, field in agreement["properties"].items() if name != "finding"},
            },
            "A finding, and what the models say together about it. `test_digest` changes with its test and with the "
            "versions of its analyses.",
        ),
        "AtlasVerdict": _verdict_schema(),
    }
    properties: Schema = {
        **dict.fromkeys(("corpus", "options", "versions"), OBJECT),
        **{name: _list(item) for name, item in (("models", "AtlasModel"), ("findings", "AtlasFinding"))},
        "verdicts": _list("AtlasVerdict"),
        "messages": {"type": "array", "items": TEXT},
        **{name: _list(record.__name__) for name, record in _LISTS.items()},
        "map": {"anyOf": [{"$ref": "#/$defs/ProfileMap"}, {"type": "null"}]},
    }
    title = "Output of `bertology atlas --json`."
    return {"$schema": DIALECT, "title": title, **_object(properties), "$defs": definitions}


def _verdict_schema() -> Schema:
    numbers = (
        "value", "low", "high", "effect", "effect_error", "baseline", "untrained", "published", "peak_depth",
        "peak_depth_low", "peak_depth_high", "best_head", "random_best_head",
    )  # fmt: skip
    return _object(
        {
            **dict.fromkeys(("finding", "topic", "model"), TEXT),
            "verdict": {"enum": list(OUTCOMES)},
            "status": {"enum": list(STATUSES)},
            **dict.fromkeys(numbers, NUMBER),
            **dict.fromkeys(("n", "peak_layer", "heads_passing", "heads"), COUNT_OR_NULL),
            **dict.fromkeys(("position", "filled_from", "reason"), TEXT_OR_NULL),
        },
        "The verdict of one model on one finding. `effect` is how far the number lies beyond what it is compared with; "
        "peaks are in relative depth; `random_best_head` is the expected best of as many random heads.",
    )


def _object(properties: Schema, description: str = "") -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "required": list(properties)}
    return schema | ({"description": description} if description else {})


def _list(definition: str) -> Schema:
    return {"type": "array", "items": {"$ref": f"#/$defs/{definition}"}}
