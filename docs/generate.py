"""Pages written from declarations when the documentation is built: analyses, corpora, sites, the command line."""

from __future__ import annotations

import inspect
from typing import Any

from mkdocs.structure.files import File, Files
from typer.models import ArgumentInfo, OptionInfo

import bertology
from bertology.analyses import registry
from bertology.analyses.declaration import Analysis
from bertology.citations import CITATIONS
from bertology.claims.shelf import all_claims
from bertology.cli.main import COMMANDS
from bertology.corpus.builtin import corpus_named
from bertology.corpus.read import readers
from bertology.recording.sites import LOGITS, RAW, reductions
from bertology.report.drawings import drawn


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages."""
    analyses = registry.load_all()
    pages = {"analyses.md": _overview(analyses), "corpora.md": _corpora(), "command-line.md": _command_line()}
    pages |= {f"analyses/{analysis.name}.md": _page(analysis) for analysis in analyses}
    pages |= {"claims.md": _claims(), "gallery.md": _gallery()}
    for uri, content in pages.items():
        files.append(File.generated(config, uri, content=content))
    return files


def _overview(analyses: tuple[Analysis, ...]) -> str:
    rows = [f"| [{a.name}](analyses/{a.name}.md) | {a.question} |" for a in analyses]
    sites = [*RAW.values(), *LOGITS.values(), *reductions().values()]
    named = [f"| `{site.name}` | {' × '.join(site.axes)} | {site.about} |" for site in sites]
    lines = ["# Analyses", "", "| name | question |", "|---|---|", *rows, "", "## Sites", ""]
    lines += ["What a recording can hold; reduced sites have (layer, head) before the axes named here.", ""]
    lines += ["| site | axes | what |", "|---|---|---|", *named]
    return "\n".join(lines)


def _page(analysis: Analysis) -> str:
    options = [f"| `--{o.flag}` | `{o.default}` | {o.about} |" for o in analysis.options.values()]
    cites = [f"- {CITATIONS[key]}" for key in analysis.cites]
    return "\n".join(
        [f"# {analysis.name}", "", f"**{analysis.question}**", "", analysis.about, ""]
        + [f"Special tokens: {analysis.special}.", ""]
        + (["## Options", "", "| option | default | |", "|---|---|---|", *options, ""] if options else [])
        + ["## Run it", "", f"    bertology run {analysis.name} --model mini --corpus english", ""]
        + (["## After", "", *cites] if cites else [])
    )


def _claims() -> str:
    """Every published finding that `bertology claims` judges, by paper."""
    claims = all_claims()
    parts = [
        "# Findings",
        "",
        f"`bertology claims MODEL` judges these {len(claims)} published findings by their intervals.",
        "",
    ]
    for paper in dict.fromkeys(claim.paper for claim in claims):
        parts += [f"## {CITATIONS[paper]}", "", "| finding | published | measured by |", "|---|---|---|"]
        for claim in claims:
            if claim.paper == paper:
                names = dict.fromkeys(run.analysis for run in claim.measured_by.values())
                links = ", ".join(f"[{name}](analyses/{name}.md)" for name in names)
                parts.append(f"| {claim.finding} | {claim.place}: {claim.published} | {links} |")
        parts.append("")
    return "\n".join(parts)


GALLERY = ("attention/targets", "attention/entropy", "attention/distance", "attention/norms", "geometry/anisotropy")


def _gallery() -> str:
    """A few results on the built-in model and corpus, drawn as the report draws them."""
    corpus = corpus_named("english", limit=30)
    parts = ["# Gallery", "", "`mini` on the first 30 inputs of `english`; hover over a mark for its number.", ""]
    parts += [f"<style>{DRAWN}</style>", ""]
    for name in GALLERY:
        result = bertology.run(name, "mini", corpus)
        parts += [f"## [{name}](analyses/{name}.md)", "", registry.get(name).question, "", drawn(result), ""]
    return "\n".join(parts)


DRAWN = """
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); gap: 1rem 1.5rem; }
.figures figure { margin: 0; text-align: left; } .figures h4 { margin: .5rem 0; }
.md-typeset .figures figcaption { margin: .3rem 0; max-width: none; font-style: normal; font-size: .65rem; }
.figures svg { max-width: 100%; } .figures svg text { font-size: 10px; fill: currentColor; opacity: .7; }
.figures .mark { fill: #2b7bd4; } .figures .band { fill: #2b7bd4; opacity: .18; }
.figures .curve { fill: none; stroke: #2b7bd4; stroke-width: 2; }
.figures .baseline { fill: none; stroke: currentColor; opacity: .6; stroke-width: 1.5; }
.figures .beside { fill: currentColor; opacity: .1; } .figures .rule { stroke: currentColor; opacity: .15; }
.figures .leader { fill: none; stroke: currentColor; opacity: .6; stroke-width: .5; }
"""


def _corpora() -> str:
    parts = ["# Corpora", "", "Give any of these to `--corpus`; `--format` says which where the suffix does not.", ""]
    for reader in readers().values():
        suffixes = ", ".join(f"`{suffix}`" for suffix in reader.suffixes) or "say `--format`"
        parts += [f"## {reader.name}", "", f"{reader.about} ({suffixes})", ""]
        parts += [f"    {line}" for line in reader.example.splitlines()]
        options = [f"`{name}` (default `{p.default}`)" for name, p in reader.options.items()]
        parts += ["", f"Options (`--format-option name=value`): {', '.join(options)}.", ""] if options else [""]
    return "\n".join(parts)


def _command_line() -> str:
    parts = [
        "# Command line",
        "",
        "stdout is data, stderr is talk. Exit 0: done; 2: your mistake, told in one paragraph.",
    ]
    for name, (function, about) in COMMANDS.items():
        parts += ["", f"## bertology {name}", "", about, "", "| | |", "|---|---|"]
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            for info in getattr(parameter.annotation, "__metadata__", ()):
                parts.append(f"| `{_written(parameter.name, info)}` | {info.help} |")
    return "\n".join(parts)


def _written(name: str, info: ArgumentInfo | OptionInfo) -> str:
    """How a parameter is given: an argument by its place, an option by its names and what stands after it."""
    if isinstance(info, ArgumentInfo):
        return name.upper()
    # Beside an annotation, typer keeps the first name where it keeps defaults.
    named = [flag for flag in (info.default, *(info.param_decls or ())) if isinstance(flag, str)]
    flags = named or [f"--{name.replace('_', '-')}"]
    return " ".join([", ".join(flags), *([info.metavar] if info.metavar else [])])
