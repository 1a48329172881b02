"""Documentation pages made from declarations: analyses, claims, gallery, corpus formats, command line, Python, schemas.

The page of an analysis has its question, the figure of the first command of its text in `docs/analyses/`, that text,
and what the declaration says: options, cost, baselines, presets, claims, references. Results of these commands are
kept in `docs/results/`, so that building the site runs no model. A result of another version of the analysis, or of
another command, is not shown; `python docs/generate.py [NAME ...]` computes those again, or all that are out of date.
"""

from __future__ import annotations

import ast
import inspect
import io
import json
import logging
import re
import shlex
import sys
from collections.abc import Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from typer.models import ArgumentInfo, OptionInfo

import bertology
from bertology.analyses import registry
from bertology.analyses.declaration import INPUTS, REPORT_SECTIONS, Analysis
from bertology.analyses.presets import all_presets
from bertology.atlas.schema import atlas_schema
from bertology.citations import full_citation
from bertology.claims.catalogue import all_claims
from bertology.claims.claim import Claim
from bertology.cli.main import COMMANDS, main
from bertology.corpus.read import readers
from bertology.recording.sites import LOGIT_SITES, RAW_SITES, reductions
from bertology.results.drawing.figure import draw_shape
from bertology.results.drawing.style import page_css
from bertology.results.result import Result
from bertology.results.shapes import UnmeasuredShape
from bertology.views.report.results import render_result
from bertology.views.report.schemas import json_schemas

if TYPE_CHECKING:
    from mkdocs.structure.files import Files

DOCS = Path(__file__).parent
RESULTS = DOCS / "results"
DIGITS = 5
"""Significant digits of stored numbers: more than a figure shows."""
GALLERY_WIDTH = 350
"""Width of a figure of the gallery in pixels."""
COMMAND = re.compile(r"^ *bertology (run .*?[^\\])$", re.MULTILINE | re.DOTALL)
log = logging.getLogger("mkdocs.hooks.generate")


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages to the site; the page of an analysis replaces the text it is made of."""
    from mkdocs.structure.files import File

    analyses = registry.load_all()
    pages = {
        "analyses.md": analyses_overview(analyses),
        "claims.md": claims_page(),
        "gallery.md": gallery_page(analyses),
        "corpora.md": corpora_page(),
        "command-line.md": command_line_page(),
        "schemas.md": schemas_page(),
        "assets/figures.css": page_css(),
    }
    pages |= {f"schemas/{name}.json": json.dumps(schema, indent=1) for name, schema in all_schemas().items()}
    pages |= api_pages()
    pages |= {f"analyses/{analysis.name}.md": analysis_page(analysis) for analysis in analyses}
    for uri, content in pages.items():
        text = files.get_file_from_path(uri)
        if text is not None:
            files.remove(text)
        files.append(File.generated(config, uri, content=content))
    return files


def analyses_overview(analyses: tuple[Analysis, ...]) -> str:
    """All analyses by report section, and all sites."""
    lines = ["# Analyses", ""]
    for section in REPORT_SECTIONS:
        rows = [f"| [{a.name}](analyses/{a.name}.md) | {a.question} |" for a in analyses if a.report_section == section]
        lines += [f"## {section}", "", "| name | question |", "|---|---|", *rows, ""] if rows else []
    sites = [*RAW_SITES.values(), *LOGIT_SITES.values(), *reductions().values()]
    lines += ["## Sites", ""]
    lines += ["A recording holds arrays at sites; reduced sites have (layer, head) before these axes.", ""]
    lines += ["| site | axes | description |", "|---|---|---|"]
    lines += [f"| `{site.name}` | {' × '.join(site.axes)} | {_cell(site.description)} |" for site in sites]
    return "\n".join(lines)


@dataclass(frozen=True)
class PageFigure:
    """A command and its stored result, if there is one."""

    command: str
    result: Result | None


def analysis_page(analysis: Analysis) -> str:
    """Everything about one analysis: question, figure, text, and what its declaration says."""
    text = DOCS / "analyses" / f"{analysis.name}.md"
    figure = page_figure(analysis)
    parts = [
        f"# {analysis.name}",
        f"**{analysis.question}**",
        _figure_section(figure),
        text.read_text("utf-8").strip() if text.is_file() else f"## Definition\n\n{analysis.description}",
        _input_section(analysis),
        _baseline_section(figure.result),
        _option_section(analysis),
        _preset_section(analysis),
        _claim_section(analysis),
        _list_section("References", [full_citation(key) for key in analysis.citations]),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def page_figure(analysis: Analysis) -> PageFigure:
    """The stored result of the first command in the text of an analysis, if it is of this version and command."""
    command = figure_command(analysis)
    file = RESULTS / f"{analysis.name}.json"
    stored = json.loads(file.read_text("utf-8")) if file.is_file() else {}
    if stored.get("command") == command and stored["result"]["version"] == analysis.version:
        return PageFigure(command, Result.from_json(stored["result"]))
    log.info("no current figure of %s: python docs/generate.py %s", analysis.name, analysis.name)
    return PageFigure(command, None)


def compute_figure(analysis: Analysis) -> None:
    """Run the command of an analysis and store its result; a refused command is reported."""
    command = figure_command(analysis)
    status, out, err = _run_command([*shlex.split(command), "--json"])
    if status:
        print(f"{analysis.name}: {err.strip()}", file=sys.stderr)
        return
    result = json.loads(out)
    result["data"].pop("paired_differences", None)  # shown by no figure
    stored = {"command": command, "result": _rounded(result)}
    file = RESULTS / f"{analysis.name}.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(stored, ensure_ascii=False, separators=(",", ":")) + "\n", "utf-8")


def figure_command(analysis: Analysis) -> str:
    """The first `run` command in the text of the analysis, without `bertology`; a default for plug-ins."""
    text = DOCS / "analyses" / f"{analysis.name}.md"
    found = COMMAND.search(text.read_text("utf-8")) if text.is_file() else None
    if found:
        return " ".join(found[1].replace("\\\n", " ").split())
    return f"run {analysis.name} --model mini --corpus {(analysis.test_corpus or 'english').partition('+')[0]}"


def _run_command(arguments: list[str]) -> tuple[int, str, str]:
    """Exit status, output and messages of `bertology ARGUMENTS`."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), patch("sys.argv", ["bertology", *arguments]):
        try:
            main()
        except SystemExit as stop:
            return int(stop.code or 0), out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    return [_rounded(part) for part in value] if isinstance(value, list) else value


