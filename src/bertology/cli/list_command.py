"""`bertology list`: the names that commands accept."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer

from bertology.cli import options
from bertology.cli.table_layout import wrap_line

HELP = "List analyses, models, corpora and formats, sites, claims, the presets of papers (--like), or plug-ins."

ListKind = Literal["analyses", "models", "corpora", "sites", "claims", "presets", "plugins"]


def list_command(
    kind: Annotated[ListKind, typer.Argument(help="What to list.")] = "analyses",
    as_json: options.Json = False,
) -> None:
    """Print names with descriptions."""
    rows = _rows(kind)
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    if not rows:  # only plug-ins may be none
        options.print_message("No plug-ins are installed; `bertology new` creates one.")
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
        case "plugins":
            return [{"name": name, "description": describe_plugin(row), **row} for name, row in plugin_rows()]
        case "claims":
            from bertology.claims.catalogue import all_claims

            return [{"name": c.id, "description": f"{c.statement} ({c.paper})", "paper": c.paper} for c in all_claims()]


def plugin_rows() -> list[tuple[str, dict[str, str]]]:
    """Every installed plug-in by name: kind, package, version, and its problem if it cannot be loaded."""
    from bertology.analyses import registry
    from bertology.claims.catalogue import claim_plugins
    from bertology.corpus.read import reader_plugins
    from bertology.encoder.families import family_plugins

    plugins = {
        "analysis": registry.plugins(),
        "reader": reader_plugins(),
        "family": family_plugins(),
        "claims": claim_plugins(),
    }
    return [
        (plugin.name, {"kind": kind, "package": plugin.package, "version": plugin.version, "problem": plugin.problem})
        for kind, of_kind in plugins.items()
        for plugin in of_kind
    ]


def describe_plugin(row: Mapping[str, str]) -> str:
    """The kind, package and state of a plug-in in one line."""
    state = f"FAILED: {row['problem']}" if row["problem"] else "loaded"
    return f"{row['kind']} of {row['package']} {row['version']}: {state}"
