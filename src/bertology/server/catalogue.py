"""What can be run from the page: analyses with their options, and claims, as they are declared."""

from __future__ import annotations

import math
import re
from typing import Any

from pydantic import BaseModel

from bertology.analyses import registry
from bertology.analyses.declaration import Analysis, Option
from bertology.analyses.presets import find_preset, presets_of
from bertology.citations import short_citation
from bertology.errors import Refusal
from bertology.input_files import path_exists
from bertology.server.jobs import JobRequest
from bertology.server.model_session import Sources


class OptionAnswer(BaseModel):
    """An option of an analysis; `choices` are all its values, or its values besides those of `type`.

    `minimum` and `maximum` are the ends of the range of a number, which need not belong to it.
    """

    name: str
    flag: str
    type: str
    default: str | int | float | bool | None
    minimum: float | None
    maximum: float | None
    choices: list[str]
    description: str


class AnalysisAnswer(BaseModel):
    """An analysis as it is declared."""

    name: str
    version: int
    question: str
    description: str
    special_tokens: str
    citations: list[str]
    annotations: list[str]
    needs_against: bool
    needs_task_head: str | None
    presets: list[str]
    options: list[OptionAnswer]


class ClaimAnswer(BaseModel):
    """A claim; `slow` ones take minutes and are run with `full`, or by their paper."""

    id: str
    statement: str
    paper: str
    section: str
    analyses: list[str]
    slow: bool


def all_analyses() -> list[AnalysisAnswer]:
    """Every analysis that can be run."""
    return [_describe(analysis) for analysis in registry.load_all()]


def list_claims() -> list[ClaimAnswer]:
    """Every claim that can be tested."""
    from bertology.claims.catalogue import all_claims

    return [
        ClaimAnswer(
            id=claim.id,
            statement=claim.statement,
            paper=claim.paper,
            section=claim.section,
            analyses=[run.analysis for run in claim.all_runs.values()],
            slow=claim.slow,
        )
        for claim in all_claims()
    ]


def check_job(request: JobRequest, sources: Sources) -> JobRequest:
    """The request with the names of its models and corpus filled in; refused if it cannot run or may not."""
    model, _ = sources.model(request.model)
    corpus, _ = sources.corpus(request.corpus)
    against = sources.model(request.against)[0] if request.against else ""
    if request.kind == "analysis":
        analysis = registry.get(request.analysis)
        analysis.resolve_options(request.options)
        for name, value in request.options.items():
            _check_free_text(analysis.options[name], value, sources)
        if request.like:
            find_preset(analysis, request.like)
    elif request.kind in {"claims", "report"}:
        from bertology.claims.run import select_claims

        select_claims(request.papers, full=request.full)
    return request.model_copy(update={"model": model, "corpus": corpus, "against": against})


def _check_free_text(option: Option, value: Any, sources: Sources) -> None:
    """Refuse a text that names a file or a model that the server was not started with."""
    if not isinstance(value, str) or value in ("", option.default) or value in option.choices:
        return
    if value in sources.corpora or value in sources.models:
        return
    # A colon before anything but a number begins the name of a file, a model, a corpus or a function (`call:`).
    names_source = any(not re.fullmatch(r"[^:]*(:[0-9]+)*", part) for part in value.split(","))
    if names_source or any(mark in value for mark in "/\\~") or path_exists(value):
        raise Refusal(
            f"--{option.flag} was given {value[:60]!r}, which may name a file or a model of the server",
            f"a model or corpus of this server: {', '.join([*sources.models, *sources.corpora])}",
            "Start the server with it, or run the analysis on the command line",
        )


def _describe(analysis: Analysis) -> AnalysisAnswer:
    return AnalysisAnswer(
        name=analysis.name,
        version=analysis.version,
        question=analysis.question,
        description=analysis.description,
        special_tokens=analysis.special_tokens,
        citations=[short_citation(key) for key in analysis.citations],
        annotations=list(analysis.annotations),
        needs_against="against" in analysis.required_inputs,
        needs_task_head=analysis.needs_task_head,
        presets=[preset.paper for preset in presets_of(analysis.name)],
        options=[_option(option) for option in analysis.options.values()],
    )


def _option(option: Option) -> OptionAnswer:
    kinds = [getattr(kind, "__name__", "") for kind in (bool, int, float, str) if kind.__name__ in str(option.type)]
    is_plain = isinstance(option.default, str | int | float | bool) or option.default is None
    return OptionAnswer(
        name=option.name,
        flag=option.flag,
        type=kinds[0] if kinds else "choice",
        default=option.default if is_plain else str(option.default),
        minimum=None if option.range is None or math.isinf(option.range.minimum) else option.range.minimum,
        maximum=None if option.range is None or math.isinf(option.range.maximum) else option.range.maximum,
        choices=list(option.choices),
        description=option.description,
    )
