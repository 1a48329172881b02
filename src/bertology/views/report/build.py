"""`bertology.report`: test published findings on a model and write the report."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Unpack

from bertology.analyses import registry
from bertology.analyses.recordings_by_role import ForwardPass
from bertology.analyses.run import RunInputs, run_all
from bertology.atomic_files import check_writable, write_atomically
from bertology.claims.catalogue import all_claims
from bertology.claims.claim_results import ClaimResults
from bertology.claims.example_texts import example_texts
from bertology.claims.run import ClaimsArguments, claims
from bertology.corpus.language import detect_language
from bertology.encoder.builtin import BUILT_IN_MODELS
from bertology.engines.engine import open_engine
from bertology.errors import CostError, Refusal, unknown_name
from bertology.machine_errors import raise_machine_error
from bertology.progress import MessageCallback, ProgressFactory
from bertology.public_functions import check_arguments
from bertology.results.result import Result
from bertology.views.report import export
from bertology.views.report.attention_view import attention_view_fragment, recorded_view_fragment
from bertology.views.report.content import AnalysisSection, ReportContent, ReportSubject
from bertology.views.report.finetuning.measure import ABLATION, finetuning_changes
from bertology.views.report.head_scores import score_heads
from bertology.views.report.page import report_page
from bertology.views.report.pictures import chosen_layers
from bertology.views.report.text_views import FindingTexts, text_views

ReportFormat = Literal["html", "markdown", "json"]
SUFFIXES: dict[str, ReportFormat] = {".html": "html", ".md": "markdown", ".json": "json"}
WRITERS = {"html": report_page, "markdown": export.as_markdown, "json": export.as_json}


def report(
    encoder: Any = None,
    corpus: Any = None,
    *,
    output: str | Path = "report.html",
    format: ReportFormat | None = None,
    **arguments: Unpack[ClaimsArguments],
) -> Path:
    """Test published findings on a model and write a report that opens offline; the path of its file.

    The suffix of `output` is its format: .html, .md or .json, unless `format` says otherwise. All other arguments are
    those of `bertology.claims`, for one model.
    """
    write_report(encoder, corpus, output=Path(output), format=format, **arguments)
    return Path(output)


def write_report(
    encoder: Any, corpus: Any, *, output: Path, format: ReportFormat | None, **arguments: Unpack[ClaimsArguments]
) -> ReportContent:
    """Test the findings and write the report; its content, which names what failed."""
    if isinstance(encoder, list):
        raise Refusal(
            "A report was asked for several models", "one model", "Write a report for each, or use bertology.claims"
        )
    if format is None and output.suffix not in SUFFIXES:
        raise Refusal(
            f"The suffix of {output.name} says no format",
            f"one of: {', '.join(SUFFIXES)}",
            "Change it, or name a format",
        )
    if format is not None and format not in WRITERS:
        raise unknown_name("format of a report", format, WRITERS)
    check_arguments(claims, dict(arguments))
    check_writable(output)
    notify = arguments.get("notify")
    with open_engine(arguments.get("engine")) as engine:
        arguments["engine"] = engine
        results = claims(encoder, corpus, **arguments)
        content = build_report(results, progress=arguments.get("progress"), notify=notify)
    if notify is not None:
        for line in filter(None, (content.passes_summary, content.timing_summary)):
            notify(line)
        for failure in content.failures:
            notify(failure)
    write_atomically(output, WRITERS[format or SUFFIXES[output.suffix]](content).encode())
    return content


def build_report(
    claim_results: ClaimResults, *, progress: ProgressFactory | None = None, notify: MessageCallback | None = None
) -> ReportContent:
    """The content of the report: the verdicts, and every analysis they are based on."""
    inputs = claim_results.inputs
    finetuning = finetuning_changes(inputs, progress=progress, notify=notify)
    head_scores, score_passes = score_heads(claim_results, progress=progress, notify=notify)
    claimed = [result for claim_result in claim_results for result in claim_result.results]
    ablations = [r for r in finetuning.results if r.analysis == ABLATION] if finetuning is not None else []
    plugged_in = run_plugins(inputs, {result.analysis for result in claimed}, progress=progress, notify=notify)
    results = {id(result): result for result in (*claimed, *ablations, *plugged_in.results)}
    tested = {result.claim.id for result in claim_results}
    not_run = [claim for claim in all_claims() if claim.slow and claim.id not in tested]
    if notify is not None:
        notify("Finding example sentences for each claim ...")
    examples = _example_texts(claim_results)
    texts = text_views(examples, list(results.values()))
    attention_view = ""
    if inputs.recording is not None:
        attention_view = recorded_view_fragment(inputs.recording, list(results.values()), texts.html)
    elif inputs.encoder is not None and inputs.corpus is not None:
        attention_view = attention_view_fragment(inputs.encoder, inputs.corpus, list(results.values()), texts.html)
    return ReportContent(
        subject=_subject(claim_results),
        messages=[*_messages(claim_results), *plugged_in.messages, *plugged_in.failures],
        failures=plugged_in.failures,
        claim_results=claim_results,
        sections=[AnalysisSection(registry.get(result.analysis), result) for result in results.values()],
        passes=[
            *claim_results.passes,
            *(finetuning.passes if finetuning is not None else ()),
            *score_passes,
            *plugged_in.passes,
        ],
        attention_view=attention_view,
        elapsed=claim_results.elapsed,
        example_texts={claim_id: finding.examples for claim_id, finding in examples.items()},
        text_names=texts.names,
        head_scores=head_scores,
        not_run=not_run,
        finetuning=finetuning,
    )


def _example_texts(claim_results: ClaimResults) -> dict[str, FindingTexts]:
    """The example texts of all claims, from the corpus that each was tested on."""
    by_claim: dict[str, FindingTexts] = {}
    for is_filled in (False, True):
        tested = {result.claim.id: result for result in claim_results if bool(result.filled_from) == is_filled}
        inputs = claim_results.inputs
        if is_filled:
            inputs = replace(inputs, corpus=claim_results.filling)
        for claim_id, examples in example_texts(list(tested.values()), inputs).items():
            by_claim[claim_id] = FindingTexts(examples, inputs, chosen_layers(tested[claim_id]))
    return by_claim


@dataclass(frozen=True)
class PluginResults:
    """The results of plugged-in analyses, messages about them, those that failed, and the forward passes made."""

    results: tuple[Result, ...] = ()
    messages: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    passes: tuple[ForwardPass, ...] = ()


def run_plugins(
    inputs: RunInputs,
    finished: Set[str],
    *,
    progress: ProgressFactory | None = None,
    notify: MessageCallback | None = None,
) -> PluginResults:
    """Run the analyses of plug-ins that no claim has run; one that fails is named, not the end of the report."""
    results: list[Result] = []
    messages: list[str] = []
    failures: list[str] = []
    passes: list[ForwardPass] = []
    for plugin in registry.plugins():
        source = f"the plug-in {plugin.name} of {plugin.package} {plugin.version}"
        if plugin.problem:
            messages.append(f"Left out: {source}: {plugin.problem}")
            continue
        messages.append(f"With {source}.")
        if plugin.name in finished:
            continue
        try:
            run = run_all([(plugin.value, {})], inputs, progress=progress, notify=notify, cache_results=True)
        except CostError:
            raise
        except Exception as error:  # code of another package, which may fail in any way
            raise_machine_error(error)
            messages.pop()
            failures.append(f"Failed: {source}: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
            continue
        passes += run.passes
        for outcome in run.outcomes:
            if isinstance(outcome, Refusal):
                messages[-1] = f"Left out: {source}: {outcome}"
            else:
                results.append(outcome)
    return PluginResults(tuple(results), tuple(messages), tuple(failures), tuple(passes))


def _subject(claim_results: ClaimResults) -> ReportSubject:
    """The model and corpus of the claims, from the recording if there is one."""
    described, inputs = claim_results.to_json(), claim_results.inputs
    names, corpus = inputs.model_names, inputs.corpus
    model = described["model"] or {}
    builtin = BUILT_IN_MODELS.get(names.get("recording", ""))
    is_paired = corpus is not None and any(len(example.segments) > 1 for example in corpus)
    return ReportSubject(
        model=names.get("recording", "the model"),
        corpus=corpus.name if corpus is not None else "",
        n_layers=model.get("layers", 0),
        n_heads=model.get("heads", 0),
        description=builtin.description if builtin is not None else "",
        n_examples=len(corpus) if corpus is not None else 0,
        unit="texts" if is_paired else "sentences",
        language=detect_language(corpus) if corpus is not None else None,
        against=names.get("against", ""),
        is_recorded=inputs.recording is not None,
    )


def _messages(claim_results: ClaimResults) -> list[str]:
    """Notes on the run: the built-in models, unknown tokens, and what was filled in."""
    names = claim_results.inputs.model_names.values()
    messages = [f"{name}: {BUILT_IN_MODELS[name].description}" for name in names if name in BUILT_IN_MODELS]
    messages += [f"{count}." for count in claim_results.unknown_tokens]
    return [*messages, *filter(None, [claim_results.filling_note()])]