def _figure_section(figure: PageFigure) -> str:
    lines = ["## Figure", "", f"    bertology {figure.command}", ""]
    if figure.result is None:
        return "\n".join([*lines, "No figure is stored for the present version of this analysis."])
    return "\n".join([*lines, _as_block("result", str(render_result(figure.result)))])


def _as_block(classes: str, html: str) -> str:
    """HTML that Markdown leaves alone, and that the search does not index.

    The search resumes after the first inner element with the tag of the excluded one, so that a `div` would not do.
    """
    return f'<section class="{classes}" data-search-exclude>\n' + re.sub(r"\n\s*\n", "\n", html) + "\n</section>"


def _input_section(analysis: Analysis) -> str:
    needs = [f"{name}: {INPUTS[name]}{' (optional)' if name in analysis.optional else ''}" for name in analysis.inputs]
    if analysis.annotations:
        needs.append(f"annotations: {', '.join(f'`{name}`' for name in analysis.annotations)}")
    if analysis.needs_task_head:
        needs.append(f"a model with the task head `{analysis.needs_task_head}`")
    cost = analysis.cost
    per_word = cost.seconds_per_word + cost.seconds_per_sampled_word
    sampled = ", at most 6,000 words" if cost.seconds_per_sampled_word else ""
    words = f" and {1000 * per_word:g} s per 1,000 words{sampled}" if per_word else ""
    time = f"about {cost.seconds:g} s{words} beyond the forward passes (small model, one core)"
    return _list_section("Needs and cost", [*needs, f"time: {time}", f"version {analysis.version} of its numbers"]) + (
        f"\n\n{analysis.special_tokens}"
    )


def _baseline_section(result: Result | None) -> str:
    """Every measure with its unit, its kind of interval and its baselines, in the result shown."""
    if result is None or isinstance(result.data, UnmeasuredShape):
        return ""
    rows = [
        f"| `{name}` | {_cell(result.data.units.get(name, ''))} | {estimates.interval} | "
        f"{', '.join(result.data.baselines_of(name)) or 'none'} |"
        for name, estimates in result.data.measures.items()
    ]
    return "\n".join(
        ["## Measures and baselines", "", "| measure | unit | interval | baselines |", "|---|---|---|---|", *rows]
    )


def _option_section(analysis: Analysis) -> str:
    rows = [f"| `--{o.flag}` | `{o.default}` | {_cell(o.description)} |" for o in analysis.options.values()]
    return "\n".join(["## Options", "", "| option | default | |", "|---|---|---|", *rows]) if rows else ""


def _preset_section(analysis: Analysis) -> str:
    presets = [f"`--like {p.paper}`: {p.describe()}" for p in all_presets() if p.analysis == analysis.name]
    return _list_section("Presets", presets)


def _claim_section(analysis: Analysis) -> str:
    claims = [c for c in all_claims() if any(run.analysis == analysis.name for run in c.all_runs.values())]
    return _list_section("Claims", [f"{claim.statement} ({claim.short_reference}; `{claim.id}`)" for claim in claims])


