"""`bertology list`: what can be named on the command line."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer

from bertology.cli import inputs
from bertology.cli.columns import broken

HELP = "List analyses, models, corpora (and the formats that can be read), sites or claims."

What = Literal["analyses", "models", "corpora", "sites", "claims"]


def listing(
    what: Annotated[What, typer.Argument(help="What to list.")] = "analyses",
    as_json: inputs.Json = False,
) -> None:
    """Print names and what they are."""
    rows = _rows(what)
    if as_json:
        typer.echo(json.dumps(rows, ensure_ascii=False))
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        typer.echo(broken(f"{row['name']:<{width}}  {row['about']}", width + 2))


def _rows(what: What) -> list[dict[str, Any]]:
    match what:
        case "analyses":
            from bertology.analyses import registry

            return [{"name": a.name, "about": a.question, "version": a.version} for a in registry.load_all()]
        case "models":
            from bertology.encoder.builtin import BUILT_IN

            return [{"name": name, "about": model.about} for name, model in BUILT_IN.items()]
        case "corpora":
            from bertology.corpus.builtin import describe as describe_corpora

            return describe_corpora()
        case "sites":
            from bertology.analyses import registry
            from bertology.recording.sites import LOGITS, RAW, reductions

            registry.load_all()
            sites = [*RAW.values(), *LOGITS.values(), *reductions().values()]
            return [{"name": site.name, "about": site.about, "axes": list(site.axes)} for site in sites]
        case "claims":
            from bertology.claims.shelf import all_claims

            return [{"name": c.id, "about": f"{c.finding} ({c.paper})", "paper": c.paper} for c in all_claims()]
