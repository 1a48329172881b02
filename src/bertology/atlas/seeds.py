"""Families of seeds: models that differ only in their random seed, and how far apart they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bertology.atlas.judged_model import AtlasRecord, JudgedModel
from bertology.atlas.model_names import seed_family_name


class SeedFamily(AtlasRecord):
    """Models of one architecture and training that differ in their seed."""

    name: str
    models: tuple[str, ...]
    is_trained: bool
    spreads: Mapping[str, float]
    """The highest effect less the lowest one of its models, by finding."""


def find_seed_families(models: Sequence[JudgedModel]) -> tuple[SeedFamily, ...]:
    """The families with at least two models of the same layers, heads and width."""
    groups: dict[tuple[str, int, int, int], list[JudgedModel]] = {}
    for model in models:
        name = seed_family_name(model.source)
        if name:
            groups.setdefault((name, model.n_layers, model.n_heads, model.width), []).append(model)
    return tuple(
        SeedFamily(
            name=key[0],
            models=tuple(model.name for model in group),
            is_trained=all(model.is_trained for model in group),
            spreads=_spreads(group),
        )
        for key, group in groups.items()
        if len(group) > 1
    )


def _spreads(models: Sequence[JudgedModel]) -> dict[str, float]:
    ids = dict.fromkeys(finding.id for model in models for finding in model.findings)
    effects = {
        id: [finding.effect.value for model in models if (finding := model.find(id)) and finding.effect is not None]
        for id in ids
    }
    return {id: max(values) - min(values) for id, values in effects.items() if len(values) > 1}