def _list_section(title: str, entries: Iterable[str]) -> str:
    lines = [f"- {entry}" for entry in entries]
    return "\n".join([f"## {title}", "", *lines]) if lines else ""


def _cell(text: str) -> str:
    """Text in a cell of a table."""
    return " ".join(text.replace("|", "\\|").split())


def claims_page() -> str:
    """Every claim by paper, with its published value and the analyses that measure it."""
    claims = all_claims()
    intro = f"`bertology claims MODEL` tests these {len(claims)} published findings."
    lines = ["# Claims", "", f"{intro} [How verdicts and controls are meant](claims-review.md).", ""]
    for paper in dict.fromkeys(claim.paper for claim in claims):
        of_paper = [claim for claim in claims if claim.paper == paper]
        lines += [f"## {of_paper[0].reference}", "", f"`bertology claims MODEL --paper {paper}`", ""]
        lines += ["| claim | published | measured by | control |", "|---|---|---|---|", *map(_claim_row, of_paper), ""]
    return "\n".join(lines)


def _claim_row(claim: Claim) -> str:
    names = dict.fromkeys(run.analysis for run in claim.all_runs.values())
    links = ", ".join(f"[{name}](analyses/{name}.md)" for name in names)
    controls = ", ".join(control.name for control in claim.controls) or f"none: {claim.no_control}"
    published = f"{claim.section}: {claim.published_value}"
    return f"| {_cell(claim.statement)} | {_cell(published)} | {links} | {_cell(controls)} |"


def gallery_page(analyses: tuple[Analysis, ...]) -> str:
    """The first panel of the figure of every analysis."""
    figures = [(analysis, figure) for analysis in analyses if (figure := _gallery_figure(analysis))]
    lines = ["# Gallery", ""]
    lines += [f"{len(figures)} figures, the first panel of each. The link opens all panels, command and explanation."]
    lines += [
        "Hover over a mark for its value. Panels, width and caption can be chosen: see [figures](figures.md).",
        "",
    ]
    for section in REPORT_SECTIONS:
        of_section = [figure for analysis, figure in figures if analysis.report_section == section]
        if of_section:
            lines += [f"## {section}", "", _as_block("gallery result", "\n".join(of_section)), ""]
    return "\n".join(lines)


def _gallery_figure(analysis: Analysis) -> str:
    result = page_figure(analysis).result
    panels = draw_shape(result.data, width=GALLERY_WIDTH).panels if result is not None else ()
    if not panels:
        return ""
    link = f'<a href="analyses/{analysis.name}.html">{analysis.name}</a>'
    title = f"{panels[0].name}<br>" if panels[0].name else ""
    return f"<figure>{panels[0].svg()}<figcaption>{link}<br>{title}{analysis.question}</figcaption></figure>"


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
    lines = ["# Command line", ""]
    lines += [
        "Results go to stdout, messages to stderr. Exit status 0: success; 1: a check failed (`--fail-on`, `doctor`),"
    ]
    lines += ["or the machine cannot go on (no space, no memory); 2: a user error, explained in one paragraph;"]
    lines += ["130: interrupted; 143: terminated."]
    for name, (function, summary) in COMMANDS.items():
        lines += ["", f"## bertology {name}", "", summary, "", "| | |", "|---|---|"]
        for parameter in inspect.signature(function, eval_str=True).parameters.values():
            for info in getattr(parameter.annotation, "__metadata__", ()):
                if isinstance(info, ArgumentInfo | OptionInfo):
                    lines.append(f"| `{_usage(parameter.name, info)}` | {_cell(info.help)} |")
    return "\n".join(lines)


def _usage(name: str, info: ArgumentInfo | OptionInfo) -> str:
    """How a parameter is written: an argument in capitals, an option with its flags and placeholder."""
    if isinstance(info, ArgumentInfo):
        return name.upper()
    # Inside Annotated, typer keeps the first flag in `default`.
    declared = [flag for flag in (info.default, *(info.param_decls or ())) if isinstance(flag, str)]
    flags = declared or [f"--{name.replace('_', '-')}"]
    return " ".join([", ".join(flags), *([info.metavar] if info.metavar else [])])


def all_schemas() -> dict[str, Any]:
    """The schemas of every command that writes JSON."""
    return {**json_schemas(), "atlas": atlas_schema()}


