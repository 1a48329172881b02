"""Commands that lead on from a report: what to run next, and what remakes a figure."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from bertology.analyses import registry
from bertology.claims.claim import ClaimRun
from bertology.corpus.language import Language
from bertology.corpus.read import BUILTIN_CORPORA
from bertology.views.report.content import ReportContent
from bertology.views.report.findings import headline_findings
from bertology.views.report.pictures import chosen_head

EXAMPLE_SENTENCES: dict[Language, str] = {"English": "She opened the old letters.", "Chinese": "她打开了那些旧信。"}
"""A sentence in the language of the corpus."""


@dataclass(frozen=True)
class NextStep:
    """A command and what it is for."""

    text: str
    command: str


def next_steps(content: ReportContent) -> list[NextStep]:
    """What was left out, another model or corpus, and a closer look at a head."""
    subject = content.subject
    model, corpus = shlex.quote(subject.model), shlex.quote(_corpus_argument(subject.corpus))
    of_corpus = f" --corpus {corpus}" if subject.corpus and corpus != "english" else ""
    steps: list[NextStep] = []
    if content.not_run and not subject.is_recorded:
        against = f" --against {shlex.quote(subject.against)}" if subject.against else ""
        steps.append(
            NextStep(
                f"Test the {len(content.not_run)} findings that take minutes.",
                f"bertology report {model}{against}{of_corpus} --full",
            )
        )
    if not subject.against and not subject.is_recorded:
        steps.append(
            NextStep("See what fine-tuning changes.", f"bertology report {model} --against FINE_TUNED{of_corpus}")
        )
    if subject.is_recorded:
        steps.append(
            NextStep(
                "Give the model itself: its untrained twin then stands beside it.",
                f"bertology report {model}{of_corpus}",
            )
        )
    elif _corpus_argument(subject.corpus) in BUILTIN_CORPORA:
        steps.append(NextStep("Use your own texts.", f"bertology report {model} --corpus texts.txt"))
    example = EXAMPLE_SENTENCES.get(subject.language or "English", "TEXT")
    for finding in headline_findings(content.findings)[0]:
        head = chosen_head(finding.result) if finding.result is not None else None
        if head is not None and not subject.is_recorded:
            steps.append(
                NextStep(
                    f"Look at head {head} in a sentence of your own.",
                    f'bertology view --model {model} "{example}"',
                )
            )
            break
    return steps


def claim_command(run: ClaimRun, content: ReportContent) -> str:
    """The command that repeats the analysis of a claim and draws its figure."""
    subject, analysis = content.subject, registry.find(run.analysis)
    given = analysis.options if analysis is not None else {}
    options = [
        f"--{given[name].flag} {shlex.quote(str(value))}"
        for name, value in run.options.items()
        if name in given and given[name].default != value
    ]
    model = subject.against if run.target == "against" and subject.against else subject.model
    needs_against = analysis is not None and "against" in analysis.inputs and bool(subject.against)
    corpus = run.corpus or _corpus_argument(subject.corpus)
    source = ["--recording DIR"] if subject.is_recorded else [f"--model {shlex.quote(model)}"]
    if corpus and not subject.is_recorded:
        source.append(f"--corpus {shlex.quote(corpus)}")
    if needs_against:
        source.append(f"--against {shlex.quote(subject.against)}")
    figure = f"--figure {run.analysis.rsplit('/', 1)[-1]}.svg"
    return " ".join(["bertology run", run.analysis, *source, *options, figure])


def _corpus_argument(name: str) -> str:
    """The name that loads a built-in corpus; of another corpus the name of its file."""
    stem = name.split(".", 1)[0]
    return stem if stem in BUILTIN_CORPORA else name
