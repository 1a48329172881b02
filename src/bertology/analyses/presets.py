"""Presets: the options under which an analysis measures what a paper measured, and the paper's numbers.

They are declared in `presets.toml`. Options that are given explicitly win over those of a preset.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from bertology.analyses.declaration import Analysis
from bertology.citations import CITATIONS
from bertology.errors import Refusal, unknown_name
from bertology.estimates.estimate import Estimate, Estimates
from bertology.results.result import Result
from bertology.results.shapes import Head, HeadGrid, LayerCurve, Table

FILE = Path(__file__).with_name("presets.toml")

BERT_BASE = (12, 12)
"""Layers and heads of the models whose heads are published by number: in other models the numbers mean nothing."""

_Numbers = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True, kw_only=True)
class Preset:
    """One paper's definitions for one analysis.

    `definitions` says what the options change, `inputs` what the published numbers were measured on, `source` where
    they stand. `by_layer` has one number per layer of the published model, `by_row` and `by_head` numbers by row of a
    table and by head (`7-6`); all by measure.
    """

    paper: str
    analysis: str
    options: Mapping[str, Any]
    definitions: str
    inputs: str
    source: str
    by_layer: Mapping[str, tuple[float, ...]] = field(default_factory=dict[str, tuple[float, ...]])
    by_row: _Numbers = field(default_factory=dict[str, Mapping[str, float]])
    by_head: _Numbers = field(default_factory=dict[str, Mapping[str, float]])

    def with_explicit(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """The preset's options, replaced by those that were given explicitly."""
        return {**self.options, **options}

    def describe(self) -> str:
        """The options as on the command line, and what they change."""
        return f"{format_flags(self.options) or 'default options'}: {self.definitions}."


@dataclass(frozen=True)
class PublishedNumber:
    """A published number and the one measured here; `here` is None if this model or corpus has no such number.

    `row` is a layer, a row of a table or a head; `published_row` is the layer of the published model at the same
    relative depth, or the same as `row`.
    """

    measure: str
    row: str
    published_row: str
    published: float
    here: Estimate | None


@cache
def all_presets() -> tuple[Preset, ...]:
    """All presets, by paper and analysis."""
    entries: list[dict[str, Any]] = tomllib.loads(FILE.read_text("utf-8"))["preset"]
    presets = [Preset(**entry) for entry in entries]
    keys = [(preset.paper, preset.analysis) for preset in presets]
    if len(set(keys)) < len(keys) or any(paper not in CITATIONS for paper, _ in keys):
        raise ValueError("presets.toml has two presets for one paper and analysis, or a paper not in citations.py")
    return tuple(sorted(presets, key=lambda preset: (preset.paper, preset.analysis)))


def presets_of(analysis_name: str) -> list[Preset]:
    """The presets for one analysis."""
    return [preset for preset in all_presets() if preset.analysis == analysis_name]


def find_preset(analysis: Analysis, paper: str) -> Preset:
    """The preset of a paper for an analysis; unknown papers, and papers without one for it, are refused."""
    of_paper = {preset.analysis: preset for preset in all_presets() if preset.paper == paper}
    if not of_paper:
        papers = {preset.paper for preset in all_presets()}
        raise unknown_name("preset", paper, papers, remedy="`bertology list presets` shows what each one sets")
    if analysis.name not in of_paper:
        papers = [preset.paper for preset in presets_of(analysis.name)]
        raise Refusal(
            f"--like {paper} defines nothing for {analysis.name}",
            f"one of its analyses: {', '.join(of_paper)}",
            f"For {analysis.name} there is --like {' or '.join(papers)}"
            if papers
            else f"Run {analysis.name} without --like: no paper's definitions differ from its options",
        )
    return of_paper[analysis.name]


def with_published(result: Result, preset: Preset, explicit: Mapping[str, Any]) -> Result:
    """The result with the preset and the published numbers beside the measured ones in its provenance."""
    like = {
        "paper": preset.paper,
        "options": dict(preset.options),
        "replaced": {name: value for name, value in explicit.items() if name in preset.options},
        "definitions": preset.definitions,
        "inputs": preset.inputs,
        "source": preset.source,
        "published": [
            {
                "measure": number.measure,
                "row": number.row,
                "published_row": number.published_row,
                "published": number.published,
                "here": None if number.here is None else number.here.value,
            }
            for number in published_numbers(result, preset)
        ],
    }
    return result.model_copy(update={"provenance": {**result.provenance, "like": like}})


def published_numbers(result: Result, preset: Preset) -> list[PublishedNumber]:
    """Every published number of a preset with the one of the result."""
    data = result.data
    if isinstance(data, HeadGrid):
        return [*_by_layer(data, preset), *_by_head(data, preset)]
    if isinstance(data, LayerCurve):
        return list(_by_layer(data, preset))
    return list(_by_row(data, preset)) if isinstance(data, Table) else []


def _by_layer(data: HeadGrid | LayerCurve, preset: Preset) -> Iterator[PublishedNumber]:
    """The published layer of each layer here is the one at the same relative depth."""
    for measure, published in preset.by_layer.items():
        estimates = data.measures.get(measure)
        if estimates is None:
            for layer, value in enumerate(published, start=1):
                yield PublishedNumber(measure, "", f"layer {layer}", value, None)
            continue
        first = data.first_layer if isinstance(data, LayerCurve) else 1
        n_layers = estimates.shape[0] - (first == 0)
        for layer in range(1, n_layers + 1):
            published_layer = int(np.ceil((layer - 0.5) / n_layers * len(published)))
            here = _layer_estimate(estimates, layer - first)
            rows = f"layer {layer}", f"layer {published_layer}"
            yield PublishedNumber(measure, *rows, published[published_layer - 1], here)


def _layer_estimate(estimates: Estimates, index: int) -> Estimate:
    if len(estimates.shape) == 1:
        return estimates[index]
    values = estimates.value[index]  # the mean over heads has no interval of its own
    return Estimate(float(np.nanmean(values)), np.nan, np.nan, int(estimates.n[index].max()), estimates.interval)


def _by_head(data: HeadGrid, preset: Preset) -> Iterator[PublishedNumber]:
    for measure, published in preset.by_head.items():
        for name, value in published.items():
            layer, head = (int(number) - 1 for number in name.split("-"))
            estimates = data.measures.get(measure)
            is_comparable = estimates is not None and estimates.shape == BERT_BASE
            here = estimates[Head(layer, head)] if estimates is not None and is_comparable else None
            yield PublishedNumber(measure, f"head {name}", f"head {name}", value, here)


def _by_row(data: Table, preset: Preset) -> Iterator[PublishedNumber]:
    for measure, published in preset.by_row.items():
        for row, value in published.items():
            is_present = measure in data.measures and row in data.row_names
            estimate = data.measures[measure][data.row_names.index(row)] if is_present else None
            here = None if estimate is None or np.isnan(estimate.value) else estimate
            yield PublishedNumber(measure, row, row, value, here)


def format_flags(options: Mapping[str, Any]) -> str:
    """Options as on the command line."""
    flags = {name.replace("_", "-"): value for name, value in options.items()}
    return " ".join(
        f"--{flag} {value}" if not isinstance(value, bool) else f"--{flag}" if value else f"--no-{flag}"
        for flag, value in flags.items()
    )