def schemas_page() -> str:
    """The JSON schema of every command that writes JSON, field by field."""
    lines = ["# JSON schemas", ""]
    lines += ["What the commands write with `--json`, as [JSON Schema](https://json-schema.org).", ""]
    objects: dict[str, Any] = {}
    for name, schema in all_schemas().items():
        lines += [f"## bertology {name} --json", "", f"[schemas/{name}.json](schemas/{name}.json)", ""]
        lines += _field_table(schema) if "properties" in schema else [f"Type: {_schema_type(schema)}.", ""]
        objects |= schema["$defs"]
    for name, schema in objects.items():
        lines += [f"## {name}", "", schema.get("description", ""), "", *_field_table(schema)]
    return "\n".join(lines)


def _field_table(schema: Any) -> list[str]:
    rows = [
        f"| `{field}` | {_cell(_schema_type(value))} | {_cell(value.get('description', ''))} |"
        for field, value in schema["properties"].items()
    ]
    return ["| field | type | |", "|---|---|---|", *rows, ""]


def _schema_type(schema: Any) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"object [`{name}`](#{name.lower()})"
    if "properties" in schema:
        return f"object with {', '.join(f'`{n}` ({_schema_type(v)})' for n, v in schema['properties'].items())}"
    if "anyOf" in schema:
        return " or ".join(map(_schema_type, schema["anyOf"]))
    kind = schema.get("type", "any")
    names = " or ".join(kind) if isinstance(kind, list) else kind
    return f"{names} of {_schema_type(schema['items'])}" if schema.get("items") else names


AREAS = {
    "corpus": ("Corpora", "Texts with their annotations and labels, from files or from Python objects.", ("corpus",)),
    "encoder": ("Encoders", "Models as functions from tokens to hidden states, and what can be changed.", ("encoder",)),
    "recording": ("Recordings", "What an encoder computed on a corpus, at named sites.", ("recording",)),
    "run": ("Run analyses", "One analysis or several, on one model or several.", ("analyses.run", "analyses.compare")),
    "results": ("Results", "Estimates with intervals and baselines, as tables and figures.", ("results", "estimates")),
    "probe": ("Probes", "A scikit-learn estimator over the layers of an encoder.", ("analyses.prob",)),
    "claims": ("Claims and reports", "Published findings, tested on a model.", ("claims", "views.report", "atlas")),
    "views": ("Views", "Attention as pages and widgets.", ("views",)),
    "training": ("Fine-tuning", "Fine-tune an encoder on a labelled corpus.", ("training", "analyses.trainer")),
    "plugins": ("Plug-ins and errors", "What your own analyses, readers and model families use.", ("",)),
}
"""Pages of the Python reference: title, first sentence, and the modules whose public names stand there."""


@cache
def public_objects() -> dict[str, str]:
    """Where each public name of `bertology` is defined, from its imports for type checkers: `read` in `corpus.read`."""
    tree = ast.parse(Path(str(bertology.__file__)).read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    places = {alias.asname or alias.name: f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    # Packages that are functions, such as bertology.corpus, are assigned: `corpus = build_corpus`.
    assigned = [node for node in ast.walk(tree) if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name)]
    places |= {ast.unparse(node.targets[0]): places[node.value.id] for node in assigned if node.value.id in places}
    return {name: places[name] for name in bertology.__all__ if name in places}


def area_of(place: str) -> str:
    """The page of the Python reference for a public object."""
    module = place.removeprefix("bertology.")
    named = {"analyses.declaration": "plugins", "recording.sites": "plugins", "analyses.head_grids": "plugins"}
    for prefix, area in named.items():
        if module.startswith(prefix):
            return area
    matches = [(len(p), area) for area, (_, _, prefixes) in AREAS.items() for p in prefixes if module.startswith(p)]
    return max(matches)[1]


def api_pages() -> dict[str, str]:
    """One page of the Python reference for each area, and their overview."""
    by_area: dict[str, list[tuple[str, str]]] = {area: [] for area in AREAS}
    for name, place in sorted(public_objects().items()):
        by_area[area_of(place)].append((name, place))
    overview = ["# Python", "", "Everything below is in the package `bertology`.", "", "| name | |", "|---|---|"]
    pages: dict[str, str] = {}
    for area, (title, summary, _) in AREAS.items():
        lines = [f"# {title}", "", summary, ""]
        for name, place in by_area[area]:
            lines += [
                f"::: {place}",
                "    options:",
                f"      heading: bertology.{name}",
                f"      toc_label: {name}",
                "",
            ]
            module, _, attribute = place.rpartition(".")
            summary_line = (inspect.getdoc(getattr(import_module(module), attribute)) or "").partition("\n")[0]
            overview.append(f"| [`bertology.{name}`]({area}.md#{place}) | {_cell(summary_line)} |")
        pages[f"api/{area}.md"] = "\n".join(lines)
    return {"api/index.md": "\n".join(overview), **pages}


if __name__ == "__main__":
    for declared in [registry.get(name) for name in sys.argv[1:]] or registry.load_all():
        if page_figure(declared).result is None:
            compute_figure(declared)
