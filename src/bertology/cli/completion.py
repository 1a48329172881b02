"""Shell completion of names: analyses, models, corpora, formats and papers. Nothing here imports torch."""

from __future__ import annotations

from collections.abc import Iterable
from glob import escape, glob
from pathlib import Path


def complete_analysis(incomplete: str) -> list[str]:
    """The names of analyses."""
    from bertology.analyses import registry

    return _beginning_with(incomplete, registry.names())


def complete_model(incomplete: str) -> list[str]:
    """The names of built-in models, also after a prefix such as random:, and directories."""
    from bertology.encoder.builtin import installed_models

    models = list(installed_models())
    names = [*models, *(f"{prefix}:{model}" for prefix in ("random", "static") for model in models)]
    return _beginning_with(incomplete, [*names, *_paths(incomplete, directories_only=True)])


def complete_corpus(incomplete: str) -> list[str]:
    """The names of built-in and generated corpora, files and directories."""
    from bertology.corpus.generate import GENERATED_PREFIX, generators
    from bertology.corpus.read import BUILTIN_CORPORA

    names = [*BUILTIN_CORPORA, *(GENERATED_PREFIX + generator for generator in generators())]
    return _beginning_with(incomplete, [*names, *_paths(incomplete)])


def complete_format(incomplete: str) -> list[str]:
    """The names of corpus formats."""
    from bertology.corpus.read import readers

    return _beginning_with(incomplete, readers())


def complete_paper(incomplete: str) -> list[str]:
    """The papers that have claims."""
    from bertology.claims.catalogue import all_claims

    return _beginning_with(incomplete, {claim.paper for claim in all_claims()})


def complete_preset(incomplete: str) -> list[str]:
    """The papers that have presets."""
    from bertology.analyses.presets import all_presets

    return _beginning_with(incomplete, {preset.paper for preset in all_presets()})


def _beginning_with(incomplete: str, names: Iterable[str]) -> list[str]:
    return sorted({name for name in names if name.startswith(incomplete)})


def _paths(incomplete: str, *, directories_only: bool = False) -> list[str]:
    if not incomplete:
        return []
    matching = glob(f"{escape(incomplete)}*")  # noqa: PTH207  # Path.glob changes how a path is written
    return [
        f"{path}/" if Path(path).is_dir() else path for path in matching if Path(path).is_dir() or not directories_only
    ]
