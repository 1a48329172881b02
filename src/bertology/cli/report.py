"""`bertology report`: test published findings on a model and write an HTML report that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bertology.cli import claims, options
from bertology.errors import Refusal

if TYPE_CHECKING:
    from bertology.views.report.content import ReportContent

HELP = "Test published findings on a model and write a self-contained HTML report."


def report_command(
    arguments: claims.ClaimsOptions = claims.ClaimsOptions(),
    markdown: Annotated[bool, typer.Option("--markdown", help="Write Markdown instead of HTML.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON with every number instead of HTML.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write. [default: report.html]")
    ] = None,
) -> None:
    """Test the claims and write the report; claims that do not apply are listed with the reason."""
    from bertology.atomic_files import check_writable, write_atomically
    from bertology.views.report import export
    from bertology.views.report.page import report_page

    if markdown and as_json:
        raise Refusal(
            "Both --markdown and --json were given", "one of them", "Write two reports: they share their forward passes"
        )
    write, suffix = (
        (export.as_markdown, ".md") if markdown else (export.as_json, ".json") if as_json else (report_page, ".html")
    )
    file = output or Path(f"report{suffix}")
    check_writable(file)
    content = build_report(claims.run_claims(arguments), full=arguments.full)
    typer.echo(str(write_atomically(file, write(content).encode())))


def build_report(run: claims.ClaimsRun, *, full: bool) -> ReportContent:
    """The content of the report: the verdicts, and every analysis they are based on."""
    from bertology.analyses import registry
    from bertology.claims.claim import all_claims
    from bertology.claims.example_texts import example_texts
    from bertology.encoder.builtin import BUILT_IN_MODELS
    from bertology.views.report.attention_view import attention_view_fragment, recorded_view_fragment
    from bertology.views.report.content import AnalysisSection, ReportContent
    from bertology.views.report.finetuning import ABLATION, finetuning_changes

    inputs, report = run.inputs, run.report
    with options.progress_bars() as progress:
        finetuning = finetuning_changes(inputs, progress=progress, notify=options.print_message)
    claimed = [result for claim_result in report.results for result in claim_result.results]
    ablations = [r for r in finetuning.results if r.analysis == ABLATION] if finetuning is not None else []
    results = {id(result): result for result in (*claimed, *ablations)}
    sections = [AnalysisSection(registry.get(result.analysis), result) for result in results.values()]
    recorded = [r.encoder for r in (inputs.recording, inputs.against_recording) if r is not None]
    models = [encoder.name for encoder in (inputs.encoder, *recorded, inputs.against) if encoder is not None]
    messages = [f"{name}: {BUILT_IN_MODELS[name].description}" for name in models if name in BUILT_IN_MODELS]
    not_run = [] if full else [claim.id for claim in all_claims() if claim.slow]
    if not_run:
        messages.append(f"{len(not_run)} further claims take minutes and were not tested; add --full.")
    corpus = inputs.corpus.name if inputs.corpus is not None else ""
    attention_view = ""
    if inputs.recording is not None:
        attention_view = recorded_view_fragment(inputs.recording, list(results.values()))
    elif inputs.encoder is not None and inputs.corpus is not None:
        attention_view = attention_view_fragment(inputs.encoder, inputs.corpus, list(results.values()))
    options.print_message("Finding example sentences for each claim ...")
    return ReportContent(
        title=f"BERTology report: {' and '.join(models)} on {corpus}",
        messages=messages,
        claim_results=report.results,
        sections=sections,
        passes=[*report.passes, *(finetuning.passes if finetuning is not None else ())],
        attention_view=attention_view,
        elapsed=report.elapsed,
        example_texts=example_texts(report.results, inputs),
        not_run=not_run,
        finetuning=finetuning,
    )
