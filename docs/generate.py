"""Documentation pages generated from declarations: analyses, claims, gallery, corpora, command line."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from typer.models import ArgumentInfo, OptionInfo

import bertology
from bertology.analyses import registry
from bertology.analyses.declaration import REPORT_SECTIONS, Analysis
from bertology.citations import CITATIONS
from bertology.claims.claim import all_claims
from bertology.cli.main import COMMANDS
from bertology.corpus.read import load_corpus, readers
from bertology.recording.sites import LOGIT_SITES, RAW_SITES, reductions
from bertology.results.drawing.style import page_css
from bertology.views.report.results import render_result

if TYPE_CHECKING:
    from mkdocs.structure.files import Files


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages to the site."""
    from mkdocs.structure.files import File

    analyses = registry.load_all()
    pages = {
        "analyses.md": analyses_overview(analyses),
        "claims.md": claims_page(),
        "gallery.md": gallery_page(analyses),
        "corpora.md": corpora_page(),
        "command-line.md": command_line_page(),
    }
    pages |= {f"analyses/{analysis.name}.md": analysis_page(analysis) for analysis in analyses}
    for uri, content in pages.items():
        files.append(File.generated(config, uri, content=content))
    return files


def analyses_overview(analyses: tuple[Analysis, ...]) -> str:
    """All analyses by report section, and all sites."""
    lines = ["# Analyses", ""]
    for section in REPORT_SECTIONS:
        rows = [f"| [{a.name}](analyses/{a.name}.md) | {a.question} |" for a in analyses if a.report_section == section]
        lines += [f"## {section}", "", "| name | question |", "|---|---|", *rows, ""] if rows else []
    sites = [*RAW_SITES.values(), *LOGIT_SITES.values(), *reductions().values()]
    lines += [
        "## Sites",
        "",
        "A recording holds arrays at sites; reduced sites have (layer, head) before these axes.",
        "",
    ]
    lines += ["| site | axes | description |", "|---|---|---|"]
    lines += [f"| `{site.name}` | {' × '.join(site.axes)} | {site.description} |" for site in sites]
    return "\n".join(lines)


def analysis_page(analysis: Analysis) -> str:
    """Question, definition, options, command and references of one analysis."""
    options = [f"| `--{o.flag}` | `{o.default}` | {o.description} |" for o in analysis.options.values()]
    references = [f"- {CITATIONS[key]}" for key in analysis.citations]
    command = f"    bertology run {analysis.name} --model mini --corpus {analysis.test_corpus or 'english'}"
    return "\n".join(
        [
            f"# {analysis.name}",
            "",
            f"**{analysis.question}**",
            "",
            analysis.description,
            "",
            analysis.special_tokens,
            "",
        ]
        + (["## Options", "", "| option | default | |", "|---|---|---|", *options, ""] if options else [])
        + ["## Command", "", command.partition("+")[0], ""]
        + (["## References", "", *references] if references else [])
    )


def claims_page() -> str:
    """Every claim by paper, with its published value and the analyses that measure it."""
    claims = all_claims()
    intro = f"`bertology claims MODEL` tests these {len(claims)} published findings."
    lines = ["# Claims", "", f"{intro} [How verdicts and controls are meant](claims-review.md).", ""]
    for paper in dict.fromkeys(claim.paper for claim in claims):
        lines += [f"## {CITATIONS[paper]}", "", "| claim | published | measured by | control |", "|---|---|---|---|"]
        for claim in claims:
            if claim.paper == paper:
                names = dict.fromkeys(run.analysis for run in claim.all_runs.values())
                links = ", ".join(f"[{name}](analyses/{name}.md)" for name in names)
                controls = ", ".join(control.name for control in claim.controls) or f"none: {claim.no_control}"
                published = f"{claim.section}: {claim.published_value}"
                lines.append(f"| {claim.statement} | {published} | {links} | {controls} |")
        lines.append("")
    return "\n".join(lines)


def gallery_page(analyses: tuple[Analysis, ...]) -> str:
    """Figures of the analyses that declare `gallery=True`, on the built-in model and corpus."""
    corpus = load_corpus("english", limit=30)
    lines = ["# Gallery", "", "`mini` on the first 30 examples of `english`. Hover over a mark for its value.", ""]
    lines += [f"<style>{page_css()}</style>", ""]
    for analysis in analyses:
        if analysis.gallery:
            result = bertology.run(analysis.name, "mini", corpus)
            lines += [f"## [{analysis.name}](analyses/{analysis.name}.md)", "", analysis.question, ""]
            lines += [render_result(result), ""]
    return "\n".join(lines)


def corpora_page() -> str:
    """Every corpus format with its suffixes, an example and its options."""
    lines = ["# Corpora", "", "`--corpus` reads these formats; `--format` names one if the suffix does not.", ""]
    for reader in readers().values():
        suffixes = ", ".join(f"`{suffix}`" for suffix in reader.suffixes) or f"`--format {reader.name}`"
        lines += [f"## {reader.name}", "", f"{reader.description} ({suffixes})", ""]
        lines += [f"    {line}" for line in reader.example.splitlines()]
        parameters = inspect.signature(reader.function).parameters.values()
        options = [f"`{p.name}` (default `{p.default}`)" for p in parameters if p.kind is p.KEYWORD_ONLY]
        lines += ["", f"Options (`--format-option NAME=VALUE`): {', '.join(options)}.", ""] if options else [""]
    return "\n".join(lines)


def command_line_page() -> str:
    """Every command with its arguments and options."""
    lines = [
        "# Command line",
        "",
        "Results go to stdout, messages to stderr. Exit status 0: success; 2: a user error, "
        "explained in one paragraph.",
    ]
    for name, (function, summary) in COMMANDS.items():
        lines += ["", f"## bertology {name}", "", summary, "", "| | |", "|---|---|"]
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            for info in getattr(parameter.annotation, "__metadata__", ()):
                lines.append(f"| `{_usage(parameter.name, info)}` | {info.help} |")
    return "\n".join(lines)


def _usage(name: str, info: ArgumentInfo | OptionInfo) -> str:
    """How a parameter is written: an argument in capitals, an option with its flags and placeholder."""
    if isinstance(info, ArgumentInfo):
        return name.upper()
    # Inside Annotated, typer keeps the first flag in `default`.
    declared = [flag for flag in (info.default, *(info.param_decls or ())) if isinstance(flag, str)]
    flags = declared or [f"--{name.replace('_', '-')}"]
    return " ".join([", ".join(flags), *([info.metavar] if info.metavar else [])])
