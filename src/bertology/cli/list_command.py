"""`bertology list`: the names that commands accept."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer

from bertology.cli import options
from bertology.cli.table_layout import wrap_line

HELP = "List analyses, models, corpora and formats, sites, claims, or the presets of papers (--like)."

ListKind = Literal["analyses", "models", "corpora", "sites", "claims", "presets"]


def list_command(
    kind: Annotated[ListKind, typer.Argument(help="What to list.")] = "analyses",
    as_json: options.Json = False,
) -> None:
    """Print names with descriptions."""
    rows = _rows(kind)
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        typer.echo(wrap_line(f"{row['name']:<{width}}  {row['description']}", width + 2))


def _rows(kind: ListKind) -> list[dict[str, Any]]:
    match kind:
        case "analyses":
            from bertology.analyses import registry

            return [{"name": a.name, "description": a.question, "version": a.version} for a in registry.load_all()]
        case "models":
            from bertology.encoder.builtin import installed_models

            return [{"name": name, "description": model.description} for name, model in installed_models().items()]
        case "corpora":
            from bertology.corpus.read import list_corpora

            return list_corpora()
        case "sites":
            from bertology.analyses import registry
            from bertology.recording.sites import LOGIT_SITES, RAW_SITES, reductions

            registry.load_all()
            sites = [*RAW_SITES.values(), *LOGIT_SITES.values(), *reductions().values()]
            return [{"name": site.name, "description": site.description, "axes": list(site.axes)} for site in sites]
        case "presets":
            from bertology.analyses.presets import all_presets

            return [
                {
                    "name": f"{preset.analysis} --like {preset.paper}",
                    "description": preset.describe(),
                    "paper": preset.paper,
                    "analysis": preset.analysis,
                    "options": dict(preset.options),
                }
                for preset in all_presets()
            ]
        case "claims":
            from bertology.claims.claim import all_claims

            return [{"name": c.id, "description": f"{c.statement} ({c.paper})", "paper": c.paper} for c in all_claims()]
